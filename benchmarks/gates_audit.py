"""Rules of gates, judged on runs that measured the same code: false regressions, and slowdowns that they miss.

Usage: python benchmarks/gates_audit.py [--runs FOLDER…] [--json FILE] [--plot FILE] [--resamples 2000] [--seed 0]

No GPU is needed: samples come from files in benchmarks/results/. Each pair is two runs of the same code on one kind of
machine. Each rule judges it in both orders. A regression that it sees is false. Then the times of the newer run are
multiplied by 1.02, 1.05 and 1.10, and a regression that it does not see is missed. Rates have 95 % intervals (Clopper
and Pearson) for as many trials as there are pairs; both orders of a pair exclude each other for a false regression, so
its interval is half of that of a pair. Rows of one pair of runs depend on each other, which no interval contains.

    H200, kernels           `gridwise bench` twice, one process each: hot and cold, copy, vector add, reduce, scan
    H200, CUB and PyTorch   other libraries' code, in files of different hours and days
    lavapipe                runs of benchmarks/separate_runs.py on a shared machine, with all and with one process a run

Folders `gates` of a machine in benchmarks/results/ are runs of `separate_runs.py measure`; --runs adds others.
docs/contribute/statistics.md has the table and the picture.

The rules, by their sources:

    fixed                   ratio of medians or of minima over 1 + threshold
    pytest-benchmark        `--benchmark-compare-fail=min:5%`: PercentageRegressionCheck in pytest_benchmark/utils.py
    Mann and Whitney        one-sided, p < 0.05, on all samples as one
    nvbench legacy          SLOW in python/scripts/nvbench_compare.py at 66212f1 (12 August 2026): means that differ by
                            more than the smaller of both relative standard deviations
    nvbench robust          SLOW in nvbench_compare_robust.py at 66212f1, preset default: the new minimum is over the
                            old third quartile by 0.5 % or more. It also asks the SM clock to confirm that; our samples
                            have no clock each, so a constant one is assumed
    criterion.rs            src/analysis/compare.rs and src/report.rs: bootstrapped t test with p < 0.05, and the 95 %
                            interval of the ratio of means above the noise threshold of 1 %
    gridwise                bench/analysis/compare.py and bench/stats/verdict.py: `slower` at thresholds of 2 % (the
                            default) and 1 %, and the gate of 5 %
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, mannwhitneyu

from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.report.picture import beside, check_picture, still, titled, write_picture
from gridwise_py.bench.report.vega import COLOURS, SHAPES, Datasets, Spec, load_altair
from gridwise_py.bench.results.context import host_context
from gridwise_py.bench.results.model import CaseKey, Result, Results
from gridwise_py.bench.results.rounds import by_case
from gridwise_py.bench.stats.verdict import Pair, Verdict, VerdictKind, judge_all
from gridwise_py.storage.json_files import write_json

RESULTS = Path(__file__).resolve().parent / "results"
SLOWDOWNS = (1.0, 1.02, 1.05, 1.10)
GATE = 1.05
#: The step of the clock of an H200, in ns; of a hundred calls back to back a hundredth of it.
STEP_NS, LAUNCHES = 32.0, 100

Times = NDArray[np.float64]


# ---- what is judged


@dataclass(frozen=True)
class Row:
    """The times of one case in two runs, in ns: a block for each process; `step_ns` is the step of the clock."""

    case: str
    old: list[list[float]]
    new: list[list[float]]
    step_ns: float = 0.0

    def pooled(self) -> tuple[Times, Times]:
        """Return all times of each side."""
        return np.concatenate(self.old), np.concatenate(self.new)


@dataclass(frozen=True)
class RunPair:
    """Two runs of the same code; with documents where they are files of `gridwise bench`."""

    rows: tuple[Row, ...]
    documents: tuple[Results, Results] | None = None

    def reversed(self) -> RunPair:
        """Return it in the other order."""
        rows = tuple(Row(row.case, row.new, row.old, row.step_ns) for row in self.rows)
        return RunPair(rows, None if self.documents is None else (self.documents[1], self.documents[0]))


@dataclass(frozen=True)
class RunSet:
    """Pairs of runs on one machine."""

    name: str
    about: str
    files: tuple[str, ...]
    pairs: tuple[RunPair, ...]

    @property
    def row_count(self) -> int:
        """How many pairs of rows there are."""
        return sum(len(pair.rows) for pair in self.pairs)


def read(path: Path) -> Any:
    """Return the JSON of a file, packed or not."""
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        return json.load(file)


def of_documents(old: Results, new: Results) -> RunPair:
    """Return the pair of two files: the GPU spans of their common cases, where the shaders are the same."""
    rows: list[Row] = []
    sides = [by_case(side.results) for side in (old, new)]
    kept: list[CaseKey] = []
    for key, visits in sides[0].items():
        pair = (visits, sides[1].get(key, []))
        texts = {result.shaders_sha256 for side in pair for result in side}
        blocks = [[times for result in side if (times := result.positive_ns("gpu_span"))] for side in pair]
        if all(blocks) and len(texts) == 1:
            rows.append(Row(visits[0].name_with_n, *blocks, step_ns=old.tick_step_ns(visits[0])))
            kept.append(key)
    keys = set(kept)
    a, b = (replace(side, results=tuple(r for r in side.results if r.key in keys)) for side in (old, new))
    return RunPair(tuple(rows), (a, b))


def other_libraries(names: Sequence[str], sides: Sequence[str]) -> Iterator[RunPair]:
    """Yield the pairs of neighbouring files of other libraries' times, where their versions are the same."""
    files = [read(RESULTS / "h200" / name) for name in names]
    for old, new in pairwise(files):
        found = [
            {(r.get("primitive", r.get("case")), r["n"], r["datatype"]): r["sides"] for r in file["results"]}
            for file in (old, new)
        ]
        rows: list[Row] = []
        for key, before in found[0].items():
            after = found[1].get(key, {})
            for side in sides:
                both = before.get(side, {}), after.get(side, {})
                versions = {one.get("version", one.get("cub_version")) for one in both}
                for way, step_ns in (("single_ns", STEP_NS), ("back_to_back_ns", STEP_NS / LAUNCHES)):
                    times = [[t for t in one.get(way, []) if t] for one in both]
                    if all(len(each) > 1 for each in times) and len(versions) == 1:
                        case = f"{side} {' '.join(map(str, key))} {way.removesuffix('_ns')}"
                        rows.append(Row(case, [times[0]], [times[1]], step_ns))
        yield RunPair(tuple(rows))


def separate(folder: Path, processes: int | None) -> tuple[RunPair, ...]:
    """Return the neighbours in a folder of `separate_runs.py measure`."""
    runs = [read(path) for path in sorted(folder.glob("run-*.json.xz"))]
    documents = [Results.from_json(run["document"]) for run in runs]
    cut = [
        replace(d, results=tuple(r for r in d.results if processes is None or r.process < processes)) for d in documents
    ]  # fmt: skip
    return tuple(
        of_documents(cut[i], cut[i + 1])
        for i in range(len(cut) - 1)
        if runs[i]["held"] == runs[i + 1]["held"]
    )  # fmt: skip


def stored_sets(folders: Sequence[Path]) -> Iterator[RunSet]:
    """Yield the sets of stored runs, then those of the folders."""
    instrument = RESULTS / "h200" / "instrument"
    names = ("run1", "run2"), ("again1.partial", "again2.partial")
    documents = [[Results.from_json(read(instrument / f"{name}.json.xz")) for name in pair] for pair in names]
    yield RunSet(
        "H200, kernels",
        "`gridwise bench` twice within two minutes, one process each, 200 to 1,500 samples, hot and cold",
        tuple(f"h200/instrument/{name}.json.xz" for pair in names for name in pair),
        tuple(of_documents(*pair) for pair in documents),
    )
    peers = ("peers.json", "peers_again.json")
    streams = ("stream_peer_before.json", "stream_peer_again.json", "stream_peer.json")
    yield RunSet(
        "H200, CUB and PyTorch",
        "the same release on another hour or day, 12 to 25 samples, single calls between CUDA events and back to back",
        tuple(f"h200/{name}" for name in (*peers, *streams)),
        (*other_libraries(peers, ("cub", "torch")), *other_libraries(streams, ("cub",))),
    )
    for folder in folders:
        first = read(min(folder.glob("run-*.json.xz")))["document"]
        count = len({result["process"] for result in first["results"]})
        title = "lavapipe" if first["device"]["adapter_type"] == "CPU" else first["device"]["adapter"]
        title = title.removeprefix("NVIDIA ").split(" ")[0]
        where = f"{folder.relative_to(RESULTS)}" if folder.is_relative_to(RESULTS) else folder.name
        for processes in (count, 1) if count > 1 else (1,):
            words = f"{processes} processes" if processes > 1 else "1 process"
            yield RunSet(
                f"{title}, {words}",
                f"separate runs, {words} a run",
                (f"{where}/run-*.json.xz",),
                separate(folder, None if processes == count else processes),
            )


# ---- rules on the samples of a row, all processes as one


def fixed(statistic: Callable[[Times], float], threshold: float, old: Times, new: Times) -> bool:
    """Whether a statistic of the new times is over the old one by more than a threshold."""
    return bool(statistic(new) / statistic(old) > 1 + threshold)


def mann_whitney(old: Times, new: Times) -> bool:
    """Whether a rank test finds the new times longer."""
    return bool(mannwhitneyu(new, old, alternative="greater").pvalue < 0.05)


def nvbench_legacy(old: Times, new: Times) -> bool:
    """Whether nvbench-compare-legacy says SLOW."""
    noise = [float(times.std(ddof=1) / times.mean()) for times in (old, new)]
    known = [share for share in noise if share]
    difference = new.mean() / old.mean() - 1
    return bool(known and difference > min(known))


def nvbench_robust(old: Times, new: Times) -> bool:
    """Whether nvbench-compare-robust says SLOW, at a constant clock."""
    ranked = np.sort(old)
    third_quartile = ranked[(75 * (ranked.size - 1) + 50) // 100]
    return bool(new.min() > third_quartile and new.min() / third_quartile - 1 >= 0.005)


def resampled(times: Times, size: int, resamples: int, rng: np.random.Generator) -> Iterator[Times]:
    """Yield resamples with replacement, in parts that fit a cache."""
    part = max(1, 1_000_000 // size)
    for first in range(0, resamples, part):
        yield times[rng.integers(0, times.size, (min(part, resamples - first), size))]


def criterion(old: Times, new: Times, *, resamples: int = 2000, seed: int = 0) -> bool:
    """Whether criterion.rs says that performance has regressed."""
    rng = np.random.default_rng(seed)

    def t(a: Times, b: Times) -> Times:
        error = np.sqrt(a.var(axis=-1, ddof=1) / a.shape[-1] + b.var(axis=-1, ddof=1) / b.shape[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((a.mean(axis=-1) - b.mean(axis=-1)) / error)

    seen = float(t(new, old))
    if seen <= 0:
        return False
    both = np.concatenate([new, old])
    under_null = np.concatenate(
        [t(each[:, : new.size], each[:, new.size :]) for each in resampled(both, both.size, resamples, rng)]
    )
    under_null = under_null[np.isfinite(under_null)]
    below = int((under_null < seen).sum())
    p_value = 2 * min(below, under_null.size - below) / max(under_null.size, 1)
    if p_value >= 0.05:
        return False
    means = [
        np.concatenate([each.mean(axis=1) for each in resampled(side, side.size, resamples, rng)])
        for side in (new, old)
    ]
    return bool(np.quantile(means[0] / means[1], 0.025) > 1.01)


RowRule = Callable[[Times, Times], bool]


def row_rules(resamples: int, seed: int) -> dict[str, RowRule]:
    """Return the rules on pooled samples, by name."""
    return {
        "median, 5 %": partial(fixed, np.median, 0.05),
        "median, 50 %": partial(fixed, np.median, 0.5),
        "median, 200 %": partial(fixed, np.median, 2.0),
        "minimum, 50 %": partial(fixed, np.min, 0.5),
        "minimum, 200 %": partial(fixed, np.min, 2.0),
        "pytest-benchmark min:5%": partial(fixed, np.min, 0.05),
        "pytest-benchmark mean:5%": partial(fixed, np.mean, 0.05),
        "Mann and Whitney": mann_whitney,
        "nvbench legacy": nvbench_legacy,
        "nvbench robust": nvbench_robust,
        "criterion.rs": partial(criterion, resamples=resamples, seed=seed),
    }


#: Our verdict `slower` by its threshold; the gate of 5 % is that of the default threshold.
VERDICTS = {"gridwise, 2 %": 0.02, "gridwise, 1 %": 0.01}
GATED, GATED_BY = "gridwise, gate 5 %", 0.02


def verdicts(pair: RunPair, slowdown: float, threshold: float = GATED_BY) -> list[Verdict]:
    """Return what `gridwise compare` says of each row."""
    if pair.documents is None:
        # Nothing is known of processes: one on each side, as `gridwise compare` takes files that do not say it.
        pairs = [Pair(r.old, [[slowdown * t for t in block] for block in r.new], r.step_ns) for r in pair.rows]
        return judge_all(pairs, threshold=threshold)
    old, new = pair.documents
    later = replace(new, results=tuple(slower(result, slowdown) for result in new.results))
    found = compare(old, later, threshold=threshold)
    return [
        row.verdict for row in found.rows if row.part == "whole" and row.name == "gpu_span" and row.verdict is not None
    ]


def slower(result: Result, slowdown: float) -> Result:
    """Return a result whose times on the GPU are longer."""
    series = {
        name: replace(one, samples_ns=tuple(slowdown * t for t in one.samples_ns)) if name == "gpu_span" else one
        for name, one in result.whole.series.items()
    }
    kernels = tuple(replace(k, samples_ns=tuple(slowdown * t for t in k.samples_ns)) for k in result.kernels)
    return replace(result, kernels=kernels, whole=replace(result.whole, series=series))


# ---- counting


@dataclass
class Count:
    """How often a rule saw a regression in one set, at one slowdown, and why it left rows undecided, if it can."""

    seen: int = 0
    undecided: Counter[str] | None = None
    pairs_with_one: int = 0
    cases: Counter[str] = field(default_factory=Counter)


def counted(runs: RunSet, resamples: int, seed: int, progress: Callable[[str], None]) -> dict[str, dict[float, Count]]:
    """Return the counts of each rule at each slowdown, over both orders."""
    rules = row_rules(resamples, seed)
    found = {name: {slowdown: Count() for slowdown in SLOWDOWNS} for name in (*rules, *VERDICTS, GATED)}
    for number, pair in enumerate(runs.pairs, start=1):
        progress(f"{runs.name}: pair {number} of {len(runs.pairs)}")
        for ordered in (pair, pair.reversed()):
            for slowdown in SLOWDOWNS:
                for name, rule in rules.items():
                    samples = [row.pooled() for row in ordered.rows]
                    put(found[name][slowdown], ordered, [rule(old, slowdown * new) for old, new in samples])
                for name, threshold in VERDICTS.items():
                    judged = verdicts(ordered, slowdown, threshold)
                    put_verdicts(found[name][slowdown], ordered, judged, 1.0)
                    if threshold == GATED_BY:
                        put_verdicts(found[GATED][slowdown], ordered, judged, GATE)
    return found


def put(count: Count, pair: RunPair, slow: Sequence[bool]) -> None:
    """Add one ordered pair of runs."""
    count.seen += sum(slow)
    count.pairs_with_one += any(slow)
    count.cases.update(row.case for row, is_slow in zip(pair.rows, slow, strict=True) if is_slow)


def put_verdicts(count: Count, pair: RunPair, judged: Sequence[Verdict], gate: float) -> None:
    """Add what we say of one ordered pair of runs: a regression is `slower` by more than the gate."""
    put(count, pair, [verdict.kind is VerdictKind.SLOWER and verdict.ratio > gate for verdict in judged])
    causes = Counter(verdict.cause.value for verdict in judged if verdict.cause is not None)
    count.undecided = (count.undecided or Counter()) + causes


def share(hits: int, trials: int) -> dict[str, float]:
    """Return a share of the trials of both orders, with an interval for as many trials as there are pairs of rows."""
    pairs = trials // 2
    interval = binomtest(min(round(hits / 2), pairs), pairs).proportion_ci()
    return {"share": hits / trials, "low": float(interval.low), "high": float(interval.high)}


def false_share(hits: int, trials: int) -> dict[str, float]:
    """Return the share of false regressions: a pair has at most one, in one of its orders."""
    pairs = trials // 2
    if hits > pairs:
        return share(hits, trials)
    interval = binomtest(hits, pairs).proportion_ci()
    return {"share": hits / trials, "low": float(interval.low) / 2, "high": float(interval.high) / 2}


def entry(runs: RunSet, found: Mapping[str, Mapping[float, Count]]) -> dict[str, Any]:
    """Return a set for the file."""
    rows, pairs = runs.row_count, len(runs.pairs)
    rules = {
        name: {
            "false": false_share(counts[1.0].seen, 2 * rows),
            "runs_with_a_false_one": counts[1.0].pairs_with_one / (2 * pairs),
            "missed": {
                f"{100 * (slowdown - 1):.0f} %": share(2 * rows - count.seen, 2 * rows)
                for slowdown, count in counts.items()
                if slowdown > 1
            },
            "undecided": None
            if counts[1.0].undecided is None
            else {
                f"{100 * (slowdown - 1):.0f} %": {
                    cause: n / (2 * rows) for cause, n in (count.undecided or Counter[str]()).most_common()
                }
                for slowdown, count in counts.items()
            },
            "most_often_false": dict(counts[1.0].cases.most_common(3)),
        }
        for name, counts in found.items()
    }
    samples = [len(block) for pair in runs.pairs for row in pair.rows for block in (*row.old, *row.new)]
    return {
        "name": runs.name, "about": runs.about, "files": list(runs.files), "pairs_of_runs": pairs,
        "pairs_of_rows": rows, "samples": [min(samples), max(samples)], "rules": rules,
    }  # fmt: skip


# ---- showing


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.1f}" if 0 < value < 0.1 else f"{100 * value:.0f}"


def interval(found: Mapping[str, float]) -> str:
    """Return a share with its interval, in percent."""
    return f"{percent(found['share'])} ({percent(found['low'])} to {percent(found['high'])})"


def markdown(document: Mapping[str, Any]) -> str:
    """Return a table for each set."""
    lines: list[str] = []
    for found in document["sets"]:
        low, high = found["samples"]
        lines += [
            f"### {found['name']}",
            "",
            f"{found['about'][0].upper()}{found['about'][1:]}; {found['pairs_of_runs']} pairs of runs, "
            f"{found['pairs_of_rows']} pairs of rows, {low:,} to {high:,} samples in each process. In percent:",
            "",
            "| rule | false regressions | 2 % missed | 5 % missed | 10 % missed | runs that fail for nothing |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, rule in found["rules"].items():
            missed = " | ".join(interval(rule["missed"][size]) for size in ("2 %", "5 %", "10 %"))
            fails = percent(rule["runs_with_a_false_one"])
            lines.append(f"| {name} | {interval(rule['false'])} | {missed} | {fails} |")
        lines.append("")
    return "\n".join(lines)


def summary(document: Mapping[str, Any]) -> str:
    """Return one table of all sets, without intervals: of each rule what is false, and what is missed of 5 and 10 %."""
    sets = document["sets"]
    lines = [f"| rule | {' | '.join(found['name'] for found in sets)} |", f"| --- |{' --- |' * len(sets)}"]
    for name in sets[0]["rules"]:
        rules = [found["rules"][name] for found in sets]
        shares = [(rule["false"], rule["missed"]["5 %"], rule["missed"]["10 %"]) for rule in rules]
        cells = ["; ".join(percent(part["share"]) for part in parts) for parts in shares]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def picture(document: Mapping[str, Any]) -> Spec:
    """Return the specification of the picture: false regressions, and what is missed, of each rule in each set."""
    alt = load_altair()
    sets = [found["name"] for found in document["sets"]]
    names = list(document["sets"][0]["rules"])
    charts: list[Spec] = []
    columns: list[tuple[str, Callable[[Mapping[str, Any]], Mapping[str, float]]]] = [
        ("false regressions", lambda rule: rule["false"]),
        *((f"{size} slower: missed", lambda rule, size=size: rule["missed"][size]) for size in ("2 %", "5 %", "10 %")),
    ]
    for title, of in columns:
        datasets = Datasets()
        rows = [
            {"rule": name, "set": found["name"], **{end: 100 * of(rule)[end] for end in ("share", "low", "high")}}
            for found in document["sets"]
            for name, rule in found["rules"].items()
        ]
        base = alt.Chart(datasets.data(rows)).encode(
            y=alt.Y("rule:N", title=None, sort=names, axis=None if charts else alt.Axis()),
            yOffset=alt.YOffset("set:N", sort=sets),
        )
        most = 60 if not charts else 100
        scale = alt.Scale(domain=[0, most], clamp=True, nice=False)
        colour = alt.Color("set:N", title=None, scale=alt.Scale(domain=sets, range=list(COLOURS[: len(sets)])))
        shape = alt.Shape("set:N", title=None, scale=alt.Scale(domain=sets, range=list(SHAPES[: len(sets)])))
        line = base.mark_rule(strokeWidth=1.5).encode(
            x=alt.X("low:Q", title="%", scale=scale, axis=alt.Axis(tickCount=4)), x2="high:Q", color=colour
        )
        point = base.mark_point(size=45, filled=True, opacity=1).encode(x=alt.X("share:Q"), color=colour, shape=shape)
        spec = datasets.spec(alt.layer(line, point), height=44 * len(names))
        charts.append(titled(still(spec, 170), [title], size=12))
    text = (
        "Runs of the same code, judged in both orders; lines are 95 % intervals. Slowdowns: the newer times multiplied."
    )
    return titled(beside(charts, shared=True), ["How often gates are wrong"], text)


@click.command()
@click.option("--runs", "folders", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--resamples", type=click.IntRange(min=100), default=2000, show_default=True, help="Of criterion's rule.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the rates here.")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), help="Write the picture: .svg, .png or .pdf.")
def main(
    folders: Iterable[Path], resamples: int, seed: int, json_path: Path | None, plot_path: Path | None,
) -> None:  # fmt: skip
    """Judge stored runs by each rule."""
    if plot_path is not None:
        check_picture(plot_path)
    stored = sorted(path for path in RESULTS.glob("*/gates") if path.is_dir())
    sets = [
        entry(runs, counted(runs, resamples, seed, partial(click.echo, err=True)))
        for runs in stored_sets([*stored, *(folder.resolve() for folder in folders)])
    ]
    document = {"context": host_context(), "resamples": resamples, "seed": seed, "sets": sets}
    click.echo(markdown(document))
    if json_path is not None:
        write_json(json_path, document)
    if plot_path is not None:
        write_picture(picture(document), plot_path)


if __name__ == "__main__":
    main()
