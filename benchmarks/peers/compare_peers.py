"""This library against CUB, PyTorch and CuPy on the same GPU, in one run: same bytes, same data.

Usage: python benchmarks/peers/compare_peers.py [--n 2^20,2^24,2^26,2^28] [--forms scan] [--json FILE] [--plot FILE]

Needs a GPU with both CUDA and Vulkan. CUB's side (cub_peer.cu) is built with nvcc from the toolkit's own headers, or
built before on another machine (nvcc -O3 -std=c++17 --extended-lambda -arch=sm_90 -o cub_peer cub_peer.cu) and given
with --cub.
What is missing is skipped, and the file says so. Two figures for each case and side:

single        one call: ours from the first timestamp to the last, theirs between two CUDA events
back to back  100 calls at once (10 sorts from 2^26 on), per call: ours as so many times the primitive's dispatches in
              one pass, theirs as a CUDA graph of so many calls. Below 2^26 this is the one to compare: the launch from
              the host lies between the events of a single call, but not between its timestamps.

The GPU is kept busy for --settle-s before the first case: its clock rises for longer than the warm-up of a case.

With --forms scan (and sort) also our own of other kinds, datatypes and operators, against that of u32, back to back
(forms.py). The site's tables are made from the file (scripts/make_speed_tables.py), and so is the picture
(peers_picture.py).
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from cuda_peers import Work, build_cub, cub, exact_items, python_peer
from forms import FORMS, measure_forms
from peers_picture import picture

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case, warm_up
from gridwise_py.bench.cases.distributions import UNIFORM
from gridwise_py.bench.checks.check import differences
from gridwise_py.bench.report.picture import check_picture, write_picture
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

LAUNCHES = 100
# As far as the largest cases: beyond every cache, so that the memory's clock rises, too.
SETTLE_ITEMS = 1 << 26


def make_work(device, spec: str, n: int, datatype: str, distribution: str) -> Work:
    """Return a case with its data, and what must come out."""
    name = spec.removesuffix("_exclusive")
    case = Case.build(name, n, datatype, "add", distribution)
    primitive = gw.Scan(device, datatype, kind="exclusive") if spec != name else case.make(device)
    inputs = case.inputs(primitive, seed=0)
    expected = primitive.reference(**inputs)
    # A graph of a hundred long sorts would take seconds; from 2^26 on the single call is the one to compare.
    launches = LAUNCHES if n <= 1 << 24 or not name.startswith("sort") else LAUNCHES // 10
    checked = ()
    if datatype in ("f32", "f64") and name in ("scan", "reduce"):
        items = exact_items(n).astype(inputs["input"].dtype)
        checked = items, primitive.reference(items)
    outputs = expected if isinstance(expected, tuple) else (expected,)
    return Work(spec, datatype, primitive, inputs, outputs, launches, checked)


def settle(device, seconds: float) -> None:
    """Copy for `seconds`, so that the first case does not find a clock that is still rising."""
    copy = gw.Copy(device, "u32")
    arrays = {"input": gw.empty(SETTLE_ITEMS, "u32", device), "output": gw.empty(SETTLE_ITEMS, "u32", device)}
    warm_up(copy.bind(**arrays), seconds)
    for array in arrays.values():
        array.destroy()


def end_to_end(device, work: Work, rounds: int) -> dict[str, float]:
    """Return what a caller with numpy arrays waits for a sort on the GPU, up and down, and for numpy's stable sort."""
    keys = next(iter(work.inputs.values()))
    walls: dict[str, list[float]] = {"gridwise_py_ns": [], "numpy_ns": []}
    for i in range(rounds + 1):
        begin = time.perf_counter_ns()
        gw.sort(gw.asarray(keys, device)).to_numpy()
        between = time.perf_counter_ns()
        np.sort(keys, kind="stable")
        if i:  # the first call compiles
            walls["gridwise_py_ns"].append(between - begin)
            walls["numpy_ns"].append(time.perf_counter_ns() - between)
    return {name: statistics.median(values) for name, values in walls.items()}


def ours(work: Work, rounds: int, warmup_s: float) -> dict[str, Any]:
    """Return our times; of a single call also those of its kernels, in the order in which they run."""
    primitive = work.primitive
    device = primitive.device
    helper = gw.timing_helper(device)
    call = primitive.bind()
    steps = call.bound_plan.steps
    warm_up(call, warmup_s)

    def back_to_back_ns() -> float:
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("back to back"))
        for _ in range(work.launches):
            for step in steps:
                compute.set_pipeline(step.pipeline)
                compute.set_bind_group(0, step.group)
                compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / work.launches

    single, back_to_back, calls = [], [], []
    for _ in range(rounds):
        timing = primitive.execute(enable_gpu_timing=True).get_timing_result()
        single.append(timing.gpu_span_ns)
        calls.append(timing.spans)
        back_to_back.append(back_to_back_ns())
    kernels = [
        {"label": spans[0].label, "ns": _median([span.ns for span in spans if span.ns is not None])}
        for spans in zip(*calls, strict=True)
    ]
    return {"single_ns": single, "back_to_back_ns": back_to_back, "kernels": kernels}


def _median(values: list[float] | None) -> float | None:
    return statistics.median(values) if values else None


def _line(row: dict[str, object]) -> str:
    cells = []
    for figure in ("single", "back_to_back"):
        mine = row["sides"]["gridwise_py"][figure]
        cells.append(f"{mine / 1e3:9.2f}")
        for peer in ("cub", "torch", "cupy"):
            theirs = row["sides"][peer].get(figure)
            cells.append("     –" if theirs is None else f"{theirs / mine:6.3f}")
        cells.append(" | ")
    name = " ".join(filter(None, (row["primitive"], row.get("distribution"))))
    return f"{name:19} {row['datatype']} 2^{row['n'].bit_length() - 1:<3}" + " ".join(cells)


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24,2^26,2^28", show_default=True)
@click.option("--primitives", default="copy,vector_add,reduce,scan,scan_exclusive", show_default=True)
@click.option("--datatypes", type=AxisList("datatype"), default="u32,f32", show_default=True)
@click.option("--distributions", type=AxisList("distribution"), default="uniform", show_default=True, help="Of sorts.")
@click.option("--peers", default="cub,torch,cupy", show_default=True)
@click.option("--rounds", default=30, show_default=True)
@click.option("--warmup-s", default=0.5, show_default=True, help="Per case and side.")
@click.option("--settle-s", default=2.0, show_default=True, help="Of copying, once, before the first case.")
@click.option(
    "--forms", type=click.Choice(sorted(FORMS)), multiple=True, help="Also our own other forms of it; repeat."
)
@click.option("--forms-n", type=AxisList("n"), help="Of the forms; by default as --n.")
@click.option(
    "--cub", "cub_program", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A built cub_peer."
)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), help="Draw them here: .png, .svg or .pdf.")
def main(
    counts, primitives, datatypes, distributions, peers, rounds, warmup_s, settle_s, forms, forms_n, cub_program,
    adapter, json_path, plot_path,
) -> None:  # fmt: skip
    """Compare and print a table: our time in µs, then theirs over ours (above 1: this library is faster)."""
    if plot_path is not None:
        check_picture(plot_path)  # what is wrong with it is said before anything is measured
    device = gw.request_device(adapter)
    rows: list[dict[str, object]] = []
    found: list[dict[str, object]] = []
    wrong = False
    context = run_context(device)

    def keep() -> None:
        # After each case, so that a run that is cut off leaves what it has.
        if json_path is not None:
            write_json(
                json_path, {**context, "launches": LAUNCHES, "settle_s": settle_s, "results": rows, "forms": found}
            )

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = (cub_program and cub_program.resolve()) or build_cub(folder) if "cub" in peers else "not asked for"
        if isinstance(program, str):
            print(f"without CUB: {program}")
        print(
            f"{gw.capabilities(device).adapter}; medians of {rounds}; single: ours µs, ×cub ×torch ×cupy | back to back"
        )
        for n in counts:
            for spec in filter(None, primitives.split(",")):
                for datatype, distribution in itertools.product(
                    datatypes, distributions if spec.startswith("sort") else [UNIFORM]
                ):
                    row = compare(
                        make_work(device, spec, n, datatype, distribution), distribution,
                        program, folder, peers, rounds, warmup_s, 0.0 if rows else settle_s,
                    )  # fmt: skip
                    wrong |= not row["correct"] or row["sides"]["cub"].get("correct") is False
                    rows.append(row)
                    keep()
    for which, n in itertools.product(forms, forms_n or counts):
        found += measure_forms(device, which, n, max(3, rounds // 6))
        keep()
    wrong |= not all(form["correct"] for form in found)
    if plot_path is not None:
        write_picture(picture({**context, "results": rows}), plot_path)
    if wrong:
        sys.exit(4)


def _wrong_sums(work: Work) -> str | None:
    """Return the first of our sums that differs in any bit, of items whose sums are exact."""
    if not work.checked:
        return None
    items, expected = work.checked
    got = work.primitive.execute(input=gw.asarray(items, work.primitive.device)).output.to_numpy()
    words = np.dtype(f"u{expected.itemsize}")
    where = np.flatnonzero(got.view(words) != expected.view(words))
    if not where.size:
        return None
    return (
        f"of whole numbers, item {where[0]} is {got[where[0]]}, expected {expected[where[0]]} ({where.size:,} differ)"
    )


def compare(
    work: Work, distribution: str, program: Path | str, folder: Path, peers: str, rounds: int, warmup_s: float,
    settle_s: float = 0.0,
) -> dict[str, object]:  # fmt: skip
    """Time all sides on one case, print a line, and return the row."""
    device = work.primitive.device
    run = work.primitive.execute(**{n: gw.asarray(v, device) for n, v in work.inputs.items()})
    outputs = {name: array.to_numpy() for name, array in run.outputs.items()}
    wrong = differences(work.primitive, work.inputs, outputs, work.expected) or _wrong_sums(work)
    if settle_s:
        # Only now: the GPU idled while the data was made and the result was checked.
        settle(device, settle_s)
    sides = {"gridwise_py": ours(work, rounds, warmup_s)}
    sides["cub"] = cub(program, work, folder, rounds, warmup_s)
    for peer in ("torch", "cupy"):
        asked = peer in peers
        sides[peer] = python_peer(peer, work, rounds, warmup_s) if asked else {"skipped": "not asked for"}
    for side in sides.values():
        side["single"] = _median(side.get("single_ns"))
        side["back_to_back"] = _median(side.get("back_to_back_ns"))
    row: dict[str, object] = {
        "primitive": work.name,
        "n": work.n,
        "datatype": work.datatype,
        "correct": wrong is None,
        "launches": work.launches,
        "parameters": dict(run.plan.parameters),
        "moved_bytes": run.plan.work.moved_bytes,
        "temporary_bytes": sum(spec.size_bytes for spec in run.plan.buffers if spec.role == "scratch"),
        "sides": sides,
    }
    if work.name.startswith("sort"):
        row["distribution"] = distribution
    if work.name == "sort" and work.n <= 1 << 24:
        row["end_to_end"] = end_to_end(device, work, max(3, rounds // 10))
    theirs = " CUB IS WRONG" if sides["cub"].get("correct") is False else ""
    print(_line(row) + ("" if wrong is None else f" WRONG: {wrong}") + theirs, flush=True)
    work.primitive.release()
    return row


if __name__ == "__main__":
    main()
