"""Functions of items, operators, and methods of Arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calls import OPERATORS, Call, Given
from ..draws import ALL, Draw
from .table import DTYPES, add, drawn_array, eps_of, in_float32, rounded

# ---- arithmetic of items


def _broadcast(d: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    kind = d.rng.random()
    if kind < 0.6:
        return shape
    if kind < 0.9:
        return tuple(1 if d.chance(0.4) else n for n in shape[d.whole(0, len(shape)) :]) if shape else ()
    return d.shape(2)


def _second(d: Draw, x: Given, same: float = 0.75) -> Any:
    """Return an operand beside `x`: a number, or an array of a shape that goes with it."""
    if same > 0.9 and d.chance(0.5):  # for operators, which convert nothing
        if d.chance(0.5):
            return d.pick(
                (0, 1, 2, 3, 100)
                if x.items.dtype.kind == "u"
                else (0, 1, 2, 3, -1, 100, True)
                if x.items.dtype.kind in "ib"
                else (0, 1, 2, -1, 0.5, 2.0, 0.1, -2, float("nan"), float("inf"))
            )
        return Given(d.items(x.items.dtype, x.items.shape), "gpu")
    if d.chance(0.35):
        return d.pick(
            (
                0,
                1,
                2,
                3,
                -1,
                0.5,
                0.1,
                2.0,
                100,
                2**31,
                2**40,
                True,
                float("nan"),
                float("inf"),
                np.float32(0.1),
                np.float64(0.1),
                np.int64(3),
                np.uint8(200),
            )
        )
    dtype = x.items.dtype if d.chance(same) else d.dtype()
    shape = x.items.shape if d.chance(0.7) else _broadcast(d, x.items.shape)
    return d.alike(d.items(dtype, shape), x)


def _binary(name: str, pool: Sequence[str] = ALL, gpu: bool = False, same: float = 0.75) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, pool if d.chance(0.9) else ALL, dims=2 if d.chance(0.3) else 1)
        if gpu and x.how in ("gpu", "view", "expr") and d.chance(0.15):
            return Call(name, (x, x))
        if gpu and x.how not in ("gpu", "view", "expr"):
            x = Given(x.items, "gpu")
        y = _second(d, x, same)
        # Python turns comparisons round itself.
        pair = (y, x) if d.chance(0.2) and name not in ("<", "<=", ">", ">=", "==", "!=") else (x, y)
        if gpu and isinstance(pair[0], Given) and pair[0].how not in ("gpu", "view", "expr"):
            pair = (x, y)  # numpy's own operator would be asked first
        return Call(name, pair)

    return draw


add("add", np.add, _binary("add"), exact=rounded(1), weight=1.5)
for _name in ("maximum", "minimum"):
    add(_name, getattr(np, _name), _binary(_name))


def _draw_matmul(d: Draw) -> Call:
    m, n, k = (d.pick((1, 2, 3, 5, 16, 17, 33, 0) if d.chance(0.4) else (1, 2, 3, 4)) for _ in "mnk")
    dtype = d.pick(("float32", "float32", "float16", "int32", "float64"))
    kind = d.rng.random()
    shapes: Any = (
        ((m, k), (k, n))
        if kind < 0.8
        else d.pick(
            (((k,), (k, n)), ((m, k), (k,)), ((k,), (k,)), ((2, m, k), (2, k, n)), ((m, k), (k + 1, n)), ((), (k,)))
        )
    )
    a, b = (d.items(dtype, shape, "few") for shape in shapes)
    first = Given(a, d.how(a, expression=False))
    return Call("matmul", (first, d.alike(b, first)))


add("matmul", np.matmul, _draw_matmul, exact=rounded(4))


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    return np.clip(x, low, high)


def _draw_clip(d: Draw) -> Call:
    x = drawn_array(d, dims=2 if d.chance(0.2) else 1)
    ends = [
        d.pick((None, 0, 1, -1, 5, 0.5, 2**40)) if d.chance(0.6) else d.alike(d.items(x.items.dtype, x.items.shape), x)
        for _ in range(2)
    ]
    return (
        d.call("clip", [x], [("low", ends[0]), ("high", d.maybe(0.85, ends[1]))])
        if d.chance(0.5)
        else Call("clip", (x, *ends))
    )


add("clip", _clip, _draw_clip)


def _draw_where(d: Draw) -> Call:
    x = drawn_array(d, dims=2 if d.chance(0.2) else 1)
    y = _second(d, x)
    condition = d.items("bool", x.items.shape)
    first = Given(condition, x.how if x.how == "gpu" else d.pick(("numpy", "numpy", "list")))
    return Call("where", (first, *((x, y) if d.chance(0.8) else (y, x))))


add("where", np.where, _draw_where)


def _unary_draw(name: str, pool: Sequence[str]) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(
            d, pool if d.chance(0.93) else ALL, dims=2 if d.chance(0.25) else 1, least=0 if d.chance(0.2) else 1
        )
        return Call(name, (x,))

    return draw


def _scaled(of: Callable[[Any], Any], absolute: float = 0.0) -> Callable[..., Any]:
    """Return bounds that grow with the argument: of functions of f32 by WGSL's table of accuracies."""

    def find(want: Any, got: Any, x: Any) -> Any:
        wide = np.abs(np.asarray(x).astype(np.float64))
        with np.errstate(all="ignore"):
            magnitude = np.abs(np.nan_to_num(want.astype(np.float64), posinf=0, neginf=0))
            scale = of(np.where(np.isfinite(wide), wide, 0)) * magnitude + absolute / max(eps_of(got), 2.0**-23)
        return want, scale

    return find


def _trigonometric(want: Any, got: Any, x: Any) -> Any:
    """WGSL: an absolute error of 2^-11 in [−π, π], and none is promised beyond."""
    wide = np.abs(np.asarray(x).astype(np.float64))
    with np.errstate(all="ignore"):
        unbounded = np.isfinite(wide) & (wide > np.pi)
        return want, np.where(unbounded, np.inf, 2.0**-11 / max(eps_of(got), 2.0**-23))


def _of_whole(want: Any, got: Any, x: Any) -> Any:
    """Integers are rounded to float32; floats are not rounded but to whole numbers."""
    return rounded(1 if np.asarray(x).dtype.kind in "iu" else 0)(want, got)


_F = ("float32",)
add("sqrt", np.sqrt, _unary_draw("sqrt", (*_F, *_F, "float16")), exact=_scaled(lambda x: 4 + 0 * x), dtypes=in_float32)
add("exp", np.exp, _unary_draw("exp", (*_F, *_F, "float16")), exact=_scaled(lambda x: 6 + 4 * x), dtypes=in_float32)
add(
    "log",
    np.log,
    _unary_draw("log", (*_F, *_F, "float16")),
    exact=_scaled(lambda x: 6 + 0 * x, 2.0**-20),
    dtypes=in_float32,
)
add("sin", np.sin, _unary_draw("sin", _F), exact=_trigonometric, dtypes=in_float32)
add("cos", np.cos, _unary_draw("cos", _F), exact=_trigonometric, dtypes=in_float32)
add("tanh", np.tanh, _unary_draw("tanh", _F), exact=_scaled(lambda x: 8 + 0 * x, 2.0**-9), dtypes=in_float32)
for _name in ("floor", "ceil", "rint"):
    add(_name, getattr(np, _name), _unary_draw(_name, (*_F, *_F, "float16")), exact=_of_whole, dtypes=in_float32)
add("sign", np.sign, _unary_draw("sign", (*_F, "int32", "uint32", "float16")), dtypes=in_float32)
add("trunc", np.trunc, _unary_draw("trunc", (*_F, "float16", "float64")), exact=_of_whole, dtypes=in_float32)
for _name in ("isnan", "isfinite", "isinf"):
    add(_name, getattr(np, _name), _unary_draw(_name, (*_F, *_F, "float16", "float64")))
add(
    "nan_to_num", np.nan_to_num, _unary_draw("nan_to_num", (*_F, "int32", "float64")), exact=rounded(1),
    dtypes=in_float32,
)  # fmt: skip
add(
    "popcount",
    np.bitwise_count,
    _unary_draw("popcount", ("uint32", "int32")),
    dtypes=lambda c, w, g, a: {w, *map(np.dtype, ("uint32", "int32", "uint8"))},
)
for _name in ("abs", "absolute"):
    add(
        _name,
        getattr(np, _name),
        _unary_draw(_name, ("int32", "uint32", "float32", "int8", "float16")),
        dtypes=in_float32,
    )
add(
    "round",
    np.round,
    lambda d: d.call("round", [drawn_array(d, dims=2)], [("decimals", d.maybe(0.3, d.whole(-2, 3)))]),
    exact=rounded(4),
    dtypes=in_float32,
)


def _cast(dtype: Any) -> Callable[..., Any]:
    return lambda x: np.asarray(x).astype(dtype)


def _draw_cast(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = d.array(("int32", "uint32", "float32", "bool", "uint8", "int16"), 1, 1, d.pick(("few", "small")))
        if name[0] == "u" and x.dtype.kind == "f":
            x = np.abs(np.nan_to_num(x, posinf=1, neginf=1)).astype(x.dtype)
        return Call(name, (Given(x, d.pick(("gpu", "view", "expr") if x.dtype.itemsize == 4 else ("gpu",))),))

    return draw


for _name, _dtype in (
    ("f32", np.float32), ("i32", np.int32), ("u32", np.uint32), ("f64", np.float64), ("i64", np.int64),
    ("u64", np.uint64),
):  # fmt: skip
    add(_name, _cast(_dtype), _draw_cast(_name))


def _draw_bitcast(d: Draw) -> Call:
    x = d.array(("int32", "uint32", "float32"), 1, 1)
    if x.dtype.kind == "f":
        x = np.nan_to_num(x)
    return Call("bitcast", (d.pick(("u32", "i32")), Given(x, "gpu")))


def _bitcast(datatype: str, x: Any) -> Any:
    return np.asarray(x).view({"u32": np.uint32, "i32": np.int32, "f32": np.float32}[datatype])


add("bitcast", _bitcast, _draw_bitcast)


def _draw_gather(d: Draw) -> Call:
    x = d.array(("int32", "uint32", "float32"), 1, 1)
    x = x if x.size else x.dtype.type([1, 2])
    indices = d.items(d.pick(("uint32", "int32")), d.length(2), "small")
    return Call("gather", (Given(np.asarray(x), "gpu"), Given(indices, "gpu")))


def _gather(x: Any, indices: Any) -> Any:
    return x[np.clip(np.asarray(indices, np.int64), 0, x.size - 1)]


add("gather", _gather, _draw_gather)


def _shifted(by: int) -> Callable[..., Any]:
    return lambda x: np.asarray(x)[np.clip(np.arange(np.asarray(x).size) + by, 0, max(np.asarray(x).size - 1, 0))]


for _name, _by in (("previous", -1), ("next", 1)):
    add(
        _name,
        _shifted(_by),
        (
            lambda name: (
                lambda d: Call(name, (Given(d.array(("int32", "uint32", "float32", "uint8", "int16"), 1, 1), "gpu"),))
            )
        )(_name),
    )

# ---- operators and methods of Arrays


def _power_exact(want: Any, got: Any, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        b_ = np.abs(np.asarray(b, np.float64))
        a_ = np.abs(np.asarray(a, np.float64))
        logs = np.abs(np.log2(np.where((a_ > 0) & np.isfinite(a_), a_, 1)))
        magnitude = np.abs(np.nan_to_num(want.astype(np.float64), posinf=0, neginf=0))
        scale = (16 + 16 * np.where(np.isfinite(b_), b_, 0) * (1 + logs)) * magnitude
        # Where the exact power is near the ends of f32, either side is right.
        return want, np.broadcast_to(scale, want.shape)


for _symbol in OPERATORS:
    _pool: Sequence[str] = ("int32", "uint32", "float32")
    if _symbol in ("&", "|", "^"):
        _pool = ("int32", "uint32", "bool")
    elif _symbol in ("<<", ">>"):
        _pool = ("uint32", "int32")
    add(
        _symbol,
        OPERATORS[_symbol],
        _binary(_symbol, _pool, True, 0.97),
        exact={"/": rounded(4), "**": _power_exact}.get(_symbol, rounded(1)),
        weight=1.5 if _symbol in ("**", "%", "//", "-") else 0.6,
    )


def _draw_unary_operator(name: str, pool: Sequence[str]) -> Callable[[Draw], Call]:
    return lambda d: Call(name, (Given(d.array(pool, 2 if d.chance(0.2) else 1, 1), d.pick(("gpu", "gpu", "view"))),))


add("neg", operator.neg, _draw_unary_operator("neg", ("int32", "float32", "uint32", "float64")), weight=0.5)
add(
    "abs_",
    operator.abs,
    _draw_unary_operator("abs_", ("int32", "float32", "uint32", "float64")),
    gridwise=operator.abs,
    weight=0.5,
)
add("invert", operator.invert, _draw_unary_operator("invert", ("int32", "uint32", "bool")), weight=0.5)


def _draw_item(d: Draw) -> Call:
    x = Given(d.array((*ALL, "complex64"), 3), d.pick(("gpu", "view")))
    n = x.items.shape[0] if x.items.ndim else 0
    key = d.pick(
        (
            slice(d.whole(-n - 2, n + 2), d.whole(-n - 2, n + 2)),
            slice(None, d.whole(0, n + 1)),
            slice(d.whole(0, n + 1), None),
            d.whole(0, max(n - 1, 0)),
            n,
            -1,
            slice(None),
            slice(1, None, 1),
        )
    )
    return Call("[]", (x, key))


add("[]", lambda x, key: x[key], _draw_item, compare="bits", resides="gpu")


def _draw_len(d: Draw) -> Call:
    x = Given(d.array(("int32", "float32"), 1, 1, "few"), "gpu")
    y: Any = x if d.chance(0.3) else Call("compress", (Call(">", (x, 1)), x)) if d.chance(0.6) else Call("unique", (x,))
    return Call("len", (y,))


add("len", len, _draw_len, gridwise=len, resides="", python_results=True, weight=0.3)


def _draw_astype(d: Draw) -> Call:
    x = d.array(ALL, 2)
    dtype = d.pick([t for t in DTYPES if t not in ("S3", "complex64")])
    if np.dtype(dtype).kind in "iu" and x.dtype.kind == "f":  # what no integer holds is the machine's in numpy
        limits = np.iinfo(dtype)
        with np.errstate(all="ignore"):
            x = np.clip(np.nan_to_num(x.astype(np.float64)), max(limits.min, -(2.0**31)), min(limits.max, 2.0**31 - 1))
        x = np.where(np.isfinite(x), x, 0).astype(np.float64)
    return Call(".astype", (Given(x, "gpu"), dtype))


add(".astype", lambda x, dtype: x.astype(dtype), _draw_astype, compare="bits", weight=1.5)


def _draw_reshape(d: Draw) -> Call:
    x = Given(d.array(ALL, 3), "gpu")
    n = x.items.size
    shape = d.pick(
        ((n,), (-1,), -1, n, (n, 1), (1, -1), (2, -1), (-1, -1), (n + 1,), (1, n, 1), x.items.shape[::-1], 1.5)
    )
    return Call(".reshape", (x, shape))


add(".reshape", lambda x, shape: x.reshape(shape), _draw_reshape, compare="bits", weight=0.5)
add(
    ".ravel",
    lambda x: x.ravel(),
    lambda d: Call(".ravel", (Given(d.array(ALL, 3), "gpu"),)),
    compare="bits",
    weight=0.3,
)
add(".copy", lambda x: x.copy(), lambda d: Call(".copy", (Given(d.array(ALL, 3), "gpu"),)), compare="bits", weight=0.3)
add(
    ".tolist",
    lambda x: x.tolist(),
    lambda d: Call(".tolist", (Given(d.array((*ALL, "complex64"), 2), "gpu"),)),
    resides="",
    python_results=True,
    weight=0.3,
)
add(
    ".item",
    lambda x, *at: x.item(*at),
    lambda d: (
        lambda x: Call(
            ".item", (x, *(() if d.chance(0.3) else (d.pick((0, -1, x.items.size - 1, x.items.size, 2**32)),)))
        )
    )(Given(d.array(ALL, 1, 1), "gpu")),
    resides="",
    python_results=True,
    weight=0.5,
)
