"""How often is the instrument wrong on this device? The same thing measured many times in pairs, and judged.

Usage: python benchmarks/false_verdicts.py [--pairs 200] [--rounds 1] [--more 5] [--seconds 110] [--json FILE]

Each pair is three measurements with a short protocol, in random order: a kernel twice, and once with more work. The
first two are judged as `gridwise compare` judges two files with one row each, and so are the first and the one with
more work. With --rounds, each pair is as many rounds, each of three measurements in a new order, and is judged in two
ways: as two files with rounds in them, and by the ratios within the rounds, as `gw.compare_kernels` does. «faster» or
«slower» between the first two is a false verdict; «faster» or «same» for more work is one, too. Two kernels take turns:
vector_add, which waits for memory (more items), and a chain of multiply-adds, which waits for arithmetic (a longer
chain). Judging comes last, so that the GPU does not idle between.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import wgpu
from scipy.stats import binomtest

import gridwise_py as gw
from gridwise_py.bench.calibrate.canary import clock_log_ratio
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.sampling.interleave import pair_in_turns
from gridwise_py.bench.stats.verdict import Pair, Verdict, VerdictKind, judge_all
from gridwise_py.planning.shaders import compose
from gridwise_py.storage.json_files import write_json

RESULTS = Path(__file__).resolve().parent / "results" / "false_verdicts.json"
STEP = 100  # counts are multiples of it, so that any whole percentage more is exact
FMA_WORKGROUPS = 64
# Lavapipe ends all loops of an invocation after 65,535 iterations.
MOST_ROUNDS = 60_000

Measure = Callable[[gw.SamplingProtocol], gw.Measurement]
Sides = tuple[list[gw.Measurement], list[gw.Measurement]]


def measuring(primitive: gw.Primitive, **arrays: Any) -> Measure:
    """Return a function that measures a primitive; its result was checked once."""
    first = gw.measure(primitive, protocol=gw.SamplingProtocol(samples=1, warmup_s=0.0), **arrays)
    if not first.correct:
        raise click.ClickException(f"{primitive.name} is wrong on this device: {first.mismatches[0]}")
    return lambda protocol: gw.measure(primitive, protocol=protocol, check=False, **arrays)


def vector_add(device: wgpu.GPUDevice, n: int) -> Measure:
    """Return what measures vector_add of n items."""
    a, b = (gw.asarray(np.random.default_rng(i).random(n, dtype=np.float32), device) for i in range(2))
    return measuring(gw.VectorAdd(device, "f32"), a=a, b=b)


def fma(device: wgpu.GPUDevice, rounds: int) -> Measure:
    """Return what measures chains of multiply-adds."""
    text = compose("fma.wgsl", datatype="f32")
    kernel = gw.Kernel(device, text, {"state": "read_write"}, FMA_WORKGROUPS, constants={"ROUNDS": rounds})
    state = gw.asarray(np.zeros(64, dtype=np.float32), device)  # of which nothing is to be written: no sum is negative
    return lambda protocol: gw.measure(kernel, protocol=protocol, check=False, state=state)


def sized(make: Callable[[int], Measure], start: int, most: int, wanted_ns: float) -> int:
    """Return how much work takes about so long."""
    amount = start
    quick = gw.SamplingProtocol(samples=20, warmup_s=0.1, max_warmup_s=0.5, check_unit=False)
    while amount < most:
        time_ns = make(amount)(quick).time_ns
        if time_ns is not None and time_ns >= 0.7 * wanted_ns:
            break
        growth = 2.0 if time_ns is None else min(max(wanted_ns / time_ns, 1.5), 8.0)
        amount = min(round(amount * growth / STEP) * STEP, most)
    return amount


def judged(pairs: list[Sides], tick_step_ns: float) -> list[Verdict]:
    """Judge each pair by itself, as two files with one row are judged."""
    found = []
    for old, new in pairs:
        sides = [[result_of(m) for m in side] for side in (old, new)]
        samples = [[r.positive_ns("gpu_span") or r.positive_ns("cpu_wall") for r in side] for side in sides]
        canaries = [[ns for r in side for ns in r.settled_canary_ns] for side in sides]
        moved = any(all(r.clock_moved for r in side) for side in sides)
        found += judge_all([Pair(*samples, tick_step_ns, math.exp(clock_log_ratio(*canaries)), moved)])
    return found


def judged_in_turns(pairs: list[Sides]) -> list[Verdict]:
    """Judge each pair by itself, as `gw.compare_kernels` judges two kernels."""
    return [judge_all([pair_in_turns(*pair)])[0] for pair in pairs]


def counted(verdicts: list[Verdict], wrong: tuple[VerdictKind, ...], right: VerdictKind) -> dict[str, Any]:
    """Return how often each verdict came, and the shares that matter with their 95 % intervals."""
    kinds = [verdict.kind for verdict in verdicts]
    count = len(kinds)

    def share(hits: int) -> dict[str, float]:
        interval = binomtest(hits, count).proportion_ci()
        return {"share": hits / count, "low": float(interval.low), "high": float(interval.high)}

    return {
        "pairs": count,
        "counts": {kind.value: kinds.count(kind) for kind in VerdictKind},
        "false": share(sum(kind in wrong for kind in kinds)),
        "right": share(kinds.count(right)),
        "ambiguous": share(kinds.count(VerdictKind.AMBIGUOUS)),
        "median_ratio": float(np.median([verdict.ratio for verdict in verdicts])),
        "spread_of_log_ratio": float(np.std([math.log(verdict.ratio) for verdict in verdicts])),
        "why_ambiguous": sorted({v.settle for v in verdicts if v.kind is VerdictKind.AMBIGUOUS})[:20],
    }


def summary(what: str, found: dict[str, Any]) -> str:
    """Return a line about it."""
    shares = ", ".join(
        f"{name} {100 * found[name]['share']:.1f} % (at most {100 * found[name]['high']:.1f} %)"
        for name in ("false", "ambiguous")
    )
    counts = ", ".join(f"{count} {kind}" for kind, count in found["counts"].items() if count)
    return f"{what}: {found['pairs']} pairs: {counts}; {shares}; median ratio {found['median_ratio']:.4f}"


@click.command()
@click.option("--pairs", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="Of each pair.")
@click.option(
    "--more",
    "more_percent",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Work of the slower one, %.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=110.0, show_default=True, help="Of measuring, at most."
)
@click.option("--kernel-us", type=click.FloatRange(min=1), default=100.0, show_default=True, help="Length of a kernel.")
@click.option("--most-items", type=click.IntRange(min=STEP), default=1 << 27, show_default=True, help="Of vector_add.")
@click.option("--sampling-s", type=click.FloatRange(min=0.001), default=0.1, show_default=True, help="At most, each.")
@click.option("--warmup-s", type=click.FloatRange(min=0), default=0.02, show_default=True, help="Of each measurement.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the order.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), default=RESULTS, help="Write the figures here.")
def main(
    pairs: int, rounds: int, more_percent: int, seconds: float, kernel_us: float, most_items: int, sampling_s: float,
    warmup_s: float, seed: int, adapter: str | None, json_path: Path,
) -> None:  # fmt: skip
    """Measure in pairs, judge, and count false verdicts."""
    start = time.perf_counter()
    device = gw.request_device(adapter)
    capabilities = gw.capabilities(device)
    makers = {"vector_add": lambda n: vector_add(device, n), "fma": lambda rounds: fma(device, rounds)}
    most = {"vector_add": most_items // STEP * STEP, "fma": MOST_ROUNDS}
    begun = {"vector_add": 1000, "fma": 100}
    works: dict[str, tuple[int, Measure, Measure]] = {}
    for name, make in makers.items():
        amount = sized(make, begun[name], most[name], 1e3 * kernel_us)
        works[name] = (amount, make(amount), make(amount * (100 + more_percent) // 100))
    protocol = gw.SamplingProtocol(timeout_s=sampling_s, warmup_s=warmup_s)
    order = random.Random(seed)
    same: dict[str, list[Sides]] = {name: [] for name in works}
    slower: dict[str, list[Sides]] = {name: [] for name in works}
    for pair in range(pairs):
        if time.perf_counter() - start > seconds:
            break
        name = list(works)[pair % len(works)]
        _, base, more = works[name]
        taken: dict[str, list[gw.Measurement]] = {"old": [], "new": [], "slow": []}
        for _ in range(rounds):
            for role in order.sample(list(taken), 3):
                taken[role].append((more if role == "slow" else base)(protocol))
        same[name].append((taken["old"], taken["new"]))
        slower[name].append((taken["old"], taken["slow"]))
    measured_s = time.perf_counter() - start
    step_ns = capabilities.tick_step_ns or 0.0
    results = []
    equal_wrong = (VerdictKind.FASTER, VerdictKind.SLOWER)
    slow_wrong = (VerdictKind.FASTER, VerdictKind.SAME)
    click.echo(f"{capabilities.adapter}: {sum(map(len, same.values()))} of {pairs} pairs in {measured_s:.1f} s")
    for name, (amount, _, _) in works.items():
        if not same[name]:
            continue
        taken_all = [m for pair in (*same[name], *slower[name]) for side in pair for m in side]
        found = {
            "kernel": name,
            "amount": amount,
            "amount_of_the_slower": amount * (100 + more_percent) // 100,
            "median_ns": float(np.median([m.time_ns for pair in same[name] for m in pair[0]])),
            "median_samples": float(np.median([m.whole["gpu_span" if step_ns else "cpu_wall"].summary.count
                                               for pair in same[name] for m in pair[0]])),
            "with_blocks_left_out": sum(bool(m.protocol["left_out_blocks"]) for m in taken_all),
            "clock_moved": sum(m.clock_moved for m in taken_all),
            "same": counted(judged(same[name], step_ns), equal_wrong, VerdictKind.SAME),
            "slower": counted(judged(slower[name], step_ns), slow_wrong, VerdictKind.SLOWER),
        }  # fmt: skip
        if rounds > 1:
            found["same_in_turns"] = counted(judged_in_turns(same[name]), equal_wrong, VerdictKind.SAME)
            found["slower_in_turns"] = counted(judged_in_turns(slower[name]), slow_wrong, VerdictKind.SLOWER)
        results.append(found)
        for key, text in {"same": "the same thing twice", "slower": f"{more_percent} % more work"}.items():
            click.echo(summary(f"{name} ({found['median_ns'] * 1e-3:.0f} µs), {text}", found[key]))
            if rounds > 1:
                click.echo(summary("    by the ratios within rounds", found[f"{key}_in_turns"]))
    json_path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        **run_context(device), "protocol": protocol.to_dict(), "seed": seed, "asked_pairs": pairs, "rounds": rounds,
        "more_percent": more_percent,
        "measured_s": measured_s, "results": results,
    }  # fmt: skip
    write_json(json_path, document)
    click.echo(f"wrote {json_path.name}")


if __name__ == "__main__":
    main()
