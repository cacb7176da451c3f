"""What windows cost: the same work with one binding per array, and with bindings that are too small for it.

Usage: python benchmarks/windows.py [--n 2^28] [--windows 2,4] [--kernels "vector_add; reduce; scan"] [--json FILE]
       python benchmarks/windows.py --full [--large 2^30] [--memory 100] …

Vector add, reduce, scan and sort of u32, and the fixed order of `deterministic=True` sums of f32. The same n is done
as it is, and with an invented limit of bindings that makes so many windows (for a sort, segments). All ways take turns,
in an order that is drawn anew each round; the cost is the median over the rounds of a round's ratio to "one binding".
Vector add takes two arrays, or one that is added to itself. Results of all ways are compared with that of one binding,
on the GPU, before and after each measurement.

With --full, n is what one binding of the device holds (2^28 for sorts), where windows begin to be needed; and there are
rows of `--large` items in a `ChunkedArray`, and of the largest single Array (`--largest`), as long as `--memory` GiB
hold them, against what one binding's rate would make of them. Results of these are compared with numpy, once; that, and
what they move to the GPU and back, takes most of their time.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from compare_items import Differences

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.storage.json_files import write_json

SHARED = "vector_add, x + x"  # both inputs are one array, which is read from memory once and from a cache once
KERNELS = {
    "vector_add": (gw.VectorAdd, "u32", {}),
    SHARED: (gw.VectorAdd, "u32", {}),
    "reduce": (gw.Reduce, "u32", {}),
    "scan": (gw.Scan, "u32", {}),
    "scan, reduce-then-scan": (gw.Scan, "u32", {"strategy": "reduce_then_scan"}),
    "reduce, deterministic": (gw.Reduce, "f32", {"deterministic": True}),
    "scan, deterministic": (gw.Scan, "f32", {"deterministic": True}),
    "sort": (gw.Sort, "u32", {}),
}
LARGE = ("vector_add", SHARED, "reduce", "scan", "sort")
ONE = "one binding"
_SPARE_BYTES = 512  # of a window: the alignment of bindings, and a vec4


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def limited(capabilities: gw.Capabilities, nbytes: int, windows: int) -> gw.Capabilities:
    """Return capabilities under which an array of `nbytes` takes that many windows."""
    limit = -(-nbytes // windows // 65536) * 65536 + _SPARE_BYTES
    return replace(capabilities, limits={**capabilities.limits, "max-storage-buffer-binding-size": limit})


def measured(
    primitive: gw.Primitive, arrays: Mapping[str, Any], mode: str, protocol: gw.SamplingProtocol, check: Any = False
) -> float:
    """Return the median time of a call in ns; `check` as `gw.measure` takes it."""
    found = gw.measure(primitive, mode=mode, protocol=protocol, check=check, **arrays)
    if found.mismatches:
        raise SystemExit(f"{primitive}: {found.mismatches[0]}")
    (times,) = samples_ns([found])
    return statistics.median(times)


class Inputs:
    """Random items on the device, the same for every kernel: drawn once, and uploaded once for each datatype."""

    def __init__(self, device: Any):
        self._device = device
        self._host = np.empty(0, dtype=np.uint32)
        self._arrays: dict[str, gw.Array] = {}

    def get(self, datatype: str, n: int) -> gw.Array:
        """Return `n` items: any u32, or integers below 2^23, which f32 holds."""
        if self._host.size != n:
            for array in self._arrays.values():
                array.destroy()
            self._arrays = {}
            self._host = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
        if datatype not in self._arrays:
            items = self._host if datatype == "u32" else (self._host >> 9).astype(gw.DATATYPES[datatype].dtype)
            self._arrays[datatype] = gw.asarray(items, self._device)
        return self._arrays[datatype]


def arguments(primitive: gw.Primitive, data: Any, shared: bool) -> dict[str, Any]:
    """Return a primitive's arguments: its inputs are `data` and copies of it, or `data` alone if that is `shared`.

    The output is one that the primitive has written.
    """
    first, *others = [a.name for a in primitive.signature.arguments.values() if not a.is_output]
    copy = gw.Copy(data.device, data.datatype)
    inputs = {first: data, **{name: data if shared else copy.execute(input=data).output for name in others}}
    return {**inputs, "output": primitive.execute(**inputs).output}


def in_turns(
    name: str, inputs: Inputs, device: Any, n: int, counts: list[int], rounds: int, mode: str,
    protocol: gw.SamplingProtocol,
) -> list[dict[str, Any]]:  # fmt: skip
    """Measure one kernel with one binding and in windows; return a row for each way."""
    cls, datatype, options = KERNELS[name]
    capabilities = gw.capabilities(device)
    ways = {ONE: cls(device, datatype, **options)}
    for count in counts:
        ways[f"{count} windows"] = cls(
            device, datatype, capabilities=limited(capabilities, 4 * n, count), **options
        )  # fmt: skip
    data = inputs.get(datatype, n)
    arrays = arguments(ways[ONE], data, name == SHARED)
    expected = arrays["output"]
    output = arrays["output"] = gw.empty_like(expected)
    differences = Differences(device)

    def check(outputs: Mapping[str, gw.Array]) -> Any:
        return differences.mismatch(outputs["output"], expected)

    times: dict[str, list[float]] = {way: [] for way in ways}
    windows = {}
    for way, primitive in ways.items():
        encoder = device.create_command_encoder()
        # Whatever a way leaves unwritten must not be the right result of the one before.
        encoder.clear_buffer(output.buffer)
        run = primitive.execute(encoder=encoder, **arrays)
        device.queue.submit([encoder.finish()])
        windows[way] = windows_in(run.plan)
        if (wrong := check(run.outputs)) is not None:
            raise SystemExit(f"{name}, {way}: the result differs from that of one binding: {wrong}")
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        for way in rng.permutation(list(ways)):
            times[str(way)].append(measured(ways[str(way)], arrays, mode, protocol, check))
    for primitive in ways.values():
        primitive.release()
    for array in (*arrays.values(), expected):
        if array is not data:
            array.destroy()
    return [
        {
            "kernel": name, "way": way, "n": n, "windows": windows[way], "median_ns": statistics.median(found),
            "rounds_ns": found,
            "cost_percent": None if way == ONE else round(
                100 * (statistics.median(a / b for a, b in zip(found, times[ONE], strict=True)) - 1), 2
            ),
        }
        for way, found in times.items()
    ]  # fmt: skip


def large(
    name: str, device: Any, n: int, chunked: bool, rate: float, rounds: int, mode: str, protocol: gw.SamplingProtocol
) -> dict[str, Any]:
    """Measure `n` items in one Array or in chunks, check them, and compare with `rate`, in ns per item."""
    cls, datatype, options = KERNELS[name]
    items = np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
    if chunked:
        fits = 4 * n <= gw.capabilities(device).limits["max-storage-buffer-binding-size"]
        data = gw.ChunkedArray.from_numpy(items, chunk_items=-(-n // 2) if fits else None, device=device)
    else:
        data = gw.asarray(items, device)
    primitive = cls(device, datatype, **options)
    arrays = arguments(primitive, data, name == SHARED)
    run = primitive.execute(**arrays)
    right = np.sort(items) if name == "sort" else primitive.reference(*[items] * (len(arrays) - 1))
    if not np.array_equal(run.output.to_numpy(), right):
        raise SystemExit(f"{name}, {n} items: the result is wrong")
    del right, items
    found = [measured(primitive, arrays, mode, protocol) for _ in range(rounds)]
    windows = windows_in(run.plan)
    primitive.release()
    for array in arrays.values():
        array.destroy()
    return {
        "kernel": name, "way": f"{len(data.chunks)} chunks" if chunked else "one Array", "n": n, "windows": windows,
        "median_ns": statistics.median(found), "rounds_ns": found,
        "cost_percent": round(100 * (statistics.median(found) / (rate * n) - 1), 2),
    }  # fmt: skip


def windows_in(plan: gw.Plan) -> int:
    """Return how many windows a plan has; a sort has segments or chunks, as many bindings of its input."""
    most = max(sum(b.buffer.startswith("input") for b in kernel.bindings) for kernel in plan.kernels)
    return plan.parameters.get("windows", most)


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", "n_text", help="Items; by default 2^28.")
@click.option("--full", is_flag=True, help="What one binding holds (sorts 2^28), --large 2^30 and --largest; minutes.")
@click.option("--windows", "windows_text", default="2,4", show_default=True, help="How many, by commas.")
@click.option("--kernels", "kernels_text", help=f"Of {'; '.join(KERNELS)}; by semicolons.")
@click.option("--large", "large_text", help="Items in a ChunkedArray; by default 2^30 with --full, else 0: none.")
@click.option("--largest/--no-largest", default=None, help="Also the largest single Array; by default with --full.")
@click.option("--memory", "memory_gib", default=100.0, show_default=True, help="GiB that these may take on the GPU.")
@click.option("--mode", default="hot", show_default=True, type=click.Choice(["hot", "cold", "batch", "latency"]))
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.2, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--quick", is_flag=True, help="2^20 items, two short rounds: for CPU adapters.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(
    adapter,
    n_text,
    full,
    windows_text,
    kernels_text,
    large_text,
    largest,
    memory_gib,
    mode,
    rounds,
    seconds,
    quick,
    json_path,
) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    capabilities = gw.capabilities(device)
    if quick:
        n_text, large_text, largest = n_text or "2^20", "2^21", False
        rounds, seconds = min(rounds, 2), min(seconds, 0.05)
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    most = capabilities.limits["max-storage-buffer-binding-size"] // 4 // 65536 * 65536
    names = [name.strip() for name in kernels_text.split(";")] if kernels_text else list(KERNELS)
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        raise click.BadParameter(f"no {unknown[0]!r}; there are {'; '.join(KERNELS)}", param_hint="--kernels")
    counts = [parse_count(text) for text in windows_text.split(",")]
    n_large = parse_count(large_text or ("2^30" if full else "0"))
    largest = full if largest is None else largest
    inputs, context = Inputs(device), run_context(device)
    rows: list[dict[str, Any]] = []
    print(f"{capabilities.adapter}; mode {mode}, medians of {rounds} rounds; the cost is that over one binding")
    print(f"{'':24} {'way':12} {'n':>11} {'windows':>8} {'time, ms':>10} {'cost, %':>8}")

    def show(found: list[dict[str, Any]]) -> None:
        rows.extend(found)
        for row in found:
            cost = "" if row["cost_percent"] is None else f"{row['cost_percent']:8.2f}"
            print(
                f"{row['kernel']:24} {row['way']:12} {row['n']:11} {row['windows']:8} {row['median_ns'] / 1e6:10.3f} "
                f"{cost:>8}",
                flush=True,
            )
        # As soon as there is something, so that a run that is cut off leaves what it has.
        if json_path is not None:
            write_json(json_path, {**context, "mode": mode, "rounds": rounds, "results": rows})

    for name in names:
        usual = most if full and name != "sort" else min(most, 1 << 28)
        n = parse_count(n_text) if n_text else usual
        found = in_turns(name, inputs, device, n, counts, rounds, mode, protocol)
        show(found)
        rate, most_items = found[0]["median_ns"] / n, int(memory_gib * 2**30) // 12
        # A sort takes fewer than 2^30 keys.
        n_chunked = min(n_large, (1 << 30) - 65536) if name == "sort" else n_large
        if name in LARGE and 0 < n_chunked <= most_items:
            show([large(name, device, n_chunked, True, rate, rounds, mode, protocol)])
        n_largest = min(capabilities.limits["max-buffer-size"] // 4, (1 << 30) - 1) // 65536 * 65536
        if name in LARGE and largest and n_largest <= most_items:
            show([large(name, device, n_largest, False, rate, rounds, mode, protocol)])


if __name__ == "__main__":
    main()
