"""Results documents with times of known noise, for the tests of comparing."""

import copy
import functools
import hashlib
import json

import numpy as np

from gridwise_py.bench.results.model import SCHEMA, SCHEMA_VERSION
from gridwise_py.bench.stats.statistics import summarize
from helpers.synthetic import times

CODE = ("kernels", "launches", "uniforms", "inputs")
H200 = {
    "adapter": "NVIDIA H200",
    "adapter_type": "DiscreteGPU",
    "backend": "Vulkan",
    "vendor": "NVIDIA",
    "driver": "580.159.04",
    "tick_period_ns": 1.0,
    "tick_step_ns": 32.0,
}
LAVAPIPE = {
    **H200,
    "adapter": "llvmpipe (LLVM 15.0.7, 256 bits)",
    "adapter_type": "CPU",
    "vendor": "Mesa",
    "driver": "llvmpipe",
    "tick_step_ns": 1.0,
}


def series(samples):
    return {"samples_ns": list(samples), "summary": summarize(samples).to_json(), "invalid": {}}


def entry(rng, primitive="scan", n=1 << 20, kernels=("upsweep", "downsweep"), mode="hot", scale=1.0, **more):
    parts = [times("independent", 60, rng, level_ns=scale * 1e5 * (i + 1), sd=0.004) for i in range(len(kernels))]
    span = np.sum(parts, axis=0) + 6400
    wall = span + 91_000
    made = {
        "primitive": primitive,
        "n": n,
        "mode": mode,
        "datatype": "u32",
        "op": "add",
        "case": {"datatype": "u32", "op": "add"},
        "position": 0,
        "correct": True,
        "mismatch": None,
        "error": None,
        "trials": 1,
        "kernels": [
            {"label": label, "gpu_ns": float(np.median(x)), **series(x.tolist())}
            for label, x in zip(kernels, parts, strict=True)
        ],
        "whole": {
            "gpu_span_ns": float(np.median(span)),
            "cpu_wall_ns": float(np.median(wall)),
            "series": {"gpu_span": series(span.tolist()), "cpu_wall": series(wall.tolist())},
        },
        "cold_start_ns": 1e7,
        "work": {"items": n, "read_bytes": 4 * n, "write_bytes": 4 * n, "flops": n},
        "rates": {"gbytes_per_s": 8 * n / float(np.median(span)), "gitems_per_s": n / float(np.median(span))},
        "parameters": {},
        "protocol": {},
        "shaders_sha256": [],
        "stop_reason": "interval",
        "clock_moved": False,
        "canary_ns": [],
        "warnings": [],
        "observations": {},
        "tick_period_ns": 1.0,
        "ticks": None,
        "samples": [],
    }
    return made | more


def coded(document):
    """The same file, in which results with other times, and none else, have other code, where they do not say."""
    results = [
        one if "code" in one or not isinstance(one, dict) else {**one, "code": dict.fromkeys(CODE, _digest(one))}
        for one in document.get("results", [])
    ]
    return {**document, "results": results}


def _digest(entry):
    return hashlib.sha256(json.dumps([entry.get("kernels"), entry.get("whole")]).encode()).hexdigest()


@functools.cache
def _usual_entries(seed):
    rng = np.random.default_rng(seed)
    return [
        entry(rng, "copy", kernels=("copy",)),
        entry(rng),
        entry(rng, n=1 << 24, scale=16),
        entry(rng, "reduce", mode="latency"),
    ]


def document(seed=1, device=H200, entries=None, **more):
    if entries is None:
        entries = copy.deepcopy(_usual_entries(seed))
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "context": {
            "time": "2026-01-01T00:00:00+00:00",
            "versions": {"gridwise_py": "0", "wgpu": "0", "numpy": "0", "python": "3"},
            "host": {"system": "Linux", "release": "6", "machine": "x86_64", "cpu_count": 2},
            "git": None,
            "seed": 0,
            "command": None,
        },
        "device": {
            "features": [], "limits": {}, "subgroup_size": 32, "tick_period_source": None, "wait_method": "device_poll",
            "floors": None, "calibration": None, **device,
        },
        "protocol": {},
        "complete": True,
        "ticks_file": None,
        "results": entries,
    } | more  # fmt: skip


def scaled(document, index, kernel, factor):
    """The same file with one kernel slower."""
    document = copy.deepcopy(document)
    found = document["results"][index]["kernels"][kernel]
    found["samples_ns"] = [factor * t for t in found["samples_ns"]]
    found["gpu_ns"] *= factor
    return document
