"""How often is a verdict between separate runs wrong? Runs with nothing changed, and with 5 % more to do, judged.

Usage:
  python benchmarks/separate_runs.py measure --out FOLDER [--runs 11] [--seconds 540] [--hold] [--load] [--seed 1]
  python benchmarks/separate_runs.py judge FOLDER… [--json FILE]

`measure` makes one run after the other. A run measures each case in each of several processes, in random order, once or
in --rounds rounds, each with arrays of its own, and further ones measure the cases whose interval is wide, as
`gridwise bench --budget` does: as many as fit the run's share of --seconds (the first run decides, and the others have
at most as many). Processes start in groups, and each waits for its turn, since starting takes longer than measuring.
Between runs the device idles for up to 30 s.

All runs of a call have the same state, so that neighbours may be compared: the clock held (--hold, on NVIDIA) or not.
With --load, a second process computes during every second run. Each run has the cases of a suite, and two kernels with
5 % more to do: vector_add, which waits for memory, and a chain of multiply-adds. All runs stay in the folder, so that
`judge` can be repeated without a GPU.

`judge` compares run 0 with run 1, 1 with 2 and so on, as `gridwise compare` does. With nothing changed, «faster» and
«slower» are false verdicts. With 5 % more to do, «slower» is right. CPU walls, which `compare` shows and does not gate,
are counted apart from times of the GPU.
"""

from __future__ import annotations

import json
import lzma
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import Comparison, Row, compare
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.results.context import run_header
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.model import Result, Results
from gridwise_py.bench.results.precision import TARGET, half_interval
from gridwise_py.bench.results.rounds import by_case
from gridwise_py.bench.stats.levels import components
from gridwise_py.bench.stats.verdict import VerdictKind
from gridwise_py.planning.shaders import compose
from gridwise_py.storage.json_files import write_json
from gridwise_py.types.capabilities import Capabilities

MODES = ("hot", "cold", "batch", "latency")
PRIMITIVES = ("reduce", "scan")
READY = "ready"
TOGETHER = 5  # processes that start at once
STEP = 20  # counts are multiples of it, so that 5 % more is exact
FMA_WORKGROUPS = 64
GATED = "all times of the GPU"
WALL = "CPU wall"
MORE = "more"  # the value of the axis "work" of the cases with 5 % more to do
_ANY_DEVICE = Capabilities(features=frozenset(), limits={"max-buffer-size": 1 << 62})
EQUAL_WRONG = (VerdictKind.FASTER, VerdictKind.SLOWER)


# ---- a process


def subjects(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a process measures."""
    found: list[dict[str, Any]] = [
        {"case": asdict(Case.build(name, n, "u32", "add")), "mode": mode}
        for name in PRIMITIVES
        for n in spec["sizes"]
        for mode in spec["modes"]
    ]
    for name, amount in (("vector_add", spec["items"]), ("fma", spec["rounds"])):
        for work, factor in (("usual", 1.0), (MORE, 1.05)):
            found += [
                {"kernel": name, "amount": round(amount * factor), "n": amount, "work": work, "mode": mode}
                for mode in ("hot", "batch")
                if mode in spec["modes"]
            ]
    only = spec.get("only")
    return [{**one, "position": i} for i, one in enumerate(found) if only is None or i in only]


def measure_one(
    device: Any, subject: dict[str, Any], protocol: gw.SamplingProtocol, process: int, number: int
) -> Result:
    """Measure a subject in this process, with arrays of its own; its results are not checked."""
    axes: dict[str, Any] = {"datatype": "f32", "work": subject.get("work")}
    name, n = subject.get("kernel", ""), subject.get("n", 0)
    if "case" in subject:
        case = Case(**subject["case"])
        primitive, arrays = case.make(device), inputs_of(case)
        axes, name, n = case.axes, case.primitive, case.n
    else:
        primitive, arrays = made(device, name, subject["amount"])
    found = gw.measure(primitive, mode=subject["mode"], protocol=protocol, check=False, case=axes, **arrays)
    found = replace(found, primitive=name, n=n)
    result = result_of(found, position=subject["position"], process=process, round_number=number)
    return replace(result, samples=(), checked=False)


@cache
def inputs_of(case: Case) -> dict[str, Any]:
    """Return the inputs of a case, made once: that takes longer than a measurement."""
    return case.inputs(case.make(None, _ANY_DEVICE), 0)


@cache
def terms(items: int) -> np.ndarray:
    """Return the terms of vector_add."""
    return np.random.default_rng(0).random(items, dtype=np.float32)


def made(device: Any, kernel: str, amount: int) -> tuple[gw.Primitive, dict[str, Any]]:
    """Return a kernel that does so much, and its arguments."""
    if kernel == "vector_add":
        a = gw.asarray(terms(amount), device)
        return gw.VectorAdd(device, "f32"), {"a": a, "b": a}
    constants = {"ROUNDS": amount}
    chain = gw.Kernel(
        device, compose("fma.wgsl", datatype="f32"), {"state": "read_write"}, FMA_WORKGROUPS, constants=constants
    )
    return chain, {"state": gw.asarray(np.zeros(64, dtype=np.float32), device)}


def child() -> None:
    """Make a device, wait for a line, and measure what the specification in the line before says."""
    spec = json.loads(sys.stdin.readline())
    device = gw.request_device(spec["adapter"])
    protocol = gw.SamplingProtocol(**spec["protocol"])
    shuffled, order = random.Random(f"{spec['seed']}, process {spec['process']}"), subjects(spec)
    visits = [(number, subject) for number in range(spec["visits"]) for subject in shuffled.sample(order, len(order))]
    print(READY, flush=True)
    sys.stdin.readline()
    with open(spec["out"], "w", encoding="utf-8") as out:
        for number, subject in visits:
            out.write(json.dumps(measure_one(device, subject, protocol, spec["process"], number).to_json()) + "\n")


# ---- a run


def measured_group(specs: Sequence[dict[str, Any]]) -> list[Result]:
    """Return what processes measure that start together, and measure one after the other."""
    results: list[Result] = []
    with ExitStack() as around:
        folder = Path(around.enter_context(tempfile.TemporaryDirectory()))
        processes: list[subprocess.Popen[str]] = []
        for spec in specs:
            process = around.enter_context(
                subprocess.Popen([sys.executable, __file__, "child"], stdin=PIPE, stdout=PIPE, text=True)
            )
            around.callback(process.kill)
            say(process, json.dumps({**spec, "out": str(folder / str(spec["process"]))}))
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            if not any(line.strip() == READY for line in process.stdout):
                raise click.ClickException("a process did not start")
        for spec, process in zip(specs, processes, strict=True):
            say(process, "go")
            if process.wait():
                raise click.ClickException(f"a process ended with {process.returncode}")
            lines = (folder / str(spec["process"])).read_text(encoding="utf-8").splitlines()
            results += [Result.from_json(json.loads(line)) for line in lines]
    return results


def say(process: subprocess.Popen[str], line: str) -> None:
    """Write a line to a process."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def measured_run(
    header: Results, spec: dict[str, Any], processes: int, further: int | None, end_s: float
) -> tuple[Results, int]:
    """Return a run, and the most processes that measured only cases whose interval was wide.

    Parameters
    ----------
    header : Results
    spec : dict
    processes : int
        That measure all cases.
    further : int or None
        That measure cases whose interval is wide so far, at most; None: as many as end before `end_s`.
    end_s : float
    """
    results: list[Result] = []
    for first in range(0, processes, TOGETHER):
        group = range(first, min(first + TOGETHER, processes))
        results += measured_group([{**spec, "process": process} for process in group])
    done, longest_s = 0, 0.0
    while further is None or done < further:
        wide = wide_cases(results)
        begin_s = time.perf_counter()
        if not wide or (further is None and begin_s + longest_s > end_s):
            break
        count = TOGETHER if further is None else min(TOGETHER, further - done)
        results += measured_group([{**spec, "only": wide, "process": processes + done + i} for i in range(count)])
        longest_s = max(longest_s, time.perf_counter() - begin_s)
        done += count
    return replace(header, results=tuple(results)), done if further is None else further


def wide_cases(results: Sequence[Result]) -> list[int]:
    """Return the positions of the cases whose interval is wide, as `gridwise bench --budget` decides it."""
    last = max(result.process for result in results)
    found: list[int] = []
    for visits in by_case(results).values():
        latest = max(visit.process for visit in visits)
        before = [visit for visit in visits if visit.process < latest]
        if latest == last and max(half_interval(visits), half_interval(before)) > TARGET:
            found.append(visits[0].position)
    return found


def sized(device: Any, kernel: str, start: int, most: int, wanted_ns: float) -> int:
    """Return how much work takes about so long."""
    amount = start
    quick = gw.SamplingProtocol(samples=20, warmup_s=0.1, max_warmup_s=0.5, check_unit=False)
    while amount < most:
        primitive, arrays = made(device, kernel, amount)
        time_ns = gw.measure(primitive, protocol=quick, check=False, **arrays).time_ns
        if time_ns is not None and time_ns >= 0.7 * wanted_ns:
            break
        growth = 2.0 if time_ns is None else min(max(wanted_ns / time_ns, 1.5), 8.0)
        amount = min(round(amount * growth / STEP) * STEP, most)
    return amount


@click.group()
def main() -> None:
    """Measure separate runs, and judge them."""


@main.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the runs.")
@click.option("--seconds", type=float, default=540.0, show_default=True, help="No run begins that would end later.")
@click.option("--runs", type=click.IntRange(min=2), default=11, show_default=True)
@click.option("--processes", type=int, default=7, show_default=True, help="That measure all cases.")
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="Of each process.")
@click.option("--further", type=int, help="That measure what is wide. Default: as many as the time allows.")
@click.option("--sizes", default="65536,1048576,16777216", show_default=True)
@click.option("--modes", default=",".join(MODES), show_default=True)
@click.option("--samples", type=int, default=50, show_default=True, help="Of a case in a process.")
@click.option("--warmup-s", type=float, default=0.01, show_default=True)
@click.option("--kernel-us", type=float, default=40.0, show_default=True, help="Of the kernels with more to do.")
@click.option("--most-items", type=int, default=1 << 26, show_default=True, help="Of vector_add.")
@click.option("--idle-s", type=float, default=30.0, show_default=True, help="Longest rest between runs.")
@click.option("--hold", is_flag=True, help="Hold the clock during all runs.")
@click.option("--load", is_flag=True, help="Let another process compute during every second run.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
def measure(
    out: Path, seconds: float, runs: int, processes: int, rounds: int, further: int | None, sizes: str, modes: str,
    samples: int, warmup_s: float, kernel_us: float, most_items: int, idle_s: float, hold: bool, load: bool,
    seed: int, adapter: str | None,
) -> None:  # fmt: skip
    """Make runs until the time is up."""
    begin_s = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    device = gw.request_device(adapter)
    spec: dict[str, Any] = {
        "adapter": adapter,
        "visits": rounds,
        "sizes": [int(n) for n in sizes.split(",")],
        "modes": modes.split(","),
        "items": sized(device, "vector_add", 1000, most_items // STEP * STEP, 1e3 * kernel_us),
        # Lavapipe ends all loops of an invocation after 65,535 iterations.
        "rounds": sized(device, "fma", 100, 60_000, 1e3 * kernel_us),
        "protocol": gw.SamplingProtocol(
            samples=samples,
            block_trials=samples,
            timeout_s=1.0,
            warmup_s=warmup_s,
            max_warmup_s=0.2,
            batch_trials=10,
            check_unit=False,
        ).to_dict(),
    }
    click.echo(f"vector_add of {spec['items']:,} items, fma of {spec['rounds']:,} rounds; {len(subjects(spec))} cases")
    order = random.Random(seed)
    rests_s = [0.0, *rests(runs - 1, idle_s, order)]
    longest_s = 0.0
    for number, rest_s in enumerate(rests_s):
        loaded = load and number % 2 == 1
        if time.perf_counter() - begin_s + rest_s + longest_s > seconds:
            break
        time.sleep(rest_s)
        run_s = time.perf_counter()
        share_s = (seconds - (run_s - begin_s) - sum(rests_s[number + 1 :])) / (runs - number)
        with ExitStack() as around:
            is_held = hold and around.enter_context(gw.hold_clock(device))
            if loaded:
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                around.callback(busy.wait)
                around.callback(busy.kill)
            header = run_header(device, protocol=spec["protocol"], seed=seed, command=None)
            seeded = {**spec, "seed": f"{seed}, run {number}"}
            try:
                document, further = measured_run(header, seeded, processes, further, run_s + share_s)
            except click.ClickException as error:  # of a process: the other runs are still worth their time
                click.echo(f"run {number}: {error.message}")
                continue
        took_s = time.perf_counter() - run_s
        longest_s = max(longest_s, took_s)
        data = {
            "held": bool(is_held), "loaded": loaded, "rest_s": rest_s, "took_s": took_s, "document": document.to_json(),
        }  # fmt: skip
        with lzma.open(out / f"run-{seed:03d}-{number:03d}.json.xz", "wt", encoding="utf-8") as file:
            json.dump(data, file)
        failed = [r.error for r in document.results if r.error]
        click.echo(f"run {number}: {took_s:.1f} s after {rest_s:.1f} s of rest, held {is_held}, loaded {loaded}, "
                   f"{processes} processes and up to {further} of what is wide, "
                   f"{len(document.results)} results, {len(failed)} failed {failed[:1]}")  # fmt: skip


def rests(count: int, longest_s: float, order: random.Random) -> list[float]:
    """Return rests: one is the longest, most are short."""
    found = [longest_s * order.random() ** 4 for _ in range(count - 1)] + [longest_s]
    order.shuffle(found)
    return found


main.add_command(click.Command("child", callback=child))


# ---- judging


def usual(document: Results) -> Results:
    """Return a run without the cases that have more to do."""
    return replace(document, results=tuple(r for r in document.results if r.case.get("work") != MORE))


def with_more(document: Results) -> Results:
    """Return the cases that have more to do, under the names of the usual ones."""
    found = [
        replace(r, case={**r.case, "work": "usual"}) for r in document.results if r.case.get("work") == MORE
    ]  # fmt: skip
    return replace(document, results=tuple(found))


def first_processes(document: Results, count: int | None) -> Results:
    """Return a run with only some of its processes."""
    kept = tuple(r for r in document.results if count is None or r.process < count)
    return replace(document, results=kept)


def mode_of(row: Row) -> str:
    """Return the mode of a row by its case's name, and whether it is a CPU wall."""
    words = row.case.split()
    mode = next((word for word in words if word in MODES), "batch")
    return f"{mode}, {WALL}" if row.name == "cpu_wall" else mode


def counted(comparisons: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Return how often each verdict came: of all rows that are gated, and by mode."""
    found: dict[str, Counter[str]] = {GATED: Counter()}
    for comparison in comparisons:
        for row in comparison.rows:
            kind = "none" if row.verdict is None else row.verdict.kind.value
            mode = mode_of(row)
            for name in (mode,) if WALL in mode else (GATED, mode):
                found.setdefault(name, Counter())[kind] += 1
    return found


def spreads(comparisons: Sequence[Comparison]) -> dict[str, float]:
    """Return by mode the median of the standard deviations between processes, as a share."""
    found: dict[str, list[float]] = {}
    for comparison in comparisons:
        for row in comparison.rows:
            if row.verdict and row.verdict.unit == "process":
                found.setdefault(mode_of(row), []).append(np.expm1(row.verdict.between_sd))
    return {mode: float(np.median(values)) for mode, values in found.items()}


def round_shares(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return by mode which share of the variance of levels is between rounds of a process; empty without rounds.

    If it is large, a further round narrows an interval nearly as much as a further process, in less time.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        for visits in by_case(usual(run["document"]).results).values():
            timed = [(np.array(visit.positive_ns("gpu_span")), visit.process) for visit in visits]
            timed = [(times, process) for times, process in timed if times.size]
            if not timed:
                continue
            spread = components([times for times, _ in timed], [process for _, process in timed])
            if spread.round is not None and spread.process is not None:
                found.setdefault(visits[0].mode.value, []).append((spread.round**2, spread.process**2))
    totals = {mode: np.sum(variances, axis=0) for mode, variances in found.items()}
    return {mode: float(within / (within + between)) for mode, (within, between) in totals.items() if within}


def shares(counts: Counter[str], wrong: Sequence[str], right: str) -> str:
    """Return a line with the shares that matter."""
    rows = max(sum(counts.values()), 1)
    false = sum(counts[kind] for kind in wrong)
    return (
        f"{rows:5d} rows: {right} {100 * counts[right] / rows:5.1f} %, false {100 * false / rows:5.2f} %, "
        f"ambiguous {100 * counts['ambiguous'] / rows:5.1f} %"
    )


def pairs_of(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each run with the next one of the same call, if the clock was held in both or in neither."""
    yield from ((a, b) for a, b in pairwise(runs) if a["seed"] == b["seed"] and a["held"] == b["held"])


def processes_of(runs: Sequence[dict[str, Any]], mode: str) -> Iterator[int]:
    """Yield how many processes measured each case of a mode, in each run; 0 if there is none."""
    counts = [
        len({visit.process for visit in visits})
        for run in runs
        for visits in by_case(run["document"].results).values()
        if visits[0].mode == mode
    ]  # fmt: skip
    yield from counts or [0]


@main.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--processes", type=int, help="Use only the first of each run.")
@click.option("--threshold", type=float, default=0.02, show_default=True)
@click.option("--gate", type=float, default=0.05, show_default=True)
@click.option("--show", type=int, default=10, show_default=True, help="How many false verdicts to print.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the counts here.")
def judge(
    folders: Sequence[Path], processes: int | None, threshold: float, gate: float, show: int, json_path: Path | None
) -> None:
    """Judge neighbouring runs, and count."""
    runs: list[dict[str, Any]] = []
    for path in sorted(path for folder in folders for path in folder.glob("run-*.json.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            data = json.load(file)
        document = first_processes(Results.from_json(data["document"]), processes)
        runs.append({**data, "document": document, "seed": path.name.split("-")[1]})
    pairs = list(pairs_of(runs))
    if not pairs:
        raise click.ClickException("there are no two neighbouring runs of the same seed and state")
    device = runs[0]["document"].device
    documents = [(a["document"], b["document"]) for a, b in pairs]
    limits = {"threshold": threshold, "gate": gate}
    same = [compare(usual(a), usual(b), **limits) for a, b in documents]
    more = [compare(only_more_of(a), with_more(b), **limits) for a, b in documents]
    passed = sum(not found.regressed for found in same)
    held = sum(a["held"] for a, _ in pairs)
    loaded = sum(a["loaded"] or b["loaded"] for a, b in pairs)
    counts = {mode: float(np.mean(list(processes_of(runs, mode)))) for mode in MODES}
    click.echo(
        f"{device.title}: {len(pairs)} pairs of neighbouring runs; in {held} the clock was held, in {loaded} a side "
        f"was loaded; exit 0 in {passed}; processes of a case: "
        + ", ".join(f"{mode} {count:.1f}" for mode, count in counts.items())
    )
    of_mode = spreads(same)
    click.echo("standard deviation between processes: "
               + ", ".join(f"{mode} {100 * std:.2g} %" for mode, std in of_mode.items()))  # fmt: skip
    between_rounds = round_shares(runs)
    if between_rounds:
        click.echo("of the variance between rounds, within a process: "
                   + ", ".join(f"{mode} {100 * share:.0f} %" for mode, share in between_rounds.items()))  # fmt: skip
    by_mode = {"nothing changed": counted(same), "5 % more to do": counted(more)}
    for what, wrong, right in (
        ("nothing changed", [kind.value for kind in EQUAL_WRONG], "same"),
        ("5 % more to do", ["faster", "same"], "slower"),
    ):
        for mode, counts in by_mode[what].items():
            click.echo(f"{what}, {mode:20s} {shares(counts, wrong, right)}")
    causes = Counter(
        row.verdict.cause.value for found in same for row in found.rows if row.verdict and row.verdict.cause
    )
    click.echo(f"why ambiguous: {dict(causes.most_common())}")
    false = [(i, row) for i, found in enumerate(same) for row in found.rows if row.verdict
             and row.verdict.kind in EQUAL_WRONG]  # fmt: skip
    missed = [(i, row) for i, found in enumerate(more) for row in found.rows if row.verdict
              and row.verdict.kind is not VerdictKind.SLOWER]  # fmt: skip
    for what, rows in (("false", false), ("not found", missed)):
        for i, row in rows[:show]:
            assert row.verdict is not None
            click.echo(f"{what}, pair {i}: {row.case} {row.name}: {row.verdict.reason}")
    if json_path is not None:
        verdicts = {what: {mode: dict(kinds) for mode, kinds in found.items()} for what, found in by_mode.items()}
        write_json(
            json_path,
            {
                "device": {name: getattr(device, name) for name in ("adapter", "adapter_type", "backend", "driver")},
                "context": runs[0]["document"].context.to_json(), "pairs": len(pairs), "processes": counts,
                "pairs_with_clock_held": held, "pairs_with_load": loaded, "exit_0": passed, **limits,
                "counts": verdicts, "process_std": of_mode,
                "round_shares": between_rounds, "causes": dict(causes),
            },
        )  # fmt: skip


def only_more_of(document: Results) -> Results:
    """Return the usual cases of the kernels that a run also has with more to do."""
    return replace(document, results=tuple(r for r in document.results if r.case.get("work") == "usual"))


if __name__ == "__main__":
    main()
