"""How often does a 95 % interval contain the true time, if each process has its own level? A study without a device.

Usage: python benchmarks/interval_coverage.py [--count 4000] [--json FILE]

Each of P processes has a level around the true time: normal, or in one of two modes (in half of the processes, or in
70 and 30 % of them; both with some spread within a mode). Levels are 0 to 5 % apart (standard deviation), and each
process has 60 samples with 1 % of noise. Columns: in how many of `count` runs the interval of a run contained the true
time (the mean logarithm of the levels), and in how many pairs of runs the interval of the ratio contained 1. With one
process, the interval is that of its samples: a tenth as many runs show what it is worth.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from gridwise_py.bench.stats.levels import difference, mean_level, process_levels
from gridwise_py.bench.stats.statistics import summarize
from gridwise_py.bench.stats.verdict import judge
from gridwise_py.storage.json_files import write_json

TRUE_NS = 1e5
SAMPLES, NOISE = 60, 0.01
APART = (0.0, 0.01, 0.05)
PROCESSES = (2, 3, 5, 7, 10, 20)
#: Share of the processes in the faster mode.
SHAPES = {"normal": None, "two modes, 50:50": 0.5, "two modes, 70:30": 0.7}
# Of the variance of two modes, within a mode.
WITHIN_MODE = 0.1


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
        summary, verdict = summarize(old[0].tolist()), judge(old[0].tolist(), new[0].tolist())
        return summary.ci_low_ns <= TRUE_NS <= summary.ci_high_ns, verdict.low <= 1 <= verdict.high
    sides = [process_levels(run, range(len(run))) for run in (old, new)]
    found = mean_level(sides[0]), difference(*sides)
    assert found[1] is not None, "there are several processes"
    truths = math.log(TRUE_NS), 0.0
    one, two = (abs(of.value - true) <= float(of.reach(0.95)) for of, true in zip(found, truths, strict=True))
    return one, two


@click.command()
@click.option("--count", type=click.IntRange(min=10), default=4000, show_default=True, help="Runs of each kind.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(count: int, seed: int, json_path: Path | None) -> None:
    """Count and print."""
    rows: list[dict[str, Any]] = []
    click.echo(f"{count} runs each; one standard error is {100 * math.sqrt(0.95 * 0.05 / count):.1f} %")
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
    if json_path is not None:
        write_json(json_path, {"samples": SAMPLES, "noise": NOISE, "seed": seed, "results": rows})


if __name__ == "__main__":
    main()
