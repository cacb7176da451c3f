"""What a rest between calls costs on an NVIDIA GPU, with its clock held by `gw.hold_clock` and without.

Usage: python benchmarks/hold_clock.py [--json FILE]

A scan of 2^20 items runs back to back, and after rests of 0.2 to 50 ms. The times are GPU spans, medians of 50. Before
and after the clock is held the GPU rests for some seconds, so that its clock can fall. On other GPUs nothing is held,
and the times are the same.

The columns of warnings show how many of the results carry the warning about a low clock, and the clock as the driver
tells it right after the calls, if the extra `nvidia` (or sysfs) tells it.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.runtime.gpu_clock import observe
from gridwise_py.storage.json_files import write_json

N = 1 << 20
RESTS_S = (0.0, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.05)
CALLS = 50
WARM_UP_CALLS = 10
FALL_S = 2.5
BUSY_S = 0.8
CLOCK_WARNING = "times too long: the GPU"


class Calls(NamedTuple):
    """The calls of one row.

    Attributes
    ----------
    median_ns : float
    warned : float
        Share of the results with a warning about the clock.
    clock_mhz : int or None
    """

    median_ns: float
    warned: float
    clock_mhz: int | None


def calls(scan: gw.Scan, rest_s: float) -> Calls:
    """Make calls with a rest before each."""
    results = []
    for _ in range(WARM_UP_CALLS + CALLS):
        if rest_s:
            time.sleep(rest_s)
        results.append(scan.execute(enable_gpu_timing=True).get_timing_result())
    clock_mhz = observe(scan.device).get("sm_clock_mhz")
    taken = results[WARM_UP_CALLS:]
    warned = sum(any(CLOCK_WARNING in warning for warning in result.warnings) for result in taken)
    return Calls(statistics.median(result.gpu_span_ns for result in taken), warned / len(taken), clock_mhz)


def busy(scan: gw.Scan, seconds: float) -> None:
    """Keep the GPU at work."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        scan.execute(trials=200, enable_cpu_timing=True).get_timing_result()


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter: str | None, json_path: Path | None) -> None:
    """Measure and print the GPU spans."""
    device = gw.request_device(adapter)
    if "timestamp-query" not in device.features:
        raise click.ClickException("this device has no timestamps, so a GPU span cannot be measured")
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, N, dtype=np.uint32), device)
    scan = gw.Scan(device)
    scan.execute(input=x, output=gw.empty_like(x))
    rows: list[dict[str, Any]] = []
    print(f"{gw.capabilities(device).adapter}; scan of {N:,} items; GPU span, µs; share of results with a warning; MHz")
    print(f"{'rest':>7} {'before':>20} {'held':>20} {'after':>20} {'to hold it':>11}")
    busy(scan, BUSY_S)
    with gw.hold_clock(device):
        busy(scan, BUSY_S)
        reference = calls(scan, 0.0)
    for rest_s in RESTS_S:
        time.sleep(FALL_S)
        before = calls(scan, rest_s)
        begin = time.perf_counter_ns()
        with gw.hold_clock(device):
            hold_ns = time.perf_counter_ns() - begin
            held = calls(scan, rest_s)
        time.sleep(FALL_S)
        after = calls(scan, rest_s)
        found = {"before": before, "held": held, "after": after}
        rows.append(
            {"rest_s": rest_s, "hold_ns": hold_ns}
            | {f"{name}_ns": of.median_ns for name, of in found.items()}
            | {f"{name}_warned": of.warned for name, of in found.items()}
            | {f"{name}_clock_mhz": of.clock_mhz for name, of in found.items()}
        )
        print(f"{rest_s * 1e3:4.1f} ms " + " ".join(map(_cell, found.values())) + f" {hold_ns / 1e9:9.2f} s")
    time.sleep(FALL_S)
    busy(scan, BUSY_S)
    busy_before = calls(scan, 0.0)
    print(f"back to back after {BUSY_S:g} s of work: held {_cell(reference)}, not held {_cell(busy_before)}")
    worst = max(abs(row["held_ns"] / reference.median_ns - 1) for row in rows)
    print(f"held, with any rest, against back to back: at most {100 * worst:.1f} % apart")
    if json_path is not None:
        busy_rows = {"held": reference._asdict(), "not_held": busy_before._asdict()}
        write_json(json_path, {**run_context(device), "n": N, "calls": CALLS, "results": rows, "busy": busy_rows})


def _cell(of: Calls) -> str:
    clock = "    –" if of.clock_mhz is None else f"{of.clock_mhz:5}"
    return f"{of.median_ns / 1e3:8.1f} {100 * of.warned:4.0f} % {clock}"


if __name__ == "__main__":
    main()
