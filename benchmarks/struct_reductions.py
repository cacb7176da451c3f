"""argmax, minmax, mean and var beside the plain reductions of the same items, and beside PyTorch.

Usage: python benchmarks/struct_reductions.py [--n 2^28] [--rounds 3] [--sweep] [--no-torch] [--json FILE]

All cases take turns, round after round; a figure is the median over the rounds of the time of one of several dispatches
in a pass (PyTorch: calls between two CUDA events). GB/s counts each item once, 4 bytes. `of plain` is the time of the
plain maximum (for mean and var: of the plain sum) of the same round over the case's. Results are compared with numpy
first; the program ends with 4 if one differs.

With --sweep, other shapes of argmax and var take turns, too.

Instructions for each item, which is what may slow these down: an H200 has time for 14 integer and 28 float instructions
for each 4 bytes that it reads. argmax of u32: 1 and some 3 where the best item of an invocation changes; of f32: 5 and
3. "ascending" is the worst case: every tile of every invocation has a new maximum. minmax of f32: some 12, without a
shortcut. mean: a compensated sum of 14. var: some 8, and a step of 30 for each invocation and tile.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json

CALLS = 10  # in a pass, or between two events
SHAPES: list[dict[str, int]] = [
    {"vecs": 2}, {"vecs": 8}, {"vecs": 8, "max_blocks": 264}, {"workgroup_size": 512, "max_blocks": 264},
    {"workgroup_size": 128, "max_blocks": 1056}, {"max_blocks": 1056}, {"workgroup_size": 128, "vecs": 8},
]  # fmt: skip


def primitives(device: Any, sweep: bool) -> dict[str, tuple[str, gw.Primitive]]:
    """Return what is measured: by name, the array and the primitive."""
    made: dict[str, tuple[str, gw.Primitive]] = {}
    for kind in ("u32", "f32"):
        x = getattr(gw, kind)("input")
        item = gw.struct(value=x, index=gw.index)
        made[f"max {kind}"] = kind, gw.Reduce(device, kind, gw.Max)
        made[f"argmax {kind}"] = kind, gw.Reduce(device, item, gw.ArgMax)
        made[f"minmax {kind}"] = kind, gw.Reduce(device, gw.struct(min=x, max=x), gw.MinMax)
        for shape in SHAPES if sweep else []:
            name = " ".join(f"{field}={value}" for field, value in shape.items())
            tuning = gw.ReduceTuning(**shape)
            made[f"argmax {kind} {name}"] = kind, gw.Reduce(device, item, gw.ArgMax, tuning=tuning)
    x = gw.f32("input")
    made["argmax ascending"] = "ascending", gw.Reduce(device, gw.struct(value=x, index=gw.index), gw.ArgMax)
    made["argmin f32"] = "f32", gw.Reduce(device, gw.struct(value=x, index=gw.index), gw.ArgMin)
    made["any f32"] = "zeros", gw.Reduce(device, x != 0.0, gw.Or)
    made["sum f32"] = "f32", gw.Reduce(device, "f32", gw.Add)
    made["mean f32"] = "f32", gw.Reduce(device, x, gw.Add, compensated=True, output=gw.result / 4.0)
    item = gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0))
    made["var f32"] = "f32", gw.Reduce(device, item, gw.Moments, output=gw.result.m2 / gw.f32(gw.result.count))
    for shape in SHAPES if sweep else []:
        name = " ".join(f"{field}={value}" for field, value in shape.items())
        made[f"var f32 {name}"] = "f32", gw.Reduce(device, item, gw.Moments, tuning=gw.ReduceTuning(**shape))
    return made


def check(name: str, primitive: gw.Primitive, items: gw.Array, data: np.ndarray) -> None:
    """Compare argmax, argmin and var with numpy; end the program where one is wrong."""
    got = primitive.execute(input=items).output.to_numpy()[0]
    kind = name.split()[0]
    if kind in ("argmax", "argmin"):
        right = got["index"] == getattr(np, kind)(data)
    elif kind == "var":
        wanted = data.astype(np.float64).var()
        right = np.isclose(got if got.dtype.names is None else got["m2"] / got["count"], wanted, rtol=1e-5)
    else:
        return
    if not right:
        click.echo(f"{name}: WRONG: {got}")
        raise SystemExit(4)


def timed_ns(primitive: gw.Primitive, items: gw.Array) -> float:
    """Return the median time of a call in a pass of several."""
    protocol = replace(
        gw.SamplingProtocol(), samples=5, warmup_s=0.02, max_warmup_s=0.04, canary_passes=1, batch_trials=CALLS,
        check_unit=False,
    )  # fmt: skip
    measured = gw.measure(primitive, mode="batch", protocol=protocol, check=False, input=items)
    span = measured.whole.get("gpu_span")
    if span is None:
        raise SystemExit(f"{primitive}: no valid timestamps ({'; '.join(measured.warnings)}); take more items")
    return statistics.median(span.samples_ns)


def torch_calls(data: dict[str, np.ndarray]) -> tuple[Any, dict[str, Callable[[], Any]]]:
    """Return PyTorch and its functions on the same items; nothing where it is missing or sees no GPU."""
    try:
        torch = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise ImportError("it sees no GPU")
    except ImportError as error:
        click.echo(f"torch: not here: {error}")
        return None, {}
    signed = {"u32": data["u32"].view(np.int32), "f32": data["f32"]}  # few of its kernels take u32
    x = {kind: torch.from_numpy(items).cuda() for kind, items in signed.items()}
    return torch, {
        "torch max i32": x["u32"].max,
        "torch argmax i32": x["u32"].argmax,
        "torch max f32": x["f32"].max,
        "torch argmax f32": x["f32"].argmax,
        "torch aminmax f32": x["f32"].aminmax,
        "torch sum f32": x["f32"].sum,
        "torch mean f32": x["f32"].mean,
        "torch var f32": x["f32"].var,
    }


def torch_ns(torch: Any, call: Callable[[], Any]) -> float:
    """Return the median time of a call of several between two events."""
    call()
    pairs = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1e6 / CALLS for begin, end in pairs)


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", "sizes", type=AxisList("n"), default="2^28", show_default=True, help="Items.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--sweep", is_flag=True, help="Other shapes, too.")
@click.option("--torch/--no-torch", "with_torch", default=True, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter, sizes, rounds, sweep, with_torch, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    click.echo(f"{gw.capabilities(device).adapter}; medians of {rounds} rounds")
    rows: list[dict[str, Any]] = []
    for n in sizes:
        rng = np.random.default_rng(n)
        data = {
            "u32": rng.integers(0, 2**32, n, dtype=np.uint32),
            "f32": rng.random(n, dtype=np.float32),
            "ascending": np.arange(n, dtype=np.uint32).view(np.float32),  # in the order of their bits
            "zeros": np.zeros(n, np.float32),
        }
        arrays = {kind: gw.asarray(items, device) for kind, items in data.items()}
        made = primitives(device, sweep)
        for name, (kind, primitive) in made.items():
            check(name, primitive, arrays[kind], data[kind])
        torch, calls = torch_calls(data) if with_torch else (None, {})
        times: dict[str, list[float]] = {name: [] for name in (*made, *calls)}
        for _ in range(rounds):
            for name in rng.permutation(list(times)).tolist():
                if name in calls:
                    times[name].append(torch_ns(torch, calls[name]))
                else:
                    kind, primitive = made[name]
                    times[name].append(timed_ns(primitive, arrays[kind]))
        for name, taken in times.items():
            words = set(name.split())
            plain = "sum f32" if words & {"mean", "var", "sum"} else "max u32" if words & {"u32", "i32"} else "max f32"
            relative = statistics.median(a / b for a, b in zip(times[plain], taken, strict=True))
            median_ns = statistics.median(taken)
            rows.append({"case": name, "n": n, "rounds_ns": taken, "median_ns": median_ns, "of_plain": relative})
            gbytes_per_s = 4 * n / median_ns
            click.echo(f"{n:>10} {name:34} {median_ns / 1e3:9.1f} µs {gbytes_per_s:7.0f} GB/s {relative:7.3f} of plain")
        if json_path is not None:
            write_json(json_path, {**run_context(device), "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
