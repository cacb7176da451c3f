"""This library against PyTorch on the same GPU, in one run: same bytes, same data, interleaved calls.

Usage: python benchmarks/peers/torch_peer.py [--n 2^20,2^24,2^26,2^28] [--json FILE]

Needs PyTorch with CUDA and a Vulkan driver for the same GPU. A sample is one call: ours between the timestamps of
its passes (span), PyTorch's between two CUDA events. Below about 2^24 these clocks do not see the same thing: the
launch from the host lies between the events.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.case import Case
from gridwise_py.bench.check import mismatch
from gridwise_py.bench.results import run_context, write_results
from gridwise_py.cli.options import AxisList

try:
    import torch
except ImportError:
    sys.exit("torch_peer: PyTorch is not installed; pip install torch")


def torch_call(case: Case, inputs: dict[str, np.ndarray]) -> Callable[[], object]:
    """Return a function that does the same work in PyTorch."""
    tensors = {name: torch.from_numpy(values).cuda() for name, values in inputs.items()}
    if case.primitive == "vector_add":
        out = torch.empty_like(tensors["a"])
        return lambda: torch.add(tensors["a"], tensors["b"], out=out)
    if case.primitive == "copy":
        out = torch.empty_like(tensors["input"])
        return lambda: out.copy_(tensors["input"])
    if case.primitive == "reduce":
        return lambda: torch.sum(tensors["input"])
    out = torch.empty_like(tensors["input"])
    return lambda: torch.cumsum(tensors["input"], 0, out=out)


def torch_ns(call: Callable[[], object]) -> float:
    """Return the time of one call between two events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e6


def compare(device, case: Case, rounds: int, warmup_s: float) -> dict[str, object]:
    """Measure one case on both sides."""
    primitive = case.make(device)
    inputs = case.inputs(primitive, seed=0)
    run = primitive.execute(**{name: gw.asarray(values, device) for name, values in inputs.items()})
    wrong = mismatch(primitive, inputs, run.output.to_numpy())
    theirs_call = torch_call(case, inputs)

    def ours_ns() -> float:
        return primitive.execute(enable_gpu_timing=True).get_timing_result().gpu_span_ns

    # Checking left the GPU idle, which clocks it down: warm both sides up by time.
    deadline = time.perf_counter() + warmup_s
    while time.perf_counter() < deadline:
        primitive.execute(trials=10)
        theirs_call()
        torch.cuda.synchronize()
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(ours_ns())
        theirs.append(torch_ns(theirs_call))
    moved = run.plan.work.moved_bytes
    ours_median, theirs_median = statistics.median(ours), statistics.median(theirs)
    return {
        "primitive": case.primitive,
        "n": case.n,
        "datatype": case.datatype,
        "correct": wrong is None,
        "parameters": dict(run.plan.parameters),
        "ours_ns": ours_median,
        "torch_ns": theirs_median,
        "ours_gbytes_per_s": moved / ours_median,
        "torch_gbytes_per_s": moved / theirs_median,
        "ratio": theirs_median / ours_median,
        "ours_quartiles_ns": list(np.percentile(ours, [25, 75])),
        "torch_quartiles_ns": list(np.percentile(theirs, [25, 75])),
        "rounds": rounds,
    }


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24,2^26,2^28", show_default=True)
@click.option("--primitives", default="copy,vector_add,reduce,scan", show_default=True)
@click.option("--rounds", default=50, show_default=True)
@click.option("--warmup-s", default=1.0, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(counts, primitives, rounds, warmup_s, adapter, json_path) -> None:
    """Compare with PyTorch and print a table; a ratio over 1 means that this library is faster."""
    if not torch.cuda.is_available():
        sys.exit("torch_peer: PyTorch sees no CUDA device")
    device = gw.request_device(adapter)
    name = torch.cuda.get_device_name(0)
    print(f"{gw.capabilities(device).adapter} against torch {torch.__version__} on {name}; f32, single calls, medians")
    print(f"{'primitive':12} {'n':>12} {'ours GB/s':>10} {'torch GB/s':>11} {'ratio':>6}  right")
    rows = []
    for n in counts:
        for primitive in primitives.split(","):
            row = compare(device, Case.build(primitive, n, "f32", "add"), rounds, warmup_s)
            rows.append(row)
            print(
                f"{primitive:12} {n:12,} {row['ours_gbytes_per_s']:10.0f} {row['torch_gbytes_per_s']:11.0f} "
                f"{row['ratio']:6.3f}  {row['correct']}",
                flush=True,
            )
            torch.cuda.empty_cache()
    if json_path is not None:
        peer = {"name": "torch", "version": torch.__version__, "cuda": torch.version.cuda, "device": name}
        write_results(json_path, {**run_context(device), "peer": peer, "results": rows})


if __name__ == "__main__":
    main()
