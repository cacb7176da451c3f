"""The files that a page of `gridwise browser` saves, without a browser: from blocks of samples whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise_py.bench.sampling.protocol import SamplingProtocol

#: The first timestamp of all. JavaScript's numbers could not hold it.
BASE = (1 << 60) + 12_345
CANARY_PASSES = 9
_WARMUP_NS = [1e5 * (1 + 0.01 * (-1) ** i) for i in range(20)]


def _stamps(begin: int, lengths: Any, gap: int = 50) -> list[list[int | None]]:
    """Passes of so many ns one after the other, relative to `BASE`."""
    found: list[list[int | None]] = []
    for length in lengths:
        found.append([begin, begin + int(length)])
        begin += int(length) + gap
    return found


def raw_block(begin: int, samples: Any, *, canary_ns: int = 10_000, kernels: int = 1, **changed: Any) -> dict[str, Any]:
    """A block of samples of so many ns (of each kernel), a submission each, between canaries."""
    samples = [int(ns) for ns in samples]
    canary = _stamps(begin, [canary_ns] * CANARY_PASSES)
    at, ticks, walls = canary[-1][1] + 1000, [], []
    for i in range(0, len(samples), kernels):
        one = _stamps(at, samples[i : i + kernels])
        ticks += one
        walls.append(float(one[-1][1] - one[0][0] + 100_000))
        at = one[-1][1] + 1000
    after = _stamps(at, [canary_ns] * CANARY_PASSES)
    count = len(walls)
    block = {
        "counts": [1] * count, "walls": walls, "submits": [5000.0] * count, "encodes": [3000.0] * count,
        "before": canary, "ticks": ticks, "after": after,
    }  # fmt: skip
    return block | changed


def raw_result(blocks: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    """A result with these blocks, all of whose checks were right."""
    result = {
        "primitive": "scan", "n": 1 << 20, "axes": {"datatype": "u32", "op": "add"}, "mode": "batch", "position": 0,
        "round": 0, "plan": 3, "error": None,
        "work": {"items": 1 << 20, "read_bytes": 4 << 20, "write_bytes": 4 << 20, "flops": (1 << 20) - 1},
        "checks": [{"output": "output", "wrong": None}] * 2, "blocks": blocks, "cold_start": 2e7,
        "warmup": _WARMUP_NS, "warmup_s": 0.3, "trial_ns": 1e5, "batch_trials": 4, "submission_trials": 1,
        "block_samples": 20, "canary_trials": 1, "sampling_s": 0.5, "stop_reason": "count",
    }  # fmt: skip
    return result | changed


def page_file(results: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    """A whole file, of a device with timestamps in steps of 32 ns."""
    tick = {"trials": 9, "wall": 60.5e6, "ticks": [[0, 60_000_000]]}
    empty = _stamps(1000, [2000] * 64, gap=500)
    many = _stamps(1000, [22_000] * 16, gap=500)
    data = {
        "schema": "gridwise.browser", "schema_version": 1, "bundle_sha256": "b" * 64, "gridwise_py": "0.1.0",
        "suite": "browser", "protocol": SamplingProtocol(samples=100, canary_passes=CANARY_PASSES).to_dict(),
        "name": "Invented 9000", "class": "32/1024/32768/false/safe", "complete": True, "planned": len(results),
        "tick_base": str(BASE),
        "context": {
            "time": "2026-01-02T03:04:05.678Z",
            "user_agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0",
            "brands": [{"brand": "Not=A?Brand", "version": "8"}, {"brand": "Chromium", "version": "156"},
                       {"brand": "Google Chrome", "version": "156"}],
            "platform": "Linux", "cpu_count": 8, "isolated": False, "now_step_ns": 100_000.0, "hidden": False,
        },
        "device": {
            "info": {"vendor": "invented", "architecture": "nine", "isFallbackAdapter": False, "backend": "vulkan"},
            "limits": {"maxBufferSize": 1 << 30, "maxStorageBufferBindingSize": 1 << 30, "maxTextureDimension1D": 8192},
            "features": ["timestamp-query", "subgroups"], "adapter_features": ["timestamp-query", "subgroups"],
            "webgl_renderer": "ANGLE (Invented, Vulkan 1.3)", "subgroup_size": 32,
        },
        "lookback": {
            "verdict": "safe",
            "tests": [
                {"tickets": False, "stalled": False, "dispatches": 32, "wrong": 0, "again": 0, "finished": 32 * 8192},
                {"tickets": False, "stalled": True, "dispatches": 4, "wrong": 0, "again": 6552, "finished": 4 * 8192},
            ],
        },
        "calibration": {
            "tick_step": 32.0, "tick_checks": [tick],
            "floors": {"one": {"trials": 1, "wall": 1e7, "ticks": empty},
                       "many": {"trials": 101, "wall": 1e7, "ticks": many}, "submissions": [[5000.0, 95_000.0]] * 5},
            "ceilings": [{"name": name, "array_bytes": 4 << 20,
                          "passes": [{"trials": 10, "wall": 1e7, "ticks": [[0, ns]]}]}
                         for name, ns in (("copy", 80_000), ("triad", 120_000))],
            "fma": [{"workgroups": 4096, "trials": 2, "wall": 1e8, "ticks": [[0, 34_359_738]]}],
        },
        "plans": {"3": {"primitive": "scan", "parameters": {"strategy": "lookback"},
                        "kernels": [{"label": "scan", "workgroups": [64, 1, 1]}], "shaders": ["c" * 64]}},
        "results": results,
    }  # fmt: skip
    return data | changed


def two_blocks(seed: int = 0, kernels: int = 1, count: int = 20) -> list[dict[str, Any]]:
    """Two blocks of samples of about 400 µs."""
    rng = np.random.default_rng(seed)
    lengths = (4e5 * (1 + 0.02 * rng.standard_normal((2, count * kernels)))).astype(int)
    first = raw_block(1000, lengths[0], kernels=kernels)
    return [first, raw_block(first["after"][-1][1] + 10_000, lengths[1], kernels=kernels)]
