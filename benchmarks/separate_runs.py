"""How often is a verdict between separate runs wrong? Runs with nothing changed, and with 5 % more to do, judged.

Usage:
  python benchmarks/separate_runs.py measure --out FOLDER [--seconds 540] [--seed 1] [--load]
  python benchmarks/separate_runs.py judge FOLDER… [--json FILE]

`measure` makes one run after the other until the time is up. A run is what `gridwise bench --processes 5` does: each
case once in each of several processes, in random order. Between runs the device idles for 0 to 30 s. Every second pair
of runs has the clock held (`gw.hold_clock`, on NVIDIA); with --load, a second process computes during every second run.
Each run has the cases of a suite, and two kernels with 5 % more to do: vector_add, which waits for memory, and a chain
of multiply-adds. All runs stay in the folder, so that `judge` can be repeated without a GPU.

`judge` compares run 0 with run 1, 1 with 2 and so on, as `gridwise compare` does. With nothing changed, «faster» and
«slower» are false verdicts. With 5 % more to do, «slower» is right.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import Comparison, Row, compare
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.results.context import run_header
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.model import Result, Results
from gridwise_py.bench.stats.verdict import VerdictKind
from gridwise_py.bench.sweep.machine_load import LoadWatch
from gridwise_py.planning.shaders import compose
from gridwise_py.storage.json_files import write_json

MODES = ("hot", "cold", "batch", "latency")
PRIMITIVES = ("reduce", "scan")
STEP = 20  # counts are multiples of it, so that 5 % more is exact
FMA_WORKGROUPS = 64
MORE = "more"  # the value of the axis "work" of the cases with 5 % more to do
EQUAL_WRONG = (VerdictKind.FASTER, VerdictKind.SLOWER)


# ---- a process


def subjects(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a process measures."""
    found = [
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
            ]
    return [{**one, "position": i} for i, one in enumerate(found)]


def measure_one(device: Any, subject: dict[str, Any], protocol: gw.SamplingProtocol, process: int) -> Result:
    """Measure a subject in this process; its results are not checked."""
    watch = LoadWatch()
    mode = subject["mode"]
    if "case" in subject:
        from gridwise_py.bench.sampling.measure import measure_case

        found = measure_case(device, Case(**subject["case"]), protocol, mode, check=False)
    else:
        primitive, arrays = made(device, subject["kernel"], subject["amount"])
        found = gw.measure(
            primitive, mode=mode, protocol=protocol, check=False,
            case={"datatype": "f32", "work": subject["work"]}, **arrays,
        )  # fmt: skip
        found = replace(found, primitive=subject["kernel"], n=subject["n"])
    result = result_of(found, position=subject["position"], process=process)
    return replace(result, samples=(), checked=False, other_load=watch.share())


def made(device: Any, kernel: str, amount: int) -> tuple[gw.Primitive, dict[str, Any]]:
    """Return a kernel that does so much, and its arguments."""
    if kernel == "vector_add":
        a = gw.asarray(np.random.default_rng(0).random(amount, dtype=np.float32), device)
        return gw.VectorAdd(device, "f32"), {"a": a, "b": a}
    constants = {"ROUNDS": amount}
    chain = gw.Kernel(device, compose("fma.wgsl"), {"state": "read_write"}, FMA_WORKGROUPS, constants=constants)
    return chain, {"state": gw.asarray(np.zeros(64, dtype=np.float32), device)}


def child() -> None:
    """Measure what the specification on the standard input says, and write the results as JSON lines."""
    spec = json.load(sys.stdin)
    device = gw.request_device(spec["adapter"])
    protocol = gw.SamplingProtocol(**spec["protocol"])
    order = subjects(spec)
    random.Random(f"{spec['seed']}, process {spec['process']}").shuffle(order)
    with open(spec["out"], "w", encoding="utf-8") as out:
        for subject in order:
            out.write(json.dumps(measure_one(device, subject, protocol, spec["process"]).to_json()) + "\n")


# ---- a run


def measured_run(header: Results, spec: dict[str, Any], processes: int) -> Results:
    """Return a run of several processes, one after the other."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for process in range(processes):
            out = Path(folder) / f"{process}.jsonl"
            words = json.dumps({**spec, "process": process, "out": str(out)})
            subprocess.run([sys.executable, __file__, "child"], input=words, text=True, check=True)
            results += [Result.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    return replace(header, results=tuple(results))


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
@click.option("--runs", type=int, default=100, show_default=True, help="At most.")
@click.option("--processes", type=int, default=5, show_default=True)
@click.option("--sizes", default="65536,1048576,16777216", show_default=True)
@click.option("--modes", default=",".join(MODES), show_default=True)
@click.option("--sampling-s", type=float, default=0.05, show_default=True, help="Of a case in a process.")
@click.option("--warmup-s", type=float, default=0.05, show_default=True)
@click.option("--kernel-us", type=float, default=100.0, show_default=True, help="Of the kernels with more to do.")
@click.option("--most-items", type=int, default=1 << 26, show_default=True, help="Of vector_add.")
@click.option("--idle-s", type=float, default=30.0, show_default=True, help="Longest rest between runs.")
@click.option("--load", is_flag=True, help="Let another process compute during every second run.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
def measure(
    out: Path, seconds: float, runs: int, processes: int, sizes: str, modes: str, sampling_s: float, warmup_s: float,
    kernel_us: float, most_items: int, idle_s: float, load: bool, seed: int, adapter: str | None,
) -> None:  # fmt: skip
    """Make runs until the time is up."""
    begin_s = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    device = gw.request_device(adapter)
    spec: dict[str, Any] = {
        "adapter": adapter,
        "sizes": [int(n) for n in sizes.split(",")],
        "modes": modes.split(","),
        "items": sized(device, "vector_add", 1000, most_items // STEP * STEP, 1e3 * kernel_us),
        # Lavapipe ends all loops of an invocation after 65,535 iterations.
        "rounds": sized(device, "fma", 100, 60_000, 1e3 * kernel_us),
        "protocol": gw.SamplingProtocol(
            timeout_s=sampling_s, warmup_s=warmup_s, max_warmup_s=0.5, batch_trials=10
        ).to_dict(),
    }
    click.echo(f"vector_add of {spec['items']:,} items, fma of {spec['rounds']:,} rounds; {len(subjects(spec))} cases")
    order = random.Random(seed)
    longest_s, rest_s = 0.0, 0.0
    for number in range(runs):
        held, loaded = number // 2 % 2 == 1, load and number % 2 == 1
        if number:
            # Few long rests, many short ones.
            rest_s = idle_s * order.random() ** 3
            if time.perf_counter() - begin_s + rest_s + longest_s > seconds:
                break
            time.sleep(rest_s)
        run_s = time.perf_counter()
        with ExitStack() as around:
            is_held = held and around.enter_context(gw.hold_clock(device))
            if loaded:
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                around.callback(busy.wait)
                around.callback(busy.kill)
            header = run_header(device, protocol=spec["protocol"], seed=seed, command=None)
            document = measured_run(header, {**spec, "seed": f"{seed}, run {number}"}, processes)
        took_s = time.perf_counter() - run_s
        longest_s = max(longest_s, took_s)
        data = {"held": bool(is_held), "loaded": loaded, "rest_s": rest_s, "document": document.to_json()}
        with lzma.open(out / f"run-{seed:03d}-{number:03d}.json.xz", "wt", encoding="utf-8") as file:
            json.dump(data, file)
        failed = [r.error for r in document.results if r.error]
        click.echo(f"run {number}: {took_s:.1f} s after {rest_s:.1f} s of rest, held {is_held}, loaded {loaded}, "
                   f"{len(document.results)} results, {len(failed)} failed {failed[:1]}")  # fmt: skip


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
    return f"{mode}, CPU wall" if row.name == "cpu_wall" else mode


def counted(comparisons: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Return how often each verdict came, by mode and in all."""
    found: dict[str, Counter[str]] = {"all": Counter()}
    for comparison in comparisons:
        for row in comparison.rows:
            kind = "none" if row.verdict is None else row.verdict.kind.value
            found["all"][kind] += 1
            found.setdefault(mode_of(row), Counter())[kind] += 1
    return found


def shares(counts: Counter[str], wrong: Sequence[str], right: str) -> str:
    """Return a line with the shares that matter."""
    rows = sum(counts.values())
    false = sum(counts[kind] for kind in wrong)
    return (
        f"{rows:5d} rows: {right} {100 * counts[right] / rows:5.1f} %, false {100 * false / rows:5.2f} %, "
        f"ambiguous {100 * counts['ambiguous'] / rows:5.1f} %"
    )


def pairs_of(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each run with the next one of the same call."""
    yield from ((a, b) for a, b in pairwise(runs) if a["seed"] == b["seed"])


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
        raise click.ClickException("there are no two runs of the same seed")
    device = runs[0]["document"].device
    documents = [(a["document"], b["document"]) for a, b in pairs]
    limits = {"threshold": threshold, "gate": gate}
    same = [compare(usual(a), usual(b), **limits) for a, b in documents]
    more = [compare(only_more_of(a), with_more(b), **limits) for a, b in documents]
    passed = sum(not found.regressed for found in same)
    held = sum(a["held"] or b["held"] for a, b in pairs)
    loaded = sum(a["loaded"] or b["loaded"] for a, b in pairs)
    count = len({r.process for r in runs[0]["document"].results})
    click.echo(
        f"{device.title}: {len(pairs)} pairs of neighbouring runs, {count} processes each; in {held} the clock was "
        f"held on a side, in {loaded} a side was loaded; exit 0 in {passed}"
    )
    by_mode = {"nothing changed": counted(same), "5 % more to do": counted(more)}
    for what, wrong, right in (
        ("nothing changed", [kind.value for kind in EQUAL_WRONG], "same"),
        ("5 % more to do", ["faster", "same"], "slower"),
    ):
        for mode, counts in by_mode[what].items():
            click.echo(f"{what}, {mode:18s} {shares(counts, wrong, right)}")
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
        counts = {what: {mode: dict(of_mode) for mode, of_mode in found.items()} for what, found in by_mode.items()}
        write_json(
            json_path,
            {
                "device": {name: getattr(device, name) for name in ("adapter", "adapter_type", "backend", "driver")},
                "context": runs[0]["document"].context.to_json(), "pairs": len(pairs), "processes": count,
                "pairs_with_clock_held": held, "pairs_with_load": loaded, "exit_0": passed, **limits,
                "counts": counts, "causes": dict(causes),
            },
        )  # fmt: skip


def only_more_of(document: Results) -> Results:
    """Return the usual cases of the kernels that a run also has with more to do."""
    return replace(document, results=tuple(r for r in document.results if r.case.get("work") == "usual"))


if __name__ == "__main__":
    main()
