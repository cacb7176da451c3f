"""Two instruments on one GPU: ours on our kernels, and CUDA events on PyTorch's, for the same bytes and the same data.

Usage: python benchmarks/peers/torch_peer.py [--n 2^20,2^24,2^26,2^28] [--json FILE]

Needs PyTorch with CUDA and a Vulkan driver for the same GPU; without them it says so and ends with 2. Two figures for
each case and side, taken in turn, round after round:

single   one call: ours from the first timestamp of its passes to the last (mode hot), PyTorch's between two events that
         are recorded around it. Below about 2^24 these do not see the same thing: the launch from the host lies between
         the events.
batch    calls one after another, the time of one: ours as dispatches in one pass (mode batch), PyTorch's as calls
         between two events.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import wgpu

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.stats.statistics import summarize
from gridwise_py.cli.options import AxisList
from gridwise_py.display.quantities import format_time
from gridwise_py.storage.json_files import write_json

RESULTS = Path(__file__).resolve().parent.parent / "results" / "torch_peer.json"
CALLS_AT_ONCE = 50  # as many as our mode hot has trials in a submission
BATCH_NS = 1e6


def load_torch() -> ModuleType:
    """Return PyTorch, if it can use a GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise click.UsageError("PyTorch is not installed, so there are no CUDA events: pip install torch") from error
    if not torch.cuda.is_available():
        raise click.UsageError("PyTorch sees no CUDA device, so there are no CUDA events; this needs an NVIDIA GPU")
    return torch


def torch_call(torch: ModuleType, case: Case, inputs: dict[str, np.ndarray]) -> Callable[[], object]:
    """Return a function that does the same work in PyTorch, and returns its result."""
    tensors = {name: torch.from_numpy(values).cuda() for name, values in inputs.items()}
    if case.primitive == "reduce":
        return lambda: torch.sum(tensors["input"])
    out = torch.empty_like(next(iter(tensors.values())))
    return {
        "vector_add": lambda: torch.add(tensors["a"], tensors["b"], out=out),
        "copy": lambda: out.copy_(tensors["input"]),
        "scan": lambda: torch.cumsum(tensors["input"], 0, out=out),
    }[case.primitive]


class Events:
    """CUDA events around calls."""

    def __init__(self, torch: ModuleType, call: Callable[[], object]):
        self.torch, self.call = torch, call

    def warm_up(self, seconds: float) -> None:
        """Call it for a time, without pauses: an idle GPU clocks down."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            for _ in range(CALLS_AT_ONCE):
                self.call()
            self.torch.cuda.synchronize()

    def times_ns(self, samples: int, calls: int = 1) -> list[float]:
        """Return the time of one call, of `calls` between two events; nothing is waited for until all are recorded."""
        found: list[float] = []
        while len(found) < samples:
            pairs = []
            for _ in range(min(CALLS_AT_ONCE, samples - len(found))):
                begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(calls):
                    self.call()
                end.record()
                pairs.append((begin, end))
            self.torch.cuda.synchronize()
            found += [begin.elapsed_time(end) * 1e6 / calls for begin, end in pairs]
        return found


def compare(
    device: wgpu.GPUDevice, torch: ModuleType, case: Case, rounds: int, samples: int, warmup_s: float
) -> dict[str, object]:
    """Measure one case on both sides."""
    primitive = case.make(device)
    inputs = case.inputs(primitive, seed=0)
    arrays = {name: gw.asarray(values, device) for name, values in inputs.items()}
    run = primitive.execute(**arrays)
    wrong = {"ours": mismatch(primitive, inputs, {"output": run.output.to_numpy()})}
    call = torch_call(torch, case, inputs)
    theirs = np.atleast_1d(call().cpu().numpy())
    wrong["torch"] = mismatch(primitive, inputs, {"output": theirs})
    events = Events(torch, call)
    events.warm_up(warmup_s)
    calls = max(1, round(BATCH_NS / float(np.median(events.times_ns(20)))))
    protocol = gw.SamplingProtocol(samples=samples, warmup_s=warmup_s, batch_trials=calls)
    times: dict[str, dict[str, list[float]]] = {side: {"single": [], "batch": []} for side in ("ours", "torch")}
    warnings: set[str] = set()
    for _ in range(rounds):
        for name, mode in (("single", "hot"), ("batch", "batch")):
            measured = gw.measure(primitive, mode=mode, protocol=protocol, check=False, **arrays)
            times["ours"][name] += measured.whole["gpu_span"].samples_ns
            warnings |= set(measured.warnings)
        events.warm_up(warmup_s)
        times["torch"]["single"] += events.times_ns(samples)
        times["torch"]["batch"] += events.times_ns(max(5, samples // 5), calls)
    primitive.release()
    moved = run.plan.work.moved_bytes
    sides = {
        side: {
            name: {**(summary := summarize(values)).to_json(), "gbytes_per_s": moved / summary.median_ns}
            for name, values in found.items()
        }
        for side, found in times.items()
    }
    return {
        "primitive": case.primitive,
        "n": case.n,
        "datatype": case.datatype,
        "moved_bytes": moved,
        "correct": {side: found is None for side, found in wrong.items()},
        "parameters": dict(run.plan.parameters),
        "calls_in_a_batch": calls,
        "rounds": rounds,
        **sides,
        "ratio": {
            name: sides["torch"][name]["median_ns"] / sides["ours"][name]["median_ns"] for name in ("single", "batch")
        },
        "warnings": sorted(warnings),
    }


@click.command()
@click.option("--n", "counts", type=AxisList("n"), default="2^20,2^24,2^26,2^28", show_default=True, help="Items.")
@click.option("--primitives", default="copy,vector_add,reduce,scan", show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Both sides in turn, so often.")
@click.option("--samples", default=200, show_default=True, help="Of each side, figure and round.")
@click.option("--warmup-s", default=0.3, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), default=RESULTS, help="Write the figures here.")
def main(
    counts: list[int], primitives: str, rounds: int, samples: int, warmup_s: float, adapter: str | None, json_path: Path
) -> None:
    """Show both instruments; a ratio over 1 means that this library is faster."""
    torch = load_torch()
    device = gw.request_device(adapter)
    name = torch.cuda.get_device_name(0)
    click.echo(f"{gw.capabilities(device).adapter} against torch {torch.__version__} on {name}; f32, medians")
    click.echo(
        f"{'primitive':12} {'n':>12} {'':6} {'ours':>12} {'GB/s':>7} {'events':>12} {'GB/s':>7} {'ratio':>6}  right"
    )
    rows = []
    context = run_context(device)
    peer = {"name": "torch", "version": torch.__version__, "cuda": torch.version.cuda, "device": name}
    json_path.parent.mkdir(parents=True, exist_ok=True)
    for n in counts:
        for primitive in primitives.split(","):
            row = compare(device, torch, Case.build(primitive, n, "f32", "add"), rounds, samples, warmup_s)
            rows.append(row)
            for figure in ("single", "batch"):
                ours, theirs = row["ours"][figure], row["torch"][figure]
                click.echo(
                    f"{primitive:12} {n:12,} {figure:6} {format_time(ours['median_ns']):>12} "
                    f"{ours['gbytes_per_s']:7.0f} {format_time(theirs['median_ns']):>12} "
                    f"{theirs['gbytes_per_s']:7.0f} {row['ratio'][figure]:6.3f}  {all(row['correct'].values())}"
                )
            torch.cuda.empty_cache()
            # After each case, so that a run that is cut off leaves what it has.
            write_json(json_path, {**context, "peer": peer, "results": rows})
    click.echo(f"wrote {json_path.name}")


if __name__ == "__main__":
    main()
