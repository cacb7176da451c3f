"""How often `gridwise compare` is wrong: on stored pairs of runs of the same code, and on invented times.

Usage: python benchmarks/gates.py [OLD.json NEW.json]... [--study stored,invented] [--threshold 2%] [--json FILE]
       python benchmarks/gates.py --study stored --sets "lavapipe, 3" --slower 1.5 --slower 2
       python benchmarks/gates.py --audit benchmarks/results/gates_audit.json

No GPU is needed. Of each pair of runs both orders are judged. A regression that is seen is false. Then the times of the
newer run are multiplied by 1.02, 1.05 and 1.10, and a regression that is not seen is missed. In brackets are 95 %
intervals (Clopper and Pearson) for as many trials as there are pairs; rows of one pair of runs depend on each other,
which no interval contains.

    stored    pairs in benchmarks/results/: `gridwise bench` twice on an H200, one process each; the times of CUB and
              PyTorch in files of other hours and days; separate runs on an H100 and on lavapipe on a shared machine,
              with all processes of a run and with one. Given pairs come instead.
    invented  levels of processes 0 to 5 % apart (standard deviation), normal or in two modes; each process has 60
              samples with 1 % of noise. Also: how often the interval of the ratio contains the truth.

docs/contribute/statistics.md compares the rules of other tools on the same pairs, from gates_audit.json. Their rows are
from benchmarks/gates_audit.py at commit 79ce4883; --audit FILE makes those of `gridwise compare` anew.
"""

from __future__ import annotations

import copy
import json
import lzma
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner
from scipy.stats import binomtest

from gridwise_py.bench.results.context import host_context
from gridwise_py.cli import main as gridwise

RESULTS = Path(__file__).resolve().parent / "results"
INSTRUMENT = (("run1", "run2"), ("again1.partial", "again2.partial"))
PEERS = (
    ("peers", "peers_again"), ("stream_peer_before", "stream_peer_again"), ("stream_peer_again", "stream_peer"),
)  # fmt: skip
LIBRARIES = ("cub", "torch")
SLOWDOWNS = (1.02, 1.05, 1.10)
#: Of the invented times: how levels lie (the share of processes in the faster mode), and how far they are apart.
SHAPES = {"normal": None, "two modes, 50:50": 0.5, "two modes, 70:30": 0.7}
APART, PROCESSES, SAMPLES, NOISE, WITHIN_MODE = (0.0, 0.005, 0.01, 0.05), (2, 3, 5, 7), 60, 0.01, 0.1
#: Rows of a file of invented times.
ROWS = 20

Document = dict[str, Any]
Times = Sequence[float]


def read(path: Path) -> Any:
    """Return the JSON of a file, packed or not."""
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        return json.load(file)


# ---- what is judged


def of_processes(document: Document, most: int) -> Document:
    """Return a document with the results of the first processes."""
    return {**document, "results": [one for one in document["results"] if one.get("process", 0) < most]}


def with_common_kernels(old: Document, new: Document) -> tuple[Document, Document]:
    """Return both documents with the cases that have one text of their shaders on both sides."""
    texts: dict[str, set[str]] = {}
    for result in (*old["results"], *new["results"]):
        texts.setdefault(case_of(result), set()).add(json.dumps(result["shaders_sha256"]))
    kept = {case for case, found in texts.items() if len(found) == 1}
    a, b = ({**side, "results": [r for r in side["results"] if case_of(r) in kept]} for side in (old, new))
    return a, b


def case_of(result: Mapping[str, Any]) -> str:
    """Return what says that two results are of one case."""
    return json.dumps([result[name] for name in ("primitive", "n", "mode", "case")], sort_keys=True)


def template() -> Document:
    """Return a document whose header and first result others are made from."""
    found: Document = read(min(RESULTS.glob("h100/gates/run-*.json.xz")))["document"]
    return found


def document_of(like: Document, rows: Iterable[Sequence[Times]]) -> Document:
    """Return a document with a case for each row; a row has the times of each process, in ns."""
    result, results = like["results"][0], []
    for n, processes in enumerate(rows, start=1):
        for process, times in enumerate(processes):
            series = {**result["whole"]["series"]["gpu_span"], "samples_ns": list(map(float, times))}
            whole = {"gpu_span_ns": float(np.median(times)), "cpu_wall_ns": None, "series": {"gpu_span": series}}
            own = {"n": n, "position": n, "process": process, "whole": whole, "kernels": [], "canary_ns": []}
            results.append({**result, **own, "observations": {}})
    return {**like, "results": results}


def of_libraries(like: Document, old: Document, new: Document) -> tuple[Document, Document]:
    """Return documents of the times of CUB and PyTorch in two files of peers, where their versions are the same."""
    sides = [
        {(r.get("primitive", r.get("case")), r["n"], r["datatype"]): r["sides"] for r in file["results"]}
        for file in (old, new)
    ]
    rows: list[tuple[list[Times], list[Times]]] = []
    for key, library, way in product(sides[0].keys() & sides[1].keys(), LIBRARIES, ("single_ns", "back_to_back_ns")):
        both = [side[key].get(library, {}) for side in sides]
        versions = {one.get("version", one.get("cub_version")) for one in both}
        times = [[ns for ns in one.get(way, ()) if ns] for one in both]
        if all(len(each) > 1 for each in times) and len(versions) == 1:
            rows.append(([times[0]], [times[1]]))
    return document_of(like, [row[0] for row in rows]), document_of(like, [row[1] for row in rows])


def stored_pairs() -> Iterator[tuple[str, Document, Document]]:
    """Yield the name of a set, and two runs of the same code."""
    h200, like = RESULTS / "h200", template()
    for names in INSTRUMENT:
        old, new = (read(h200 / "instrument" / f"{name}.json.xz") for name in names)
        yield "H200, 1 process", *with_common_kernels(old, new)
    for names in PEERS:
        yield "H200, CUB and PyTorch", *of_libraries(like, *(read(h200 / f"{name}.json") for name in names))
    for folder in sorted(RESULTS.glob("*/gates")):
        runs = [read(path) for path in sorted(folder.glob("run-*.json.xz"))]
        count = 1 + max(result["process"] for result in runs[0]["document"]["results"])
        for most, (old, new) in product((count, 1), pairwise(runs)):
            if old["held"] == new["held"]:
                name = f"{folder.parent.name}, {most} process{'es' if most > 1 else ''}"
                yield name, *with_common_kernels(*(of_processes(run["document"], most) for run in (old, new)))


def scale(series: Mapping[str, Any], factor: float) -> Document:
    """Return a series, or its summary, whose times are longer."""
    made = dict(series)
    for name, value in series.items():
        if name == "summary":
            made[name] = scale(value, factor)
        elif name == "samples_ns":
            made[name] = [factor * ns for ns in value]
        elif name.endswith("_ns") and value is not None:
            made[name] = factor * value
    return made


def slow_down(document: Document, factor: float) -> Document:
    """Return a document whose times on the GPU are longer."""
    made = copy.deepcopy(document)
    for result in made["results"]:
        result["kernels"] = [scale(kernel, factor) for kernel in result["kernels"]]
        series = {name: scale(one, factor) for name, one in result["whole"]["series"].items()}
        result["whole"] = {**scale(result["whole"], factor), "series": series}
    return made


def judge(old: Document, new: Document, threshold: str) -> list[dict[str, Any]]:
    """Return what `gridwise compare` says of the time on the GPU of each case."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("old.json", "new.json")]
        for path, document in zip(paths, (old, new), strict=True):
            path.write_text(json.dumps(document), encoding="utf-8")
        words = ["compare", *map(str, paths), "--format", "json", "--threshold", threshold, "--force"]
        done = CliRunner().invoke(gridwise, words)
    if done.exit_code not in (0, 1):
        raise click.ClickException(done.output)
    rows = json.loads(done.stdout)["rows"]
    return [row["verdict"] for row in rows if (row["part"], row["name"]) == ("whole", "gpu_span") and row["verdict"]]


# ---- counting


def share(hits: int, trials: int, pairs: int) -> dict[str, float]:
    """Return a share, with an interval for as many trials as there are pairs."""
    interval = binomtest(min(pairs, round(hits * pairs / trials)), pairs).proportion_ci()
    return {"share": hits / trials, "low": float(interval.low), "high": float(interval.high)}


def show(found: Mapping[str, float]) -> str:
    """Return a share in percent, with its interval."""
    return f"{100 * found['share']:.1f} ({100 * found['low']:.1f} to {100 * found['high']:.1f})"


#: Verdicts by set and factor.
Seen = dict[str, dict[float, list[dict[str, Any]]]]


def judge_sets(
    pairs: Iterable[tuple[str, Document, Document]], threshold: str, slowdowns: Sequence[float] = SLOWDOWNS
) -> Seen:
    """Return the verdicts on all pairs in both orders, as they are and with the newer run slower."""
    seen: Seen = {}
    for name, old, new in pairs:
        click.echo(f"{name} …", err=True)
        for factor in (1.0, *slowdowns):
            judged = [*judge(old, slow_down(new, factor), threshold), *judge(new, slow_down(old, factor), threshold)]
            seen.setdefault(name, {}).setdefault(factor, []).extend(judged)
    return seen


def judge_pairs(pairs: Iterable[tuple[str, Document, Document]], *how: Any) -> list[dict[str, Any]]:
    """Judge pairs as `judge_sets`, and return a row for each set: what is false, missed and left open."""
    return count(judge_sets(pairs, *how))


def count(seen: Seen, gate: float = 0.0) -> list[dict[str, Any]]:
    """Return a row for each set; what is slower by less than the gate is not seen."""
    rows = []
    for name, by_factor in seen.items():
        trials = len(by_factor[1.0])
        slower = {
            f: sum(one["kind"] == "slower" and one["ratio"] > 1 + gate for one in judged)
            for f, judged in by_factor.items()
        }
        row: dict[str, Any] = {
            "set": name,
            "pairs_of_rows": trials // 2,
            "false": share(slower[1.0], trials, trials // 2),
        }
        row["missed"] = {
            f"{100 * (f - 1):.0f} %": share(trials - slower[f], trials, trials // 2) for f in slower if f != 1.0
        }
        row["open"] = sum(one["kind"] == "ambiguous" for one in by_factor[1.0]) / trials
        rows.append(row)
        missed = "; ".join(f"{size} missed {show(found)}" for size, found in row["missed"].items())
        percents = f"false {show(row['false'])}; {missed}; open {100 * row['open']:.0f}"
        click.echo(f"{name}: {trials // 2} pairs of rows, in percent: {percents}")
    return rows


def invented(shape: str, apart: float, processes: int, factor: float, rng: np.random.Generator) -> list[Times]:
    """Return the times of processes that have a level each."""
    share_of_faster, levels = SHAPES[shape], rng.standard_normal(processes)
    if share_of_faster is not None:
        spread = math.sqrt(share_of_faster * (1 - share_of_faster))
        modes = (share_of_faster - (rng.random(processes) < share_of_faster)) / spread
        levels = math.sqrt(1 - WITHIN_MODE) * modes + math.sqrt(WITHIN_MODE) * levels
    return [1e5 * factor * np.exp(apart * level + NOISE * rng.standard_normal(SAMPLES)) for level in levels]


def judge_invented(count: int, threshold: str, seed: int) -> list[dict[str, Any]]:
    """Return a row for each kind of levels: what is false, open and found, and how often an interval has the truth."""
    like = template()
    rows: list[dict[str, Any]] = []
    click.echo(
        f"{'levels':18}{'apart':>7}{'processes':>11}{'false':>8}{'open':>8}{'5 % found':>11}{'in the interval':>17}"
    )
    for shape, apart, processes in ((s, a, p) for s in SHAPES for a in APART for p in PROCESSES):
        rng = np.random.default_rng([seed, len(rows)])
        judged: dict[float, list[dict[str, Any]]] = {1.0: [], 1.05: []}
        for _ in range(0, count, ROWS):
            for factor, found in judged.items():
                rows_of = ([invented(shape, apart, processes, f, rng) for _ in range(ROWS)] for f in (1.0, factor))
                found.extend(judge(*(document_of(like, each) for each in rows_of), threshold))
        shares = {
            "false": np.mean([one["kind"] in ("slower", "faster") for one in judged[1.0]]),
            "open": np.mean([one["kind"] == "ambiguous" for one in judged[1.0]]),
            "found": np.mean([one["kind"] == "slower" for one in judged[1.05]]),
            "contained": np.mean([one["low"] <= f <= one["high"] for f, found in judged.items() for one in found]),
        }
        rows.append(
            {"levels": shape, "apart": apart, "processes": processes, **{k: float(v) for k, v in shares.items()}}
        )
        widths = (8, 8, 11, 17)
        cells = "".join(f"{value:{width}.1%}" for value, width in zip(shares.values(), widths, strict=True))
        click.echo(f"{shape:18}{apart:7.1%}{processes:11}{cells}")
    return rows


def summary(document: Mapping[str, Any]) -> str:
    """Return the table of gates_audit.json for docs: of each rule what is false, and what is missed of 5 and 10 %."""
    sets = document["sets"]
    lines = [f"| rule | {' | '.join(found['name'] for found in sets)} |", f"| --- |{' --- |' * len(sets)}"]
    for name in sets[0]["rules"]:
        rules = [found["rules"][name] for found in sets]
        shares = [(rule["false"], rule["missed"]["5 %"], rule["missed"]["10 %"]) for rule in rules]
        percents = [[100 * part["share"] for part in parts] for parts in shares]
        cells = ["; ".join(f"{one:.1f}" if 0 < one < 10 else f"{one:.0f}" for one in parts) for parts in percents]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def audit(path: Path) -> None:
    """Make the rows of `gridwise compare` in gates_audit.json anew."""
    document = read(path)
    seen = {threshold: judge_sets(stored_pairs(), threshold) for threshold in ("2%", "1%")}
    rules = {"gridwise, 2 %": ("2%", 0.0), "gridwise, 1 %": ("1%", 0.0), "gridwise, gate 5 %": ("2%", 0.05)}
    for rule, (threshold, gate) in rules.items():
        for found, row in zip(document["sets"], count(seen[threshold], gate), strict=True):
            found["rules"][rule] = {"false": row["false"], "missed": row["missed"], "open": row["open"]}
    document["gridwise_context"] = host_context()
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@click.command(help=__doc__.replace("\n\n", "\n\n\b\n"))
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--study", "studies", default="stored,invented", show_default=True)
@click.option("--sets", default="", metavar="WORD", help="Only the stored sets with this in their names: lavapipe.")
@click.option("--slower", default=SLOWDOWNS, multiple=True, type=float, help="Factors on the times of the newer run.")
@click.option("--threshold", default="2%", show_default=True)
@click.option("--count", "rows", default=200, show_default=True, help="Invented rows of each kind.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the rates here.")
@click.option("--audit", "audit_path", type=click.Path(exists=True, path_type=Path), help="Renew this file; no study.")
def main(
    files: tuple[Path, ...], studies: str, sets: str, slower: tuple[float, ...], threshold: str, rows: int, seed: int,
    json_path: Path | None, audit_path: Path | None,
) -> None:  # fmt: skip
    """Judge, and print."""
    if audit_path is not None:
        audit(audit_path)
        return
    if len(files) % 2:
        raise click.UsageError("files come in pairs: OLD.json NEW.json")
    given = (("given", read(old), read(new)) for old, new in zip(files[::2], files[1::2], strict=True))
    found: Document = {"threshold": threshold, "count": rows, "seed": seed}
    if "stored" in studies:
        stored = (pair for pair in stored_pairs() if sets in pair[0])
        found["stored"] = judge_pairs(given if files else stored, threshold, slower)
    if "invented" in studies:
        found["invented"] = judge_invented(rows, threshold, seed)
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
