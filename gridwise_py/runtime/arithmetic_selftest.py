"""The self-test of arithmetic: whether a device computes what WGSL defines where GPUs differ.

It runs when a user's text first has such an operation; the library's own texts have none. The verdict is kept on disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import GridwiseError
from ..planning.plan import Plan
from ..planning.shaders import users_text
from ..storage import cache
from ..types.wgsl_text import tokens
from ..warn import warn
from .context import context_of
from .device import device_key, words_of_probe

_FORMAT = 1  # of the file
_KIND = "arithmetic"


class Operation(NamedTuple):
    """What the self-test tries.

    Attributes
    ----------
    found_by : str
        What a user's text then has, as a regular expression.
    type : {"i32", "u32", "f32"}
        Of x, and of y where there is one.
    code, remedy : str
        WGSL; the remedy is another way to write it, which is tried as well.
    cases : tuple of (x, y, right)
        Words that are right, of which floats beyond a range have two: WGSL has changed.
    known : str
        What is known upstream.
    """

    found_by: str
    type: str
    code: str
    remedy: str
    cases: tuple[tuple[float, int, tuple[int, ...]], ...]
    known: str = ""


#: By the names of `OPERATIONS`: an example, and the remedy where it is right.
Faults: TypeAlias = dict[str, tuple[str, str]]

_LEAST = -(1 << 31)
_PROBE = """
@group(0) @binding(0) var<storage, read_write> rows: array<vec4<i32>>;
@compute @workgroup_size(SIZE) fn main(@builtin(local_invocation_index) i: u32) {
  let row = rows[i];
"""
_Y = r"\by\b"
_SIGNED = r"\bi32\b|\bvec[234]i\b|\b\d+i\b"
_UNSIGNED = r"u32\b|vec[234](?:u\b|<u32>)"
_SIGNED_MARK = r"(?<!\du)(?<!\du )[{}](?![\s(]*(0x[\da-fA-F]+|\d+)u\b)"  # as far as one sees
#: By what messages call them. Of i32 y is also tried as a constant; a shift by a constant of 32 is an error.
OPERATIONS: Mapping[str, Operation] = {
    "% of i32": Operation(
        _SIGNED_MARK.format("%"), "i32", "x % y", "x - (x / y) * y",
        (
            (-1, 768, (-1,)), (-767, 768, (-767,)), (-768, 768, (0,)), (-769, 768, (-1,)), (1000, 768, (232,)),
            (5, -3, (2,)), (-5, -3, (-2,)), (_LEAST, 3, (-2,)), (_LEAST, -1, (0,)),
        ), " (wgpu #8191 and #9578; right from wgpu 30 on, by #9674)",
    ),
    "/ of i32": Operation(
        _SIGNED_MARK.format("/"), "i32", "x / y", "select(x / select(y, 1, y == -1), 0 - x, y == -1)",
        ((-7, 2, (-3,)), (7, -2, (-3,)), (_LEAST, 3, (-715827882,)), (_LEAST, -1, (_LEAST,))),
    ),
    "<< by 32 and more": Operation(
        "<<", "u32", "x << y", "x << (y & 31u)", ((1, 32, (1,)), (1, 33, (2,)), (3, 95, (_LEAST,))),
    ),
    ">> by 32 and more": Operation(">>", "u32", "x >> y", "x >> (y & 31u)", ((8, 32, (8,)), (8, 33, (4,)))),
    "i32() of floats beyond its range": Operation(
        r"(\bi32|\bvec[234](i|<i32>))\s*\(", "f32", "i32(x)", "i32(clamp(x, -2147483648.0, 2147483520.0))",
        ((3e9, 0, (2147483520, 2147483647)), (1e20, 0, (2147483520, 2147483647)), (-3e9, 0, (_LEAST,))),
    ),
    "u32() of floats beyond its range": Operation(
        r"(\bu32|\bvec[234](u|<u32>))\s*\(", "f32", "u32(x)", "u32(clamp(x, 0.0, 4294967040.0))",
        ((5e9, 0, (-256, -1)), (1e20, 0, (-256, -1)), (-1.0, 0, (0,))),
    ),
}  # fmt: skip


def _probed(device: wgpu.GPUDevice) -> Faults:
    """Run all cases, and the remedies; return what is wrong, as `arithmetic_faults` does."""
    branches: dict[tuple[str, str], int] = {}  # by the name of an operation, and what stands for y
    tried: list[tuple[str, tuple[float, int, tuple[int, ...]], int]] = []
    for name, operation in OPERATIONS.items():
        for case in operation.cases:
            for divisor in ("y", f"({case[1]})")[: 1 + (operation.type == "i32")]:
                tried.append((name, case, branches.setdefault((name, divisor), len(branches))))
    items = np.zeros((len(tried), 4), np.int32)
    for k, (name, (x, y, _), branch) in enumerate(tried):
        items[k, :3] = np.array(x, OPERATIONS[name].type[0] + "4").view(np.int32), y, branch
    text = _PROBE.replace("SIZE", str(len(tried)))
    for (name, divisor), branch in branches.items():
        operation, counted = OPERATIONS[name], "u32" if OPERATIONS[name].type == "u32" else "i32"
        codes = (re.sub(_Y, divisor, code) for code in (operation.code, operation.remedy))
        text += f"if (row.z == {branch}) {{ let x = bitcast<{operation.type}>(row.x); let y = {counted}(row.y); "
        text += "".join(f"rows[i].{at} = bitcast<i32>({code}); " for at, code in zip("zw", codes, strict=True)) + "}\n"
    found = words_of_probe(device, "arithmetic", text + "}", items.view(np.uint32)).view(np.int32).reshape(-1, 4)
    faults: Faults = {}
    wrong_remedies: set[str] = set()
    for (name, (x, y, right), _), (_, _, value, other) in zip(tried, found.tolist(), strict=True):
        if other not in right:
            wrong_remedies.add(name)
        if value not in right and name not in faults:
            code = OPERATIONS[name].code
            shown = f"{code[:3]}({x})" if "(" in code else code.replace("x", f"{x}").replace("y", f"{y}")
            mask = -1 if "i32" in name else 0xFFFFFFFF
            faults[name] = f"{shown} gives {value & mask}, not {right[0] & mask}", OPERATIONS[name].remedy
    return {name: (shown, "" if name in wrong_remedies else remedy) for name, (shown, remedy) in faults.items()}


def arithmetic_faults(device: wgpu.GPUDevice) -> Faults:
    """Return what a device computes wrongly: an example, and what was tried and is right, or nothing.

    It is known from memory, disk, or by a test, which compiles one kernel.
    """

    def find() -> Faults:
        key = device_key(device)
        kept = cache.load(_KIND, key, _FORMAT)
        with suppress(KeyError, TypeError, ValueError, AttributeError):  # of a broken file
            found = {name: (str(shown), str(remedy)) for name, (shown, remedy) in cast(Any, kept)["faults"].items()}
            if found.keys() <= OPERATIONS.keys():
                return found
        try:
            faults = _probed(device)
        except (GridwiseError, wgpu.GPUError):  # nothing is known, and another process tries again
            return {}
        cache.save(_KIND, key, _FORMAT, {"faults": faults})
        return faults

    return context_of(device).cached("arithmetic faults", find)


def _without_unsigned(bare: str) -> str:
    """Return a text with 1u in place of what is seen to be u32."""
    kinds = re.findall(rf"\b(\w+)\s*:\s*({_UNSIGNED}|)", bare)
    others = {name for name, kind in kinds if not kind} | set(re.findall(r"\b(?:let|var|const)\s+(\w+)\s*=", bare))
    names = "|".join({name for name, _ in kinds} - others) or "u32"
    seen = rf"\b(?:\w+\.)*(?:{names})\b(?:\.[xyzw]+)?(?!\s*[\[.(<])|\b(?:arrayLength|{_UNSIGNED})\s*\([^()%/]*\)"
    return re.sub(seen, "1u", bare)


@lru_cache(maxsize=256)
def _operations_in(whole: str) -> tuple[str, tuple[str, ...]]:
    """Return what a user wrote of a shader, and the names of the operations that it may have."""
    text = users_text(whole)
    bare = "".join(" " if piece.kind == "comment" else piece.text for piece in tokens(text))
    named = re.search(_SIGNED, bare) or re.search(r"alias (T|Acc) = i32|struct T \{[^}]*\bi32\b", whole)
    signed = _without_unsigned(bare) if named else ""
    return text, tuple(
        name
        for name, operation in OPERATIONS.items()
        if re.search(operation.found_by, signed if name.endswith("of i32") else bare)
    )


def warn_of_faults(device: wgpu.GPUDevice, plan: Plan) -> None:
    """Warn, once for each text, of what a user's text in a plan asks for and the device computes wrongly."""
    for shader in plan.shaders.values():
        text, names = ("", ()) if shader.origin == "library" else _operations_in(shader.text)
        for name in names:
            told = context_of(device).cached("texts with faults", set[tuple[str, str]])
            if name not in arithmetic_faults(device) or (name, text) in told:
                continue
            told.add((name, text))
            example, remedy = arithmetic_faults(device)[name]
            info: Any = device.adapter.info
            warn(
                f"{plan.primitive}: its WGSL seems to have {name}, which is wrong on {info['device']}, driver "
                f"{info['description']}: {example}{OPERATIONS[name].known}. "
                + (f"Write {remedy}, which is right here" if remedy else "No other way was found: compute it elsewhere")
            )
