"""Reductions and scans of items of one to four words, beside the copy kernel on the same bytes.

    gridwise bench benchmarks/variants/structs.py --json structs.json

"sum" adds field by field and commutes; "product" does not, and keeps the order (a shear, the composition of affine
maps, triangular and 2×2 matrices). Results are compared with numpy's; of long scans of products, which numpy takes
minutes for, the first 65,537 items, and all of them with the results of the other strategy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from data import on_gpu

import gridwise_py as gw

FIELDS = "abcd"
_CHECKED_ITEMS = 65_537
STRUCTS = {words: gw.Struct(f"words{words}", **dict.fromkeys(FIELDS[:words], "u32")) for words in (1, 2, 3, 4)}
#: Products by the number of words: each field of the result in terms of the fields of x and y, in WGSL and in numpy.
PRODUCTS = {
    1: ((1,), ("x.a * y.a",)),
    2: ((1, 0), ("x.a * y.a", "x.b * y.a + y.b")),
    3: ((0, 0, 0), ("x.a + y.a", "x.b + y.b", "x.c + y.c + x.a * y.b")),
    4: ((1, 0, 0, 1), ("x.a * y.a + x.b * y.c", "x.a * y.b + x.b * y.d",
                       "x.c * y.a + x.d * y.c", "x.c * y.b + x.d * y.d")),
}  # fmt: skip


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


def _views(device: Any, words: int, n: int, datatype: Any) -> dict[str, gw.Array]:
    return {"input": gw.Array(on_gpu(device, "words", n * words).buffer, datatype, n)}


@gw.benchmarked(
    n=[2**26], words=[1, 2, 3, 4], op=["sum", "product"], kernel=["copy", "reduce", "lookback", "reduce_then_scan"],
    baseline="kernel=copy",
)  # fmt: skip
def struct(device, n, words, op, kernel):
    """Structs of u32 fields."""
    if kernel == "copy":
        return gw.Benchmark(gw.Copy(device, "u32"), {"input": on_gpu(device, "words", n * words)})
    inputs = _views(device, words, n, STRUCTS[words])
    if kernel == "reduce":
        return gw.Benchmark(gw.Reduce(device, STRUCTS[words], operator(words, op)), inputs)
    made, other = (
        gw.Scan(device, STRUCTS[words], operator(words, op), strategy=strategy)
        for strategy in (kernel, "lookback" if kernel == "reduce_then_scan" else "reduce_then_scan")
    )

    def right(input: np.ndarray) -> np.ndarray:
        if n <= _CHECKED_ITEMS:
            return made.reference(input)
        found = other.execute(**inputs).output.to_numpy()
        if not np.array_equal(found[:_CHECKED_ITEMS], made.reference(input[:_CHECKED_ITEMS])):
            raise ValueError("the other strategy's results are not numpy's")
        return found

    return gw.Benchmark(made, inputs, right)
