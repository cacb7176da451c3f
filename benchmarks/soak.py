"""Scans, sorts or selections in a row, each compared item by item: looks for the wrong one in a hundred thousand.

Usage: python benchmarks/soak.py scan [--n 2^20,2^24] [--runs 100000,10000] [--strategy all] [--seconds 600] [--json F]
       python benchmarks/soak.py sort [--n 2^22] [--runs 2000] [--stall-every 0] …
       python benchmarks/soak.py select|unique|reduce_by_key|segmented_reduce [--n 2^22] …

A row is a length, a strategy and, for a scan's look-back, a form of the state words. It ends after its runs, or when
its share of the time is up; the row says how many were done.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sweep.axes import parse_axis
from gridwise_py.cli.options import AxisValues
from gridwise_py.planning.faults import faulty
from gridwise_py.planning.lookback_state import STATES
from gridwise_py.storage.json_files import write_json

CLASSES = {
    "scan": gw.Scan, "sort": gw.Sort, "select": gw.Select, "unique": gw.Unique, "reduce_by_key": gw.ReduceByKey,
    "segmented_reduce": gw.SegmentedReduce,
}  # fmt: skip
STRATEGIES = {kind: ("lookback", "reduce_then_scan") for kind in CLASSES} | {"sort": ("onesweep", "reduce_then_scan")}
DEFAULTS = {kind: ([1 << 22], "2000") for kind in CLASSES} | {"scan": ([1 << 20, 1 << 24], "100000,10000")}
# Runs between two looks at the clock and at the count of wrong items.
BATCH = 500


_COUNT_DIFFERENCES = """
@group(0) @binding(0) var<storage, read> got: array<u32>;
@group(0) @binding(1) var<storage, read> expected: array<u32>;
@group(0) @binding(2) var<storage, read_write> wrong: array<atomic<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>) {
  for (var i = id.x; i < arrayLength(&got); i += grid.x * 256u) {
    if (got[i] != expected[i]) { atomicAdd(&wrong[0], 1u); }
  }
}
"""


class Differences:
    """Counts items in which two arrays of a device differ in their bits.

    Parameters
    ----------
    device : wgpu.GPUDevice

    Notes
    -----
    Arrays have items of 32 bits, and fit into a binding. Floats are compared as bits: 0 differs from -0, and a NaN is
    equal to itself.
    """

    def __init__(self, device):
        any_bits = {"got": None, "expected": None}
        bindings = {"got": "read", "expected": "read", "wrong": "read_write"}
        self._compare = gw.Kernel(device, _COUNT_DIFFERENCES, bindings, 1024, label="compare", dtypes=any_bits)
        self._wrong = gw.zeros(1, np.uint32, device)

    def record(self, encoder, got: gw.Array, expected: gw.Array) -> None:
        """Count in what `encoder` will submit; counts add up until they are read."""
        if (got.size, got.datatype) != (expected.size, expected.datatype) or got.dtype.itemsize != 4:
            raise ValueError(f"{got} and {expected} must have one length and one datatype, of 32 bits")
        self._compare.record(encoder, got=got, expected=expected, wrong=self._wrong)

    def total(self) -> int:
        """Return how many items differed since it was made."""
        return int(self._wrong.to_numpy()[0])


def data_of(primitive: gw.Primitive, n: int) -> tuple[dict[str, np.ndarray], str, np.ndarray]:
    """Return the inputs of a primitive, the output that is compared, and what of it is written.

    Most keys begin a run, so that tiles have more runs than room. A few segments have half of all items.
    """
    rng = np.random.default_rng(n)
    x = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    keys = np.cumsum(rng.random(n) < 0.97, dtype=np.uint32)
    if isinstance(primitive, gw.ReduceByKey):
        inputs = {"keys": keys, "items": x}
        return inputs, "output_values", primitive.reference(**inputs)[1]
    if isinstance(primitive, gw.SegmentedReduce):
        bounds = np.concatenate([rng.integers(0, n, n // 512), rng.integers(0, n // 2, n // 64)])
        inputs = {"items": x, "offsets": np.append(np.sort(bounds[(bounds < n // 8) | (bounds > n // 2)]), n)}
        inputs["offsets"] = inputs["offsets"].astype(np.uint32)
        return inputs, "output", primitive.reference(**inputs)
    if isinstance(primitive, gw.Unique):
        return {"keys": keys}, "output", primitive.reference(keys=keys)[0]
    return {"input": x}, "output", x[x & 1 == 1] if isinstance(primitive, gw.Select) else primitive.reference(x)


def soak(primitive: gw.Primitive, n: int, runs: int, *, seconds: float) -> dict[str, object]:
    """Run and compare, for `seconds` at most; return how many items were wrong in all runs together."""
    device = primitive.device
    inputs, name, found = data_of(primitive, n)
    length = primitive.signature.output_length(name, {each: items.size for each, items in inputs.items()})
    # What is not written stays as it was.
    before = np.arange(length, dtype=np.uint32)
    expected = gw.asarray(np.concatenate([found, before[len(found) :]]), device)
    source, output = gw.asarray(before, device), gw.empty(length, "u32", device)
    arrays = {each: gw.asarray(items, device) for each, items in inputs.items()}
    differences = Differences(device)
    poison = gw.Copy(device, "u32")
    begin = time.perf_counter()
    plan, done = None, 0
    while done < runs and (not done or time.perf_counter() - begin < seconds):
        # Short ones first, so that a slow adapter looks at the clock in time.
        for _ in range(min(BATCH, runs - done, max(10, done))):
            encoder = device.create_command_encoder()
            # Whatever a wrong run leaves unwritten must not be an earlier right result.
            poison.record(encoder, input=source, output=output)
            plan = primitive.execute(encoder=encoder, **arrays, **{name: output}).plan
            differences.record(encoder, output, expected)
            device.queue.submit([encoder.finish()])
            done += 1
        total = differences.total()
    return {
        "primitive": primitive.name,
        "n": n,
        "runs": done,
        "strategy": plan.parameters.get("strategy"),
        "wrong_items": total,
        "seconds": time.perf_counter() - begin,
        "parameters": dict(plan.parameters),
    }


def forms(device, kind: str, strategy: str, states: str | None) -> list[tuple[str, str | None]]:
    """Return strategies and forms of the state: those asked for, else all that the device can do."""
    wanted = STRATEGIES[kind] if strategy == "all" else (strategy,)
    if states is None:
        wide = "shader-int64-atomic-all-ops" in device.features and "shader-int64" in device.features
        found = STATES if wide else tuple(s for s in STATES if s != "u64")
    else:
        found = tuple(states.split(","))
    # Only the scan's look-back has a choice of state words.
    return [(s, state) for s in wanted for state in (found if (kind, s) == ("scan", "lookback") else (None,))]


def make(kind: str, device, strategy: str, state: str | None, stall_every: int) -> gw.Primitive:
    """Return the primitive of a row."""
    cls = faulty(CLASSES[kind], stall_every=stall_every)
    if kind == "select":
        return cls(device, gw.u32("input"), where=gw.u32("input") & 1, strategy=strategy)
    return cls(device, "u32", strategy=strategy, tuning=None if state is None else gw.ScanTuning(state=state))


@click.command()
@click.argument("kind", type=click.Choice(sorted(STRATEGIES)))
@click.option("--n", "counts", type=AxisValues("n"), help="By default 2^20,2^24; of others 2^22.")
@click.option("--runs", help="One number, or one for each n; by default 100000,10000; of others 2000.")
@click.option("--strategy", default="all", show_default=True, help="lookback or onesweep, or reduce_then_scan.")
@click.option("--states", help="Forms of the state words, of look-back; by default all that the device can do.")
@click.option("--stall-every", default=0, show_default=True, help="So many tiles, of which one never posts.")
@click.option("--seconds", default=600.0, show_default=True, help="Of all rows together, at most.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(kind, counts, runs, strategy, states, stall_every, seconds, adapter, json_path) -> None:
    """Soak the primitive; exit 4 if anything was wrong."""
    if strategy != "all" and strategy not in STRATEGIES[kind]:
        raise click.BadParameter(f"{kind} has {', '.join(STRATEGIES[kind])}", param_hint="--strategy")
    usual_counts, usual_runs = DEFAULTS[kind]
    numbers = [int(word) for word in str(runs or (usual_runs if not counts else usual_runs.split(",")[0])).split(",")]
    counts = list(parse_axis(f"n={counts}").values) if counts else usual_counts
    if len(numbers) not in (1, len(counts)):
        raise click.BadParameter(f"give one number, or {len(counts)}, one for each n", param_hint="--runs")
    device = gw.request_device(adapter)
    cases = [
        (n, number, *form)
        for n, number in zip(counts, numbers if len(numbers) > 1 else numbers * len(counts), strict=True)
        for form in forms(device, kind, strategy, states)
    ]
    rows, deadline = [], time.perf_counter() + seconds
    for i, (n, number, form, state) in enumerate(cases):
        # What earlier rows left over goes to the later ones.
        share = max(0.0, deadline - time.perf_counter()) / (len(cases) - i)
        primitive = make(kind, device, form, state, stall_every)
        row = soak(primitive, n, number, seconds=share)
        row |= {"state": state, "runs_asked_for": number}
        rows.append(row)
        primitive.release()
        short = "" if row["runs"] == number else f" (of {number:,}: the time was up)"
        print(
            f"n={n:,} {form}{'' if state is None else f' {state}'}: {row['wrong_items']} wrong items in "
            f"{row['runs']:,} runs{short}, {row['seconds']:.0f} s",
            flush=True,
        )
    if json_path is not None:
        write_json(json_path, {**run_context(device), "results": rows})
    if any(row["wrong_items"] for row in rows):
        sys.exit(4)


if __name__ == "__main__":
    main()
