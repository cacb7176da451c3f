"""This library against CUB, PyTorch and CuPy on the same GPU, in one run: same bytes, same data.

Usage: python benchmarks/peers/compare_peers.py [--n 2^20,2^24,2^26,2^28] [--forms] [--json FILE] [--plot FILE]

Needs a GPU with both CUDA and Vulkan. CUB's side (cub_peer.cu) is built with nvcc from the toolkit's own headers.
What is missing is skipped, and the file says so. Two figures for each case and side:

single        one call: ours from the first timestamp to the last, theirs between two CUDA events
back to back  100 calls at once, per call: ours as 100 times the primitive's dispatches in one pass, theirs as a CUDA
              graph of 100 calls. Below 2^26 this is the one to compare: the launch from the host lies between the
              events of a single call, but not between its timestamps.

With --forms also our own scans of other kinds, datatypes and operators, against the inclusive add of u32, back to back.
The README's tables are made from the file: scripts/make_speed_tables.py.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.case import Case, warm_up
from gridwise_py.bench.check import float_error_bound, mismatch
from gridwise_py.bench.interleave import interleaved, samples_ns
from gridwise_py.bench.results import run_context, write_results
from gridwise_py.cli.options import AxisList

HERE = Path(__file__).resolve().parent
LAUNCHES = 100
# Datatype, operator and kind; the first is what the others are measured by.
FORMS = {
    "u32 add": ("u32", "add", "inclusive"),
    "u32 add, exclusive": ("u32", "add", "exclusive"),
    "i32 add": ("i32", "add", "inclusive"),
    "f32 add": ("f32", "add", "inclusive"),
    "u32 min": ("u32", "min", "inclusive"),
    "u32 max": ("u32", "max", "inclusive"),
    "u32 multiply": ("u32", "multiply", "inclusive"),
    "f32 min": ("f32", "min", "inclusive"),
}


class Work:
    """A case with its data, on our side and in files for CUB."""

    def __init__(self, device, case: Case, kind: str, folder: Path):
        self.case, self.kind = case, kind
        self.primitive = gw.Scan(device, case.datatype, kind="exclusive") if kind == "exclusive" else case.make(device)
        self.inputs = case.inputs(self.primitive, seed=0)
        self.files = []
        for name, values in self.inputs.items():
            self.files.append(folder / f"{name}.bin")
            values.tofile(self.files[-1])
        self.run = self.primitive.execute(**{n: gw.asarray(v, device) for n, v in self.inputs.items()})
        self.mismatch = mismatch(self.primitive, self.inputs, {"output": self.run.output.to_numpy()})

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.case.primitive}_exclusive" if self.kind == "exclusive" else self.case.primitive


def ours(work: Work, rounds: int, warmup_s: float) -> dict[str, list[float]]:
    """Return our times."""
    primitive = work.primitive
    device = primitive.device
    helper = gw.timing_helper(device)
    steps = primitive.bind().steps
    warm_up(primitive, warmup_s)

    def back_to_back_ns() -> float:
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("back to back"))
        for _ in range(LAUNCHES):
            for step in steps:
                compute.set_pipeline(step.pipeline)
                compute.set_bind_group(0, step.group)
                compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / LAUNCHES

    single, back_to_back = [], []
    for _ in range(rounds):
        single.append(primitive.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns)
        back_to_back.append(back_to_back_ns())
    return {"single_ns": single, "back_to_back_ns": back_to_back}


def build_cub(folder: Path) -> Path | str:
    """Build CUB's side; return the program, or why there is none."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        return "nvcc is not installed"
    program = folder / "cub_peer"
    command = [nvcc, "-O3", "-std=c++17", "--extended-lambda", "-arch=native", "-o", str(program)]
    build = subprocess.run([*command, str(HERE / "cub_peer.cu")], capture_output=True, text=True)
    return program if build.returncode == 0 else f"nvcc failed: {build.stderr.strip()[-500:]}"


def cub(program: Path | str, work: Work, rounds: int, warmup_s: float) -> dict[str, object]:
    """Return CUB's times; vector add is cub::DeviceFor::Bulk, copy is cudaMemcpyAsync."""
    if isinstance(program, str):
        return {"skipped": program}
    case = work.case
    files = [str(work.files[0]), str(work.files[-1])]
    command = [str(program), work.name, case.datatype, str(case.n), *files, str(warmup_s), str(rounds), str(LAUNCHES)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        return {"skipped": f"cub_peer failed: {result.stderr.strip()[-300:]}"}
    answer = json.loads(result.stdout)
    expected = float(work.primitive.reference(**work.inputs)[-1])
    bound = np.max(float_error_bound(work.primitive, work.inputs))
    answer["correct"] = bool(abs(answer.pop("last") - expected) <= max(bound, 1e-8 * abs(expected)))
    return answer


def python_peer(name: str, work: Work, rounds: int, warmup_s: float) -> dict[str, object]:
    """Return the times of PyTorch or CuPy, by CUDA events, and of CUDA graphs where they can capture the call."""
    try:
        import torch
    except ImportError:
        return {"skipped": "PyTorch is not installed (its events and graphs are used for CuPy, too)"}
    try:
        call, version = {"torch": _torch_call, "cupy": _cupy_call}[name](work)
    except ImportError:
        return {"skipped": f"{name} is not installed"}
    except NotImplementedError as error:
        return {"skipped": str(error)}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream()

    def timed(run: Callable[[], object]) -> float:
        begin.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return begin.elapsed_time(end) * 1e6

    with torch.cuda.stream(stream):
        for _ in range(10):
            call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(LAUNCHES):
                    call()
        except RuntimeError:
            graph = None
        elapsed = 0.0
        while elapsed < warmup_s * 1e9:
            elapsed += timed(graph.replay if graph is not None else lambda: [call() for _ in range(LAUNCHES)])
        single, back_to_back = [], []
        for _ in range(rounds):
            single.append(timed(call))
            if graph is not None:
                back_to_back.append(timed(graph.replay) / LAUNCHES)
    torch.cuda.empty_cache()
    return {"single_ns": single, "back_to_back_ns": back_to_back or None, "version": version}


def _torch_call(work: Work) -> tuple[Callable[[], object], str]:
    import torch

    tensors = [torch.from_numpy(v.view(np.int32) if v.dtype == np.uint32 else v).cuda() for v in work.inputs.values()]
    out = torch.empty_like(tensors[0])
    if work.name == "scan_exclusive":
        raise NotImplementedError("PyTorch has no exclusive scan")
    if work.case.primitive == "reduce":
        one = torch.empty((), dtype=out.dtype, device="cuda")
        calls = {"reduce": lambda: torch.sum(tensors[0], dim=0, dtype=out.dtype, out=one)}
    else:
        calls = {
            "copy": lambda: out.copy_(tensors[0]),
            "vector_add": lambda: torch.add(tensors[0], tensors[-1], out=out),
            "scan": lambda: torch.cumsum(tensors[0], 0, dtype=out.dtype, out=out),
        }
    return calls[work.case.primitive], torch.__version__


def _cupy_call(work: Work) -> tuple[Callable[[], object], str]:
    import cupy
    import torch

    arrays = [cupy.asarray(v) for v in work.inputs.values()]
    out = cupy.empty_like(arrays[0])
    one = cupy.empty((), dtype=out.dtype)
    calls = {
        "copy": lambda: cupy.copyto(out, arrays[0]),
        "vector_add": lambda: cupy.add(arrays[0], arrays[-1], out=out),
        "reduce": lambda: cupy.sum(arrays[0], dtype=out.dtype, out=one),
        "scan": lambda: cupy.cumsum(arrays[0], dtype=out.dtype, out=out),
    }
    if work.name not in calls:
        raise NotImplementedError("CuPy has no exclusive scan")
    inner = calls[work.name]

    def call() -> None:
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            inner()

    return call, cupy.__version__


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
    return f"{row['primitive']:15} {row['datatype']} 2^{row['n'].bit_length() - 1:<3}" + " ".join(cells)


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24,2^26,2^28", show_default=True)
@click.option("--primitives", default="copy,vector_add,reduce,scan,scan_exclusive", show_default=True)
@click.option("--datatypes", type=AxisList("datatype"), default="u32,f32", show_default=True)
@click.option("--peers", default="cub,torch,cupy", show_default=True)
@click.option("--rounds", default=30, show_default=True)
@click.option("--warmup-s", default=0.5, show_default=True, help="Per case and side.")
@click.option("--forms", is_flag=True, help="Also our own scans of other kinds, datatypes and operators.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), help="Draw them here.")
def main(counts, primitives, datatypes, peers, rounds, warmup_s, forms, adapter, json_path, plot_path) -> None:
    """Compare and print a table: our time in µs, then theirs over ours (above 1: this library is faster)."""
    device = gw.request_device(adapter)
    rows, wrong = [], False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build_cub(folder) if "cub" in peers else "not asked for"
        if isinstance(program, str):
            print(f"without CUB: {program}")
        print(
            f"{gw.capabilities(device).adapter}; medians of {rounds}; single: ours µs, ×cub ×torch ×cupy | back to back"
        )
        for n in counts:
            for spec in filter(None, primitives.split(",")):
                for datatype in datatypes:
                    primitive = spec.removesuffix("_exclusive")
                    kind = "exclusive" if spec != primitive else "inclusive"
                    work = Work(device, Case.build(primitive, n, datatype, "add"), kind, folder)
                    wrong |= work.mismatch is not None
                    sides = {"gridwise_py": ours(work, rounds, warmup_s)}
                    sides["cub"] = cub(program, work, rounds, warmup_s)
                    for peer in ("torch", "cupy"):
                        sides[peer] = (
                            python_peer(peer, work, rounds, warmup_s) if peer in peers else {"skipped": "not asked for"}
                        )
                    for side in sides.values():
                        side["single"] = _median(side.get("single_ns"))
                        side["back_to_back"] = _median(side.get("back_to_back_ns"))
                    row = {
                        "primitive": work.name,
                        "n": n,
                        "datatype": datatype,
                        "correct": work.mismatch is None,
                        "parameters": dict(work.run.plan.parameters),
                        "moved_bytes": work.run.plan.work.moved_bytes,
                        "sides": sides,
                    }
                    rows.append(row)
                    print(_line(row) + ("" if row["correct"] else f" WRONG: {work.mismatch}"), flush=True)
                    work.primitive.release()
    found = [form for n in (counts if forms else ()) for form in scan_forms(device, n, max(3, rounds // 6))]
    wrong |= not all(form["correct"] for form in found)
    if json_path is not None:
        write_results(json_path, {**run_context(device), "launches": LAUNCHES, "results": rows, "forms": found})
    if plot_path is not None:
        plot(rows, gw.capabilities(device).adapter, plot_path)
    if wrong:
        sys.exit(4)


def scan_forms(device, n: int, rounds: int, seconds: float = 0.1) -> list[dict[str, object]]:
    """Measure our scans of all forms in turns, and print their times over that of the inclusive add of u32."""
    rng = np.random.default_rng(n)
    data = {
        "u32": rng.integers(0, 1 << 32, n, dtype=np.uint32),
        "i32": rng.integers(-(1 << 31), 1 << 31, n, dtype=np.int32),
        "f32": rng.random(n, dtype=np.float32) - np.float32(0.5),
    }
    arrays = {name: gw.asarray(values, device) for name, values in data.items()}
    primitives = {}
    for name, (datatype, op, kind) in FORMS.items():
        primitives[name] = gw.Scan(device, datatype, op, kind)
        primitives[name].bind(input=arrays[datatype], output=gw.empty(n, datatype, device))
    protocol = gw.SamplingProtocol(
        min_samples=10, block_trials=10, timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds,
        canary_passes=1, check_unit=False,
        batch_trials=LAUNCHES if n <= 1 << 24 else 10,
    )  # fmt: skip
    taken = interleaved(primitives, {}, rounds=rounds, protocol=protocol, check=True)
    times = {name: np.concatenate(samples_ns(ms)) if ms[0].correct else None for name, ms in taken.items()}
    base = times[next(iter(FORMS))]
    forms = []
    for name, (datatype, op, kind) in FORMS.items():
        time_ns = None if times[name] is None else float(np.median(times[name]))
        ratio = None if time_ns is None or base is None else time_ns / float(np.median(base))
        form = {"name": name, "n": n, "datatype": datatype, "op": op, "kind": kind, "correct": time_ns is not None}
        forms.append({**form, "back_to_back": time_ns, "ratio": ratio, "parameters": dict(taken[name][0].parameters)})
        shown = "WRONG" if time_ns is None else f"{time_ns / 1e3:9.2f} us  {ratio or 0:6.3f}"
        print(f"scan {name:24} 2^{n.bit_length() - 1:<3}{shown}", flush=True)
    for primitive in primitives.values():
        primitive.release()
    return forms


def plot(rows: list[dict], adapter: str, path: Path) -> None:
    """Draw GB/s over n for each primitive of the first datatype, all sides, back to back."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Okabe and Ito's colours, told apart by markers, too.
    styles = {
        "gridwise_py": ("#0072B2", "o", "-"),
        "cub": ("#D55E00", "s", "--"),
        "torch": ("#009E73", "^", "-."),
        "cupy": ("#CC79A7", "v", ":"),
    }
    names = list(dict.fromkeys(row["primitive"] for row in rows))
    figure, axes = pyplot.subplots(1, len(names), figsize=(3.6 * len(names), 3.4), squeeze=False, sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        mine = [r for r in rows if r["primitive"] == name and r["datatype"] == rows[0]["datatype"]]
        for side, (color, marker, line) in styles.items():
            points = [(r["n"], r["moved_bytes"] / t) for r in mine if (t := r["sides"][side].get("back_to_back"))]
            if points:
                axis.plot(*zip(*points, strict=True), color=color, marker=marker, linestyle=line, label=side)
        axis.set_xscale("log", base=2)
        axis.set_xlabel("items")
        axis.set_title(f"{name}, {rows[0]['datatype']}")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("GB/s (back to back, medians)")
    axes[0][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.suptitle(adapter)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
