"""How often does a 95 % interval contain the true time, if each process has its own level? A study without a device.

Usage: python benchmarks/interval_coverage.py [--study processes|steps|budget] [--count 4000] [--json FILE]

Each of P processes has a level around the true time: normal, or in one of two modes (in half of the processes, or in
70 and 30 % of them; both with some spread within a mode). Levels are 0 to 5 % apart (standard deviation), and each
process has 60 samples with 1 % of noise. Columns: in how many of `count` runs the interval of a run contained the true
time (the mean logarithm of the levels), and in how many pairs of runs the interval of the ratio contained 1. With one
process, the interval is that of its samples: a tenth as many runs show what it is worth.

--study steps: the interval of the ratio of two runs of 5 processes, if all times of a process are one multiple of the
clock's step, as the times of short kernels are, and levels differ by 0 to 4 steps (standard deviation). The times of
the runs differ by up to 3 %. Columns: how often the interval contains the true ratio, and half of its width in steps;
with the error of a step as `compare` has it, without, and with half a step for each side, whatever the levels are.

--study budget: runs that take further processes until their interval is narrow, as `gridwise bench --budget` does.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from gridwise_py.bench.results.precision import TARGET
from gridwise_py.bench.stats.levels import difference, mean_level, process_levels, step_share
from gridwise_py.bench.stats.statistics import summarize
from gridwise_py.bench.stats.verdict import Pair, judge_all
from gridwise_py.bench.sweep.budget import LEAST_PROCESSES
from gridwise_py.storage.json_files import write_json

TRUE_NS = 1e5
SAMPLES, NOISE = 60, 0.01
APART = (0.0, 0.01, 0.05)
PROCESSES = (2, 3, 5, 7, 10, 20)
#: Share of the processes in the faster mode.
SHAPES = {"normal": None, "two modes, 50:50": 0.5, "two modes, 70:30": 0.7}
# Of the variance of two modes, within a mode.
WITHIN_MODE = 0.1
#: Of the study of steps: the clock's, and standard deviations of levels, in steps.
STEP_NS, STEPS_APART, OF_STEPS = 32.0, (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0), 5
SHORT_NS, MOST_CHANGED = 200 * STEP_NS, 0.03
#: Of the study of budgets.
BUDGET_APART, MOST_PROCESSES = (0.006, 0.01, 0.02), 50


def levels(shape: str, apart: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return logarithms of levels with mean 0 and this standard deviation."""
    faster, z = SHAPES[shape], rng.standard_normal(count)
    if faster is None:
        return apart * z
    modes = np.where(rng.random(count) < faster, faster - 1, faster) / math.sqrt(faster * (1 - faster))
    return apart * (math.sqrt(1 - WITHIN_MODE) * modes + math.sqrt(WITHIN_MODE) * z)


def run_of(shape: str, apart: float, processes: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the samples of each process of a run."""
    found = levels(shape, apart, processes, rng)
    return [TRUE_NS * np.exp(level + NOISE * rng.standard_normal(SAMPLES)) for level in found]


def covered(old: list[np.ndarray], new: list[np.ndarray]) -> tuple[bool, bool]:
    """Whether the interval of a run contains the true time, and that of the ratio of two runs 1."""
    if len(old) == 1:
        summary, (verdict,) = summarize(old[0].tolist()), judge_all([Pair(old[0].tolist(), new[0].tolist())])
        assert summary.interval_ns is not None, "there are enough samples"
        low, high = summary.interval_ns
        return low <= TRUE_NS <= high, verdict.low <= 1 <= verdict.high
    sides = [process_levels(run, range(len(run))) for run in (old, new)]
    found = mean_level(sides[0]), difference(*sides)
    assert found[1] is not None, "there are several processes"
    truths = math.log(TRUE_NS), 0.0
    one, two = (abs(of.value - true) <= float(of.reach(0.95)) for of, true in zip(found, truths, strict=True))
    return one, two


def of_processes(count: int, seed: int) -> list[dict[str, Any]]:
    """Count and print how often intervals contain the truth, by the number of processes."""
    rows: list[dict[str, Any]] = []
    click.echo(f"{'levels':18s} {'apart':>6s} {'P':>3s} {'a run':>7s} {'a ratio':>8s}")
    for shape in SHAPES:
        for apart in APART:
            for processes in (1, *PROCESSES):
                rng = np.random.default_rng([seed, len(rows)])
                runs = count if processes > 1 else max(count // 10, 1)
                hits = [covered(*(run_of(shape, apart, processes, rng) for _ in range(2))) for _ in range(runs)]
                one, two = (float(np.mean([hit[i] for hit in hits])) for i in range(2))
                rows.append(
                    {"levels": shape, "apart": apart, "processes": processes, "count": runs, "run": one, "ratio": two}
                )
                shown = f"{100 * one:5.1f} % {100 * two:6.1f} %"
                click.echo(f"{shape:18s} {100 * apart:4.1f} % {processes:3d} {shown}")
    return rows


def rounded(shape: str, apart: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the interval of a ratio of rounded times contains the truth, and half of its width.

    With the error of a step as it is judged, without it, and with half a step for each side.
    """
    time_ns, change = SHORT_NS + STEP_NS * rng.random(), rng.uniform(-MOST_CHANGED, MOST_CHANGED)
    sides = [
        np.rint(time_ns * np.exp(levels(shape, apart * STEP_NS / SHORT_NS, OF_STEPS, rng) + level) / STEP_NS) * STEP_NS
        for level in (0.0, change)
    ]
    found = difference(*(np.log(side) for side in sides))
    assert found is not None, "there are several processes"
    reach = float(found.reach(0.95))
    step = sum(step_share(side, np.ones(side.size), STEP_NS) for side in sides)
    half_steps = sum(STEP_NS / 2 / float(side.mean()) for side in sides)
    reaches = np.array([math.hypot(reach, step), reach, reach + half_steps])
    return abs(found.value - change) <= reaches, reaches * SHORT_NS / STEP_NS


def of_steps(count: int, seed: int) -> list[dict[str, Any]]:
    """Count and print how often intervals of rounded times contain the truth."""
    rows: list[dict[str, Any]] = []
    click.echo(f"{'levels':18s} {'steps apart':>11s} {'as judged':>18s} {'without':>18s} {'half a step each':>18s}")
    for shape in SHAPES:
        for apart in STEPS_APART:
            rng = np.random.default_rng([seed, 1, len(rows)])
            runs = [rounded(shape, apart, rng) for _ in range(count)]
            hits, halves = (np.mean([run[i] for run in runs], axis=0) for i in range(2))
            cells = [f"{100 * hit:8.1f} % ±{half:5.2f}" for hit, half in zip(hits, halves, strict=True)]
            click.echo(f"{shape:18s} {apart:11.1f} " + " ".join(f"{cell:>18s}" for cell in cells))
            rows.append(
                {"levels": shape, "steps_apart": apart, "count": count, "contained": hits.tolist(),
                 "half_width_steps": halves.tolist()}
            )  # fmt: skip
    return rows


def until_narrow(shape: str, apart: float, rng: np.random.Generator) -> np.ndarray:
    """Return the levels of a run that ends when half of its interval was narrow after two processes in a row."""
    found, narrow = levels(shape, apart, MOST_PROCESSES, rng), 0
    for processes in range(LEAST_PROCESSES, MOST_PROCESSES):
        is_narrow = math.expm1(float(mean_level(found[:processes]).reach(0.95))) <= TARGET
        narrow = narrow + 1 if is_narrow else 0
        if narrow == 2:
            return found[:processes]
    return found


def of_budgets(count: int, seed: int) -> list[dict[str, Any]]:
    """Count and print how often intervals of runs with --budget contain the truth, if there is time enough."""
    rows: list[dict[str, Any]] = []
    click.echo(f"{'levels':18s} {'apart':>6s} {'processes':>10s} {'a run':>7s} {'a ratio':>8s}")
    for shape in SHAPES:
        for apart in BUDGET_APART:
            rng = np.random.default_rng([seed, 2, len(rows)])
            hits, taken = np.zeros(2), 0
            for _ in range(count):
                sides = [until_narrow(shape, apart, rng) for _ in range(2)]
                found = mean_level(sides[0]), difference(*sides)
                assert found[1] is not None, "there are several processes"
                hits += [abs(of.value) <= float(of.reach(0.95)) for of in found]
                taken += sides[0].size
            one, two = (float(share) for share in hits / count)
            click.echo(f"{shape:18s} {100 * apart:4.1f} % {taken / count:10.1f} {100 * one:5.1f} % {100 * two:6.1f} %")
            rows.append(
                {"levels": shape, "apart": apart, "count": count, "processes": taken / count, "run": one, "ratio": two}
            )
    return rows


STUDIES = {"processes": of_processes, "steps": of_steps, "budget": of_budgets}


@click.command()
@click.option("--study", type=click.Choice(list(STUDIES)), default="processes", show_default=True)
@click.option("--count", type=click.IntRange(min=10), default=4000, show_default=True, help="Runs of each kind.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(study: str, count: int, seed: int, json_path: Path | None) -> None:
    """Count and print."""
    click.echo(f"{count} runs each; one standard error is {100 * math.sqrt(0.95 * 0.05 / count):.1f} %")
    rows = STUDIES[study](count, seed)
    if json_path is not None:
        write_json(json_path, {"study": study, "samples": SAMPLES, "noise": NOISE, "seed": seed, "results": rows})


if __name__ == "__main__":
    main()
