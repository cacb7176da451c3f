"""Variants of the stream kernels: how items get from a tile to the outputs, and shapes.

Usage: python benchmarks/stream_variants.py [--n 2^28] [--cases select,flagged] [--variants "held 2048,held 0"]
       [--shapes "128x16 256x8"] [--shares 0,1/100,1/2,1] [--json FILE]

A variant is where items wait ("held" in registers, or "late": read again when they are written), the words of workgroup
memory through which they go in order (0: each is stored to its place directly), and who orders them: "tile" or
"subgroup". All variants of a case take
turns. Times are medians of GPU spans of single calls; a rate counts the bytes that must move: inputs once, and what was
selected. The last column is the time relative to the first variant. Results at 2^20 items are compared with numpy's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.primitives.partition import Partition
from gridwise_py.primitives.run_length import RunLength
from gridwise_py.primitives.select import FlatNonzero, Select
from gridwise_py.primitives.unique import Unique
from gridwise_py.storage.json_files import write_json
from gridwise_py.tuning.options import StreamTuning

_CHECKED_ITEMS = 1 << 20
VARIANTS = "held 2048 tile,late 2048 tile,held 2048 subgroup,late 2048 subgroup"
x = gw.u32("x")


def random_words(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    """Return numbers; those below `bound_of` the share are selected."""
    return {"x": rng.integers(0, 2**32, n, dtype=np.uint32)}


def flagged(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    """Return numbers, and flags of one byte."""
    items = rng.integers(0, 2**32, n, dtype=np.uint32)
    return {"input": items, "flags": (items >> 8).astype(np.float32) < float(share) * 2**24}


def runs(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    """Return keys in runs, of which `share` are the first of theirs."""
    heads = rng.integers(0, 2**24, n, dtype=np.uint32) < np.uint32(float(share) * 2**24)
    return {"keys": np.cumsum(heads, dtype=np.uint32)}


def with_values(rng: np.random.Generator, n: int, share: Fraction) -> dict[str, np.ndarray]:
    """Return keys in runs, and values."""
    return runs(rng, n, share) | {"values": rng.integers(0, 2**32, n, dtype=np.uint32)}


def bound_of(share: Fraction) -> int:
    """Return the number that `share` of all words are below; all but one in 2^32 for 1."""
    return min(2**32 - 1, int(share * 2**32))


#: By name: the primitive for a share and a tuning, and its data.
CASES: dict[str, tuple[Callable[[Any, Fraction, StreamTuning], gw.Primitive], Callable[..., dict[str, np.ndarray]]]] = {
    "select": (lambda d, s, t: Select(d, x, where=x < bound_of(s), tuning=t), random_words),
    "flagged": (lambda d, s, t: Select(d, "u32", tuning=t), flagged),
    "flatnonzero": (lambda d, s, t: FlatNonzero(d, x < bound_of(s), tuning=t), random_words),
    "partition2": (lambda d, s, t: Partition(d, x, where=x < bound_of(s), tuning=t), random_words),
    "partition3": (
        lambda d, s, t: Partition(d, x, where=[x < bound_of(s * 2 / 3), x > 2**32 - 1 - bound_of(s * 2 / 3)],
                                  tuning=t),
        random_words,
    ),
    "unique": (lambda d, s, t: Unique(d, "u32", tuning=t), runs),
    "unique_by_key": (lambda d, s, t: Unique(d, "u32", "u32", tuning=t), with_values),
    "run_length": (lambda d, s, t: RunLength(d, "u32", tuning=t), runs),
}  # fmt: skip
#: Shares of cases with runs; the mean length is its reciprocal.
RUNS = ("unique", "unique_by_key", "run_length")


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def tunings(variants: str, shapes: str) -> dict[str, StreamTuning]:
    """Return the tunings to try, by name."""
    found: dict[str, StreamTuning] = {}
    for shape in shapes.split() or [""]:
        size, _, vecs = shape.partition("x")
        numbers: dict[str, Any] = {"workgroup_size": int(size), "vecs": int(vecs)} if shape else {}
        for variant in variants.split(","):
            items, stage, *order = variant.split()
            more = {**numbers, **({"order": order[0]} if order else {})}
            found[f"{variant} {shape}".strip()] = StreamTuning(items=items, stage=int(stage), **more)  # pyright: ignore
    return found


def check(primitive: gw.Primitive, data: dict[str, np.ndarray], name: str) -> None:
    """Compare with numpy; end the program where it is wrong."""
    part = {key: array[:_CHECKED_ITEMS] for key, array in data.items()}
    run = primitive.execute(**{key: gw.asarray(array, primitive.device) for key, array in part.items()})
    found = mismatch(primitive, part, {key: array.to_numpy() for key, array in run.outputs.items()})
    if found is not None:
        raise SystemExit(f"{name}: {found}")


def moved_bytes(primitive: gw.Primitive, arrays: dict[str, gw.Array]) -> int:
    """Return the bytes that must move; values of runs are read where they are kept."""
    outputs = primitive.execute(**arrays).outputs
    kept = {name: array.trim() for name, array in outputs.items()}
    read = sum(kept["output_values"].nbytes if name == "values" else array.nbytes for name, array in arrays.items())
    return read + sum(array.nbytes for array in kept.values())


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", "n_text", default="2^28", show_default=True, help="Items.")
@click.option("--cases", default=",".join(CASES), show_default=True, help="By commas.")
@click.option("--variants", default=VARIANTS, show_default=True, help="By commas.")
@click.option("--shapes", default="", help='Such as "128x16 256x8"; by default the library\'s.')
@click.option("--shares", default="", help="By commas; by default 1/2, and 1/8 for runs.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.05, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter, n_text, cases, variants, shapes, shares, rounds, seconds, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    n, context = parse_count(n_text), run_context(device)
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    print(f"{gw.capabilities(device).adapter}; {n} items, medians of {rounds} rounds")
    print(f"{'case':14} {'share':>7} {'variant':24} {'µs':>10} {'GB/s':>8} {'time':>7}")
    rows: list[dict[str, Any]] = []
    for case in cases.split(","):
        make, data_of = CASES[case]
        for share in shares.split(",") if shares else ["1/8" if case in RUNS else "1/2"]:
            data = data_of(np.random.default_rng(1), n, Fraction(share))
            arrays = {name: gw.asarray(array, device) for name, array in data.items()}
            made = {name: make(device, Fraction(share), tuning) for name, tuning in tunings(variants, shapes).items()}
            for name, primitive in made.items():
                check(primitive, data, f"{case} {share} {name}")
            first = next(iter(made.values()))
            moved = moved_bytes(first, arrays)
            # All variants write to the same memory: so they differ in nothing else.
            outputs = dict(first.execute(**arrays).outputs)
            given = {name: gw.Array(each.buffer, each.datatype, each.size) for name, each in outputs.items()}
            times: dict[str, list[float]] = {name: [] for name in made}
            rng = np.random.default_rng(n)
            for _ in range(rounds):
                for name in map(str, rng.permutation(list(made))):
                    measured = gw.measure(made[name], protocol=protocol, check=False, **arrays, **given)
                    times[name].append(statistics.median(samples_ns([measured])[0]))
            base = statistics.median(next(iter(times.values())))
            for name, taken in times.items():
                ns = statistics.median(taken)
                rows.append({"case": case, "share": share, "variant": name, "n": n, "moved_bytes": moved,
                             "rounds_ns": taken, "median_ns": ns})  # fmt: skip
                print(f"{case:14} {share:>7} {name:24} {ns / 1e3:10.1f} {moved / ns:8.0f} {ns / base:7.3f}", flush=True)
                made[name].release()
            if json_path is not None:
                write_json(json_path, {**context, "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
