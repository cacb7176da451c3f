"""Measurements without a GPU, for the tests of results files, suites and pictures; and the committed results."""

import json
import lzma

import numpy as np

from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.model import SCHEMA_VERSION, Results
from gridwise_py.bench.sampling.measurement import Measurement
from gridwise_py.bench.sampling.samples import make_series
from gridwise_py.bench.stats.series import StopReason
from gridwise_py.bench.sweep import runner, worker

DEVICE = {
    "adapter": "invented",
    "adapter_type": "DiscreteGPU",
    "backend": "Vulkan",
    "vendor": "nobody",
    "driver": "1.0",
    "features": ["timestamp-query"],
    "limits": {"max-buffer-size": 1 << 31},
    "subgroup_size": 32,
    "tick_period_ns": 1.0,
    "tick_period_source": "invented",
    "tick_step_ns": 32.0,
    "wait_method": "device_poll",
    "floors": {"pass_ns": 4300.0},
    "calibration": None,
}

CONTEXT = {
    "time": "2026-01-02T03:04:05+00:00",
    "versions": {"gridwise_py": "0.1.0", "wgpu": "0.32.0", "numpy": "2.0.0", "python": "3.12.0"},
    "host": {"system": "Linux", "release": "6", "machine": "x86_64", "cpu_count": 2},
    "byteorder": "little",
    "git": {"commit": "0" * 40, "dirty": False},
    "seed": 0,
    "command": ["bench"],
    "suite": None,
}


def series(name, values, invalid=1):
    return make_series(name, values, {"zero": invalid} if invalid else {})


def measurement(
    primitive="scan", n=1 << 20, mode=Mode.HOT, *, datatype="u32", op="add", labels=("first", "second"), count=7,
    scale_ns=1000.0, **fields,
):  # fmt: skip
    """A measurement whose kernels take `scale_ns` and a bit each, with 50 ns between them."""
    rng = np.random.default_rng(n)
    ticks, at = [], 1_000_000
    for _ in range(count):
        sample = []
        for _ in labels:
            end = at + int(scale_ns * (1 + 0.05 * rng.random()))
            sample.append((at, end))
            at = end + 50
        ticks.append(tuple(sample))
    kernels = [series(label, [float(s[i][1] - s[i][0]) for s in ticks]) for i, label in enumerate(labels)]
    spans = [float(s[-1][1] - s[0][0]) for s in ticks]
    whole = {"gpu_span": series("gpu_span", spans), "cpu_wall": series("cpu_wall", [2 * s + 900 for s in spans])}
    values = {
        "primitive": primitive,
        "mode": Mode(mode),
        "n": n,
        "case": {"datatype": datatype, "op": op},
        "protocol": {"timeout_s": 1.0},
        "kernels": tuple(kernels),
        "whole": whole,
        "work": {"items": n, "read_bytes": 4 * n, "write_bytes": 4 * n, "flops": n},
        "shaders_sha256": ("a" * 64,),
        "cold_start_ns": 1e7,
        "stop_reason": StopReason.INTERVAL,
        "canary_ns": (10.0, 10.5),
        "ticks": tuple(ticks),
        "tick_period_ns": 1.0,
    }
    return Measurement(**values | fields)


def header(**fields):
    parts = {
        "schema": "gridwise.bench",
        "schema_version": SCHEMA_VERSION,
        "context": dict(CONTEXT),
        "device": dict(DEVICE),
        "protocol": {"timeout_s": 1.0},
        "complete": True,
        "ticks_file": None,
        "results": [],
    }
    return parts | fields


def committed(folder):
    """Return the text of each committed results file below a folder, packed or not, by its path."""
    found = {}
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.json.xz")]):
        content = path.read_bytes()
        text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
        if '"gridwise.bench"' in text[:100]:
            found[path] = text
    return found


def measure_here(monkeypatch, device):
    """Let runs measure on a device that has compiled its kernels, and not what the device can do."""
    monkeypatch.setattr(runner, "request_device", lambda adapter: device)
    monkeypatch.setattr(runner, "calibrate_run", lambda device, sizes, cold: None)


def measure_nothing(monkeypatch, device):
    """Let runs take invented measurements."""

    def measure(device, case, protocol, mode, check=True):
        return measurement(case.primitive, case.n, mode, case=case.axes)

    measure_here(monkeypatch, device)
    monkeypatch.setattr(worker, "measure_case", measure)


def write(path, made):
    """Write JSON data as a file, and return the path."""
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def loaded(data):
    """Return JSON data as the document that reading its file gives."""
    return Results.from_json(data)


def document(measurements, **fields):
    """A results document as JSON data, for a test to spoil and to write."""
    return header(results=[result_of(m, position=i).to_json() for i, m in enumerate(measurements)], **fields)
