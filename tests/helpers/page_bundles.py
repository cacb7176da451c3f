"""Reads the bundle of a page as its runner does: plans from their tables, data by recipes, checks. In plain Python."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.backend.queues import submit, wait_idle
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.executor import BufferRange

_MASK = (1 << 32) - 1
_SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f32": 4}


# ---- data, number by number


def _hash(x: int, seed: int) -> int:
    h = (x * 0x9E3779B9 + seed) & _MASK
    h = ((h ^ (h >> 16)) * 0x21F0AAAD) & _MASK
    h = ((h ^ (h >> 15)) * 0x735A2D97) & _MASK
    return h ^ (h >> 15)


_EACH = {
    "and": lambda x, k: x & k, "or": lambda x, k: x | k, "xor": lambda x, k: x ^ k, "shift": lambda x, k: x >> k,
    "mod": lambda x, k: x % k, "times": lambda x, k: (x * k) & _MASK, "min": min, "less": lambda x, k: int(x < k),
    "hash": _hash,
}  # fmt: skip

#: Names of all steps of a recipe.
STEPS = (*_EACH, "and_hash", "sum", "sort", "reverse", "differences", "times_around", "last")


def items_of(recipe: Mapping[str, Any]) -> bytes:
    """The items of a recipe, as bytes."""
    if "base64" in recipe:
        return base64.b64decode(recipe["base64"])
    x = list(range(recipe["words"]))
    for name, *numbers in recipe["steps"]:
        if name in _EACH:
            x = [_EACH[name](value, *numbers) for value in x]
        elif name == "and_hash":
            x = [value & _hash(i, *numbers) for i, value in enumerate(x)]
        elif name == "sum":
            total, sums = 0, []
            for value in x:
                total = (total + value) & _MASK
                sums.append(total)
            x = sums
        elif name == "sort":
            x = sorted(x)
        elif name == "reverse":
            x = x[::-1]
        elif name == "differences":
            x = [(value - before) & _MASK for before, value in zip([0, *x], x, strict=False)]
        elif name == "times_around":
            x = [value * numbers[0] % len(x) for value in x]
        elif name == "last":
            x = [*x[:-1], numbers[0]] if x else x
        else:
            raise ValueError(f"unknown step {name!r}")
    form = recipe["as"]
    if form == "f32":
        return np.array([value * recipe["scale"] + recipe["offset"] for value in x], dtype=np.float32).tobytes()
    size = _SIZES[form]
    return b"".join((value & ((1 << 8 * size) - 1)).to_bytes(size, "little") for value in x)


# ---- plans


def text_of(bundle: Mapping[str, Any], shader: int) -> tuple[str, str]:
    """The prologue of a text, and the rest."""
    prologue, *runs = bundle["shaders"][shader]
    lines: list[str] = []
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        lines += bundle["lines"][first : first + count]
    return "\n".join(lines[:prologue]), "\n".join(lines[prologue:])


def plan_of(bundle: Mapping[str, Any], number: int) -> gw.Plan:
    """The plan of a number, with its texts as the library has them; without its work."""
    plan = bundle["plans"][number]
    steps, shaders = [], {}
    for i in plan["steps"]:
        step = dict(bundle["steps"][i])
        if step["kind"] == "kernel":
            _, text = text_of(bundle, step["shader"])
            step["shader"] = hashlib.sha256(text.encode()).hexdigest()
            shaders[step["shader"]] = {"text": text, "features": []}
        steps.append(step)
    data = {
        "primitive": plan["primitive"], "buffers": [bundle["buffers"][i] for i in plan["buffers"]], "steps": steps,
        "parameters": bundle["parameters"][plan["parameters"]], "shaders": shaders, "siblings": [],
        "work": {"items": 0, "read_bytes": 0, "write_bytes": 0, "flops": 0},
    }  # fmt: skip
    return gw.Plan.from_json(json.dumps(data))


# ---- running a case


def run_case(device: wgpu.GPUDevice, bundle: Mapping[str, Any], case: Mapping[str, Any], key: str) -> dict[str, bytes]:
    """Run a case's plan for a class of devices here; return what the buffers of its outputs hold."""
    plan = plan_of(bundle, case["variants"][bundle["class_keys"].index(key)])
    usage = wgpu.BufferUsage
    buffers = {}
    for argument in (*case["inputs"], *case["outputs"]):
        size = max(16, -(-argument.get("capacity_bytes", argument["bytes"]) // 16) * 16)
        buffers[argument["name"]] = device.create_buffer(
            size=size, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        )
    for argument in case["inputs"]:
        data = items_of(argument["recipe"])
        assert len(data) == argument["bytes"]
        device.queue.write_buffer(buffers[argument["name"]], 0, data + bytes(-len(data) % 4))
    named = {spec.name for spec in plan.buffers if spec.role == "argument"}
    bound = context_of(device).executor.bind(
        plan, {k: BufferRange(b, 0, b.size) for k, b in buffers.items() if k in named}
    )
    for _ in range(2):  # on buffers that keep what they hold, as in a page
        encoder = device.create_command_encoder()
        bound.encode(encoder)
        submit(device, [encoder.finish()], bound.title)
    wait_idle(device)
    found = {}
    for output in case["outputs"]:
        words = np.empty(buffers[output["name"]].size // 4, dtype=np.uint32)
        context_of(device).read_buffer(buffers[output["name"]], 0, words)
        found[output["name"]] = words.tobytes()
    return found


def wrong(output: Mapping[str, Any], data: bytes) -> str | None:
    """What is wrong about an output, given the bytes of its buffer; None if it is right."""
    data = data[: output["bytes"]]
    if "sha256" in output:
        found = hashlib.sha256(data).hexdigest()
        return None if found == output["sha256"] else f"{output['name']}: sha256 {found}"
    got = np.frombuffer(data, dtype=np.float32).astype(np.float64)
    if "base64" in output:
        values = np.frombuffer(base64.b64decode(output["base64"]), np.float32).astype(np.float64)
        errors = output["atol"] + output["rtol"] * np.abs(values)
    else:
        values, errors = output["values"], output["errors"]
    far = ~(np.abs(got - values) <= errors)
    return f"{output['name']}: {got[far][0]}" if far.any() else None
