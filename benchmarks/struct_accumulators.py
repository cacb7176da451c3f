"""Reductions and scans of items of one to four words, beside the copy kernel on the same bytes.

Usage: python benchmarks/struct_accumulators.py [--n 2^26] [--words 1,2,3,4] [--shapes "128x8 256x4"] [--json FILE]

For each number of words two operators on a struct of u32 fields: "sum" adds field by field and commutes; "product" does
not, and keeps the order (a shear, the composition of affine maps, triangular and 2×2 matrices). Beside them u32, i64
and complex64 with the library's own sum. All kernels of one size take turns, in an order that is drawn anew each round.
A rate is the bytes that must move (a reduction reads each item once, a scan and a copy also write it) over the median
time; the last column is the median over the rounds of a round's rate relative to the copy's. Sums are compared with
numpy at full size, products with the operator's numpy twin at 65,537 items, before anything is measured.

`--shapes` lists workgroup sizes and vec4 loads per invocation to try for structs instead of the library's own.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import samples_ns
from gridwise_py.storage.json_files import write_json

FIELDS = "abcd"
STRUCTS = {words: gw.Struct(f"words{words}", **dict.fromkeys(FIELDS[:words], "u32")) for words in (1, 2, 3, 4)}
#: Products by the number of words: each field of the result in terms of the fields of x and y, in WGSL and in numpy.
PRODUCTS = {
    1: ((1,), ("x.a * y.a",)),
    2: ((1, 0), ("x.a * y.a", "x.b * y.a + y.b")),
    3: ((0, 0, 0), ("x.a + y.a", "x.b + y.b", "x.c + y.c + x.a * y.b")),
    4: ((1, 0, 0, 1), ("x.a * y.a + x.b * y.c", "x.a * y.b + x.b * y.d",
                       "x.c * y.a + x.d * y.c", "x.c * y.b + x.d * y.d")),
}  # fmt: skip
_CHECKED_ITEMS = 65_537
COPY = "copy"


class _Fields:
    """The fields of a structured array as attributes, so that an expression of WGSL is one of Python."""

    def __init__(self, items: np.ndarray):
        for name in items.dtype.names or ():
            setattr(self, name, items[name])


def operator(words: int, kind: str) -> gw.BinOp:
    """Return the operator "sum" or "product" on the struct of so many words."""
    struct, names = STRUCTS[words], FIELDS[:words]
    if kind == "sum":
        identity, parts = (0,) * words, tuple(f"x.{name} + y.{name}" for name in names)
    else:
        identity, parts = PRODUCTS[words]
    code = compile(f"struct.array({', '.join(map('='.join, zip(names, parts, strict=True)))})", kind, "eval")

    def twin(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return eval(code, {"struct": struct, "x": _Fields(x), "y": _Fields(y)})  # text of this file

    text = f"fn combine(x: T, y: T) -> T {{ return T({', '.join(parts)}); }}"
    return gw.BinOp(f"{kind} of {words}", identity, twin, wgsl=text, commutative=kind == "sum")


def parse_count(text: str) -> int:
    """Read 2^22 or a number."""
    base, _, power = text.partition("^")
    return int(base) ** int(power) if power else int(base)


def parse_shapes(text: str) -> list[dict[str, int]]:
    """Read "128x8 256x4": workgroup sizes and vec4 loads per invocation."""
    pairs = (part.split("x") for part in text.split())
    return [{"workgroup_size": int(size), "vecs": int(vecs)} for size, vecs in pairs]


def primitives(device: Any, words: int, shapes: list[dict[str, int]]) -> dict[str, gw.Primitive]:
    """Return all that takes items of so many words, by name."""
    made: dict[str, gw.Primitive] = {}
    for kind in ("sum", "product"):
        op = operator(words, kind)
        for shape in shapes or [{}]:
            shown = f", {shape['workgroup_size']}x{shape['vecs']}" if shape else ""
            made[f"reduce {kind}{shown}"] = gw.Reduce(device, STRUCTS[words], op, tuning=gw.ReduceTuning(**shape))
            for strategy in ("lookback", "reduce_then_scan"):
                made[f"scan {kind}, {strategy}{shown}"] = gw.Scan(
                    device, STRUCTS[words], op, strategy=strategy, tuning=gw.ScanTuning(**shape)
                )
    for name in {1: ("u32",), 2: ("i64", "c64")}.get(words, ()):
        made[f"reduce {name}"] = gw.Reduce(device, name)
        made[f"scan {name}"] = gw.Scan(device, name, strategy="lookback")
    return made


def check(name: str, primitive: Any, items: gw.Array, data: np.ndarray) -> None:
    """Compare a primitive with numpy; end the program where it is wrong."""
    if isinstance(primitive.op.numpy, np.ufunc):
        return  # u32, i64 and c64: what the test suite compares at every size
    whole = "sum" in name
    got = primitive.execute(input=items if whole else items[:_CHECKED_ITEMS]).output.to_numpy()
    if whole:
        want = np.empty_like(data)
        for field in data.dtype.names or ():
            np.cumsum(data[field], dtype=np.uint32, out=want[field])
        want = want[-1:] if isinstance(primitive, gw.Reduce) else want
    else:
        want = primitive.reference(data[:_CHECKED_ITEMS])
    if got.tobytes() != want.tobytes():
        raise SystemExit(f"{name}: the result is wrong")


def rows_of(
    device: Any, words: int, n: int, shapes: list[dict[str, int]], rounds: int, protocol: gw.SamplingProtocol
) -> list[dict[str, Any]]:
    """Measure everything on items of so many words, in turns."""
    numbers = np.random.default_rng(words).integers(0, 2**32, n * words, dtype=np.uint32)
    buffer = gw.asarray(numbers, device)
    results = gw.empty(n * words, "u32", device)
    data = numbers.view(STRUCTS[words].dtype)
    made = primitives(device, words, shapes)
    calls: dict[str, tuple[gw.Primitive, dict[str, gw.Array]]] = {
        COPY: (gw.Copy(device, "u32"), {"input": buffer, "output": results})
    }
    for name, primitive in made.items():
        items, output = (gw.Array(array.buffer, primitive.datatype, n) for array in (buffer, results))
        check(name, primitive, items, data)
        short = isinstance(primitive, gw.Reduce)
        calls[name] = primitive, {"input": items, "output": output[:1] if short else output}
    times: dict[str, list[float]] = {name: [] for name in calls}
    rng = np.random.default_rng(n)
    for _ in range(rounds):
        for name in rng.permutation(list(calls)):
            primitive, arrays = calls[str(name)]
            (samples,) = samples_ns([gw.measure(primitive, protocol=protocol, check=False, **arrays)])
            times[str(name)].append(statistics.median(samples))
    found: list[dict[str, Any]] = []
    for name, taken in times.items():
        moved = 4 * words * n * (1 if name.startswith("reduce") else 2)
        primitive, arrays = calls[name]
        plan = primitive.bind(**arrays).plan
        copied = 8 * words * n
        relative = [(moved / ns) / (copied / ns_copy) for ns, ns_copy in zip(taken, times[COPY], strict=True)]
        found.append(
            {
                "kernel": name, "words": words, "n": n, "moved_bytes": moved, "rounds_ns": taken,
                "median_ns": statistics.median(taken), "gbytes_per_s": moved / statistics.median(taken),
                "of_copy": statistics.median(relative), "parameters": dict(plan.parameters),
            }
        )  # fmt: skip
        primitive.release()
    buffer.destroy()
    results.destroy()
    return found


@click.command()
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--n", "n_text", default="2^26", show_default=True, help="Items.")
@click.option("--words", "words_text", default="1,2,3,4", show_default=True, help="By commas.")
@click.option(
    "--shapes", "shapes_text", default="", help='For structs, such as "128x8 256x4"; by default the library\'s.'
)
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.05, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(adapter, n_text, words_text, shapes_text, rounds, seconds, json_path) -> None:
    """Measure and print."""
    device = gw.request_device(adapter)
    n, context, shapes = parse_count(n_text), run_context(device), parse_shapes(shapes_text)
    protocol = gw.SamplingProtocol(timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds)
    print(f"{gw.capabilities(device).adapter}; {n} items, medians of {rounds} rounds")
    print(f"{'words':>5} {'kernel':42} {'µs':>10} {'GB/s':>8} {'of copy':>8}")
    rows: list[dict[str, Any]] = []
    for words in map(int, words_text.split(",")):
        for row in rows_of(device, words, n, shapes, rounds, protocol):
            rows.append(row)
            print(
                f"{words:5} {row['kernel']:42} {row['median_ns'] / 1e3:10.1f} {row['gbytes_per_s']:8.0f} "
                f"{row['of_copy']:8.3f}",
                flush=True,
            )
        # As soon as there is something, so that a run that is cut off leaves what it has.
        if json_path is not None:
            write_json(json_path, {**context, "rounds": rounds, "results": rows})


if __name__ == "__main__":
    main()
