"""How often is `gridwise ab` wrong on this device? This version against itself, and against one that does 2 % more.

Usage: python benchmarks/ab_study.py [--times 20] [--seed 0] [--study same|slower|both] [--json FILE]

Each time is one run of `gridwise ab`, with processes of its own, of few cases. The slower version is a copy of this
one that makes each uploaded array 2 % longer, so that its kernels read, compute and write 2 % more, and that gives back
outputs without these items. It is measured where time follows the number of items: arrays larger than the caches.
Runs with other seeds can be made separately, and their files merged with --merge.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.stats import binomtest

from gridwise_py.bench.ab.environments import Environment, find_environment
from gridwise_py.bench.ab.judge import Judged, judge
from gridwise_py.bench.ab.turns import NotComparable, Settings, measure_in_turns
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.sweep.suite import Job
from gridwise_py.errors import GridwiseError
from gridwise_py.storage.json_files import write_json

ROOT = Path(__file__).resolve().parents[1]
SHARE = 50  # one item more for so many: 2 %
#: Their time follows the number of items; those of reduce and scan depend on how items fall into workgroups, too.
LONG = ("vector_add", "copy")

_MORE_ITEMS = f"""

def _with_more_items():
    global asarray
    import numpy
    from .runtime import array as arrays

    plain_asarray, plain_to_numpy, usual = arrays.asarray, arrays.Array.to_numpy, {{}}

    def asarray(data, *words, **options):
        more = len(data) // {SHARE}
        usual[len(data) + more] = len(data)
        # Zeros change no sum.
        return plain_asarray(numpy.concatenate([data, numpy.zeros(more, data.dtype)]), *words, **options)

    def to_numpy(self, *words, **options):
        items = plain_to_numpy(self, *words, **options)
        return items[: usual.get(len(items), len(items))]

    arrays.Array.to_numpy = to_numpy


_with_more_items()
"""


def slower_copy(into: Path) -> Path:
    """Make a copy of the library that does 2 % more, and return its folder."""
    for name in ("gridwise_py", "shaders"):
        shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (into / "gridwise_py" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(_MORE_ITEMS)
    return into


def jobs(is_cpu: bool, study: str) -> list[Job]:
    """Return the cases of a study."""
    short, long = (1 << 12, 1 << 16) if is_cpu else (1 << 16, 1 << 24)
    wanted = [(name, long, Mode.BATCH) for name in LONG] + [(LONG[0], long, Mode.HOT)]
    if study == "same":
        wanted += [("reduce", short, Mode.BATCH), ("scan", short, Mode.LATENCY)]
    return [Job(Case.build(name, n, "u32", "add"), mode, i) for i, (name, n, mode) in enumerate(wanted)]


def rows_of(judged: Judged) -> list[dict[str, Any]]:
    """Return the rows that count: no CPU walls."""
    return [
        {
            "case": row.case, "kind": row.verdict.kind.value, "ratio": row.verdict.ratio, "low": row.verdict.low,
            "high": row.verdict.high, "old_ns": row.old_ns, "between_sd": row.verdict.between_sd,
            "within_sd": row.verdict.within_sd, "settle": row.settle,
        }
        for row in judged.rows
        if row.name != "cpu_wall"
    ]  # fmt: skip


def report(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Print and return the counts of all runs of a study."""
    summary: dict[str, Any] = {}
    for study in ("same", "slower"):
        taken = [run for run in runs if run["study"] == study]
        rows = [row for run in taken for row in run["rows"]]
        if not rows:
            continue
        wrong = ("faster", "slower") if study == "same" else ("faster", "same")
        right = "same" if study == "same" else "slower"
        hits = {
            "false": sum(row["kind"] in wrong for row in rows),
            "right": sum(row["kind"] == right for row in rows),
            "ambiguous": sum(row["kind"] == "ambiguous" for row in rows),
        }
        high = float(binomtest(hits["false"], len(rows)).proportion_ci().high)
        failed = sum(run["past_gate"] > 0 for run in taken)
        print(
            f"{study}: {len(taken)} runs, {len(rows)} rows: "
            + ", ".join(f"{name} {count} ({100 * count / len(rows):.1f} %)" for name, count in hits.items())
            + f"; false at most {100 * high:.1f} %; exit 1 in {failed} runs"
        )
        print(f"  {'case':38} {'OLD µs':>9} {'median':>9} {'level sd':>9} {'±':>7}  verdicts")
        for case in dict.fromkeys(row["case"] for row in rows):
            mine = [row for row in rows if row["case"] == case]
            kinds = [row["kind"] for row in mine]
            counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
            print(
                f"  {case:38} {np.median([row['old_ns'] for row in mine]) / 1e3:9.2f} "
                f"{100 * (np.median([row['ratio'] for row in mine]) - 1):+7.2f} % "
                f"{100 * np.median([row['between_sd'] for row in mine]):7.2f} % "
                f"{_half_width(float(np.median([row['high'] - row['low'] for row in mine])) / 2)}  {counts}"
            )
        summary[study] = {"runs": len(taken), "rows": len(rows), **hits, "false_at_most": high, "exit_1": failed}
    return summary


def _half_width(share: float) -> str:
    return f"{100 * share:5.2f} %" if share < 1 else "> 100 %"


@click.command()
@click.option("--times", type=click.IntRange(min=1), default=20, show_default=True, help="Runs of each study.")
@click.option("--study", type=click.Choice(["same", "slower", "both"]), default="both", show_default=True)
@click.option("--pairs", type=click.IntRange(2, 50), default=7, show_default=True, help="Of processes, in each run.")
@click.option("--seconds", type=click.FloatRange(min=1), default=280.0, show_default=True, help="No run begins later.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the first run.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all rows here.")
@click.option("--merge", type=click.Path(exists=True, path_type=Path), multiple=True, help="Count the runs of files.")
def main(
    times: int, study: str, pairs: int, seconds: float, seed: int, adapter: str | None, json_path: Path | None,
    merge: tuple[Path, ...],
) -> None:  # fmt: skip
    """Run `gridwise ab` many times, and count its verdicts."""
    if merge:
        report([run for path in merge for run in json.loads(path.read_text(encoding="utf-8"))["runs"]])
        return
    start = time.perf_counter()
    runs: list[dict[str, Any]] = []
    this = find_environment(str(ROOT))
    studies = ("same", "slower") if study == "both" else (study,)
    clock = ""
    with tempfile.TemporaryDirectory(prefix="gridwise-slower-") as folder:
        slower = find_environment(str(slower_copy(Path(folder))))
        todo = [(number, name) for number in range(times) for name in studies]
        longest_s = 0.0
        for number, name in todo:
            begin = time.perf_counter()
            if begin + longest_s > start + seconds:
                break
            try:
                judged = _run(this, slower if name == "slower" else this, name, pairs, seed + number, adapter)
            except (GridwiseError, NotComparable) as error:  # such as a process that does not start
                print(f"{name}, seed {seed + number}: no run: {error}")
                continue
            longest_s = max(longest_s, time.perf_counter() - begin)
            clock = judged.measured.clock
            runs.append(
                {
                    "study": name, "seed": seed + number, "rows": rows_of(judged), "notes": judged.notes,
                    "past_gate": sum(row.past_gate for row in judged.rows), "seconds": time.perf_counter() - begin,
                }
            )  # fmt: skip
            for text in (*judged.wrong, *judged.broken, *judged.notes):
                print(text)
            print(f"run {len(runs)} of {len(todo)}: {name}, {runs[-1]['seconds']:.0f} s", flush=True)
            if json_path is not None:  # after each run, so that a study that is cut off leaves what it has
                write_json(json_path, {"pairs": pairs, "clock": clock, "runs": runs})
    print(f"{len(runs)} of {len(todo)} runs in {time.perf_counter() - start:.0f} s, seeds from {seed}; clock {clock}")
    summary = report(runs)
    if json_path is not None:
        write_json(json_path, {"pairs": pairs, "clock": clock, "summary": summary, "runs": runs})


def _run(old: Environment, new: Environment, study: str, pairs: int, seed: int, adapter: str | None) -> Judged:
    settings = Settings(pairs=pairs, rounds=1, turn_s=0.005, lead_s=0.002, warmup_s=0.02, seed=seed, adapter=adapter)
    environments = {"OLD": old, "NEW": new}
    order = random.Random(seed)

    def shuffled(is_cpu: bool) -> list[Job]:
        found = jobs(is_cpu, study)
        return order.sample(found, len(found))

    measured = measure_in_turns(environments, shuffled, settings)
    if measured.stopped is not None:
        raise measured.stopped  # a part is no run
    return judge(environments, measured, settings, threshold=0.01, gate=0.01)


if __name__ == "__main__":
    main()
