"""Timestamps inside of passes beside those around a pass for each kernel, for scan and sort; and what each adds.

For each primitive and length: the times of its kernels by both, in turns; their sum, the gaps and the span; the span of
one pass around the same work without any other timestamps ("plain"), and the CPU's wall. The sum rule is checked:
kernels + gaps = span.

Run: python benchmarks/inside_stamps.py [--n 2^20,2^24,2^26] [--json FILE]
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw

KINDS: dict[str, bool | str] = {"passes": True, "inside": "inside"}


def power(text: str) -> int:
    """Return the number of ``2^20`` or ``1000``."""
    base, _, exponent = text.strip().partition("^")
    return int(base) ** int(exponent) if exponent else int(base)


def median(values: list[Any]) -> float | None:
    """Return the median of what was measured."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def plain_ns(device: Any, bound: Any) -> float | None:
    """Return the GPU's time of one pass with the work, and no timestamps but its own; None if one is not enough."""
    if bound.bound_plan.pass_count != 1 or len(bound.bound_plan.labels) != len(bound.bound_plan.steps):
        return None
    session = gw.timing_helper(device).session()
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass(timestamp_writes=session.span("plain"))
    for step in bound.bound_plan.steps:
        compute.set_pipeline(step.pipeline)
        compute.set_bind_group(0, step.group)
        compute.dispatch_workgroups(*step.workgroups)
    compute.end()
    gw.synchronize(device)
    device.queue.submit([encoder.finish()])
    session.submitted()
    return session.spans()[0].ns


def untimed_wall_ns(device: Any, bound: Any) -> int:
    """Return the CPU's time of a call without timing, until the queue is idle."""
    gw.synchronize(device)
    begin = time.perf_counter_ns()
    bound.execute()
    gw.synchronize(device)
    return time.perf_counter_ns() - begin


def kernels_of(results: list[gw.TimingResult]) -> list[dict[str, Any]]:
    """Return the kernels' median times."""
    return [
        {"label": label, "ns": median([result.gpu_total_time_ns[i] for result in results])}
        for i, label in enumerate(results[0].labels)
    ]


def around_ns(passes: tuple[gw.Span, ...]) -> float:
    """Return the time from the begin of the first pass to the end of the last."""
    return (passes[-1].end_ticks - passes[0].begin_ticks) * passes[0].tick_period_ns


def us(ns: float | None) -> str:
    """Return a time in µs, right-aligned."""
    return f"{'-' if ns is None else f'{ns / 1e3:.2f}':>12}"


def sum_rule_holds(result: gw.TimingResult) -> bool:
    """Whether stamps are in order, within their passes, and kernels and gaps are the span."""
    ticks = list(itertools.chain.from_iterable((span.begin_ticks, span.end_ticks) for span in result.spans))
    around = result.passes or result.spans
    return (
        ticks == sorted(ticks)
        and around[0].begin_ticks <= ticks[0]
        and ticks[-1] <= around[-1].end_ticks
        and abs(sum(result.gpu_total_time_ns) + sum(result.gaps_ns) - result.gpu_span_ns) < 1
    )


def measured(device: Any, primitive: gw.Primitive, n: int, samples: int) -> dict[str, Any]:
    """Measure one primitive at one length, all kinds in turns."""
    x = gw.asarray(np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32), device)
    bound = primitive.bind(input=x)
    plain: list[float | None] = []
    walls: list[int] = []
    found: dict[str, list[gw.TimingResult]] = {kind: [] for kind in KINDS}
    deadline = time.perf_counter() + 0.4  # the clock comes up with the very work
    while time.perf_counter() < deadline:
        for _ in range(4):
            bound.execute()
        gw.synchronize(device)
    for _ in range(samples):
        plain.append(plain_ns(device, bound))
        walls.append(untimed_wall_ns(device, bound))
        for kind, how in KINDS.items():
            run = bound.execute(enable_gpu_timing=how, enable_cpu_timing=True)
            found[kind].append(run.get_timing_result())
    kinds = {
        kind: {
            "kernels": kernels_of(results),
            "sum_of_kernels_ns": median([sum(r.gpu_total_time_ns) for r in results]),
            "gaps_ns": median([sum(r.gaps_ns) for r in results]),
            "span_ns": median([r.gpu_span_ns for r in results]),
            "pass_span_ns": median([around_ns(r.passes) for r in results]) if kind == "inside" else None,
            "cpu_wall_ns": median([r.cpu_total_time_ns for r in results]),
            "encode_ns": median([r.encode_time_ns for r in results]),
            "expected_overhead_gpu_ns": results[-1].overhead.gpu_ns,
            "expected_overhead_cpu_ns": results[-1].overhead.cpu_ns,
            "sum_rule": f"{sum(map(sum_rule_holds, results))} of {len(results)}",
        }
        for kind, results in found.items()
    }
    return {
        "primitive": primitive.name, "n": n, "samples": samples, "plain_span_ns": median(plain),
        "untimed_wall_ns": median(walls), "kinds": kinds,
    }  # fmt: skip


def show(row: dict[str, Any]) -> None:
    """Print both kinds beside each other."""
    by_pass, inside = row["kinds"]["passes"], row["kinds"]["inside"]
    print(f"\n{row['primitive']}, n = {row['n']:,}, medians of {row['samples']}, in µs")
    print(f"  {'':24}{'passes':>12}{'inside':>12}{'plain':>12}")
    for a, b in zip(by_pass["kernels"], inside["kernels"], strict=True):
        print(f"  {a['label']:24}{us(a['ns'])}{us(b['ns'])}")
    for name, key in (("sum of kernels", "sum_of_kernels_ns"), ("gaps", "gaps_ns")):
        print(f"  {name:24}{us(by_pass[key])}{us(inside[key])}")
    span = (by_pass["span_ns"], inside["pass_span_ns"], row["plain_span_ns"])
    print(f"  {'span, by passes':24}" + "".join(map(us, span)))
    added = [None if span[2] is None else ns - span[2] for ns in span[:2]]
    print(f"  {'added to plain':24}" + "".join(map(us, added)))
    expected = (by_pass["expected_overhead_gpu_ns"], inside["expected_overhead_gpu_ns"])
    print(f"  {'  by timing_overhead':24}" + "".join(map(us, expected)))
    print(f"  {'sum rule':24}{by_pass['sum_rule']:>12}{inside['sum_rule']:>12}")


@click.command()
@click.option("--n", "lengths", default="2^20,2^24,2^26", show_default=True, help="Lengths.")
@click.option("--samples", default=31, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the figures to a file.")
def main(lengths: str, samples: int, path: Path | None) -> None:
    """Print both kinds of timestamps beside each other."""
    device = gw.request_device()
    with gw.hold_clock(device) as held:
        overheads = gw.timing_overhead(device)
        for kind, cost in overheads.costs.items():
            print(f"{kind}: {cost}")
        rows: list[dict[str, Any]] = []
        for n in map(power, lengths.split(",")):
            scans = [gw.Scan(device, strategy=strategy) for strategy in ("reduce_then_scan", "auto")]
            for primitive in (*scans, gw.Sort(device)):
                rows.append(measured(device, primitive, n, samples))
                show(rows[-1])
    if path is not None:
        costs = {kind: vars(cost) for kind, cost in overheads.costs.items()}
        info = {key: str(device.adapter.info[key]) for key in ("device", "description", "backend_type")}
        path.write_text(json.dumps({"device": info, "clock_held": held, "costs": costs, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
