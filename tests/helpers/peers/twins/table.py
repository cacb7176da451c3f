"""What a twin is, the table of all, and what several families of functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridwise_py as gw

from ..calls import Call, Given, walk
from ..draws import ALL, LEFT, Draw

WORDS = ("int32", "uint32", "float32", "int64", "float64", "uint64")


def index_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Indices and counts of Arrays are u32, and so are the bools of expressions."""
    if want.kind == "b" and any(given.how == "expr" for given in walk(call)):
        return {want, np.dtype(np.uint32)}
    return {want, *((np.dtype(np.uint32),) if on_gpu and want == np.intp else ())}


def wide_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """On the GPU items of 1 and 2 bytes become words, and indices are u32."""
    words = {"b": "uint32", "u": "uint32", "i": "int32", "f": "float32"}
    more = {np.dtype(words[want.kind])} if on_gpu and want.kind in words and want.itemsize < 4 else set()
    return {want, *more, *index_dtypes(call, want, on_gpu, at)}


def mean_dtypes(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Means of integers are float32, where numpy's are float64."""
    x = call.args[0]
    kind = x.items.dtype.kind if isinstance(x, Given) else "i"
    listed = isinstance(x, Given) and x.how in ("list", "tuple", "scalar")
    return {want, *((np.dtype(np.float32),) if kind in "iub" or on_gpu or listed else ())}


def any_float(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    return {want, *(map(np.dtype, ("float32", "float64")) if on_gpu else ())}


def in_float32(call: Call, want: np.dtype, on_gpu: bool, at: int) -> set[np.dtype]:
    """Functions of items are computed in float32, of float16 in that."""
    return {want, np.dtype(np.float32)} if want.kind == "f" else wide_dtypes(call, want, on_gpu, at)


@dataclass(frozen=True)
class Twin:
    """What a public function is compared with.

    Attributes
    ----------
    numpy : callable
        Takes what the function takes, but Arrays and expressions as numpy arrays.
    draw : callable
        Makes a call.
    compare : {"exact", "bits", "any"}
        Whether −0 equals +0, and how NaN is made does not matter; "any" compares shape and dtype only.
    exact : callable, optional
        Of functions that round: returns exact values, and by how many eps of the dtype results may differ.
    dtypes : callable
        Returns the dtypes that a result may have that is not of numpy's.
    gridwise : callable, optional
        In place of the function of that name.
    """

    numpy: Callable[..., Any]
    draw: Callable[[Draw], Call]
    compare: str = "exact"
    exact: Callable[..., Any] | None = None
    dtypes: Callable[..., Any] = index_dtypes
    gridwise: Callable[..., Any] | None = None
    #: In place of a comparison of items: says what is wrong.
    check: Callable[[Call, np.ndarray, np.ndarray], str | None] | None = None
    in_place: bool = False
    #: Where results are: as the arguments are ("same"), on the GPU whatever these are ("gpu"), or anywhere ("").
    resides: str = "same"
    #: Results, by their number, that are on the host in any case.
    host_results: tuple[int, ...] = ()
    #: Whether results are Python's own numbers or lists.
    python_results: bool = False
    out_at: int | None = None
    zeros_stay: bool = False
    weight: float = 1.0


TWINS: dict[str, Twin] = {}


def add(name: str, numpy: Callable[..., Any], draw: Callable[[Draw], Call], **options: Any) -> None:
    """Enter a twin; one of a function that is not public (yet) is left out."""
    if name.isidentifier() and not hasattr(gw, name) and "gridwise" not in options:
        return
    TWINS[name] = Twin(numpy, draw, **options)


def drawn_array(d: Draw, pool: Sequence[str] = ALL, dims: int = 3, least: int = 0, **options: Any) -> Given:
    return d.any_array(pool, dims, least, **options)


DTYPES = (
    "float32",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float64",
    "int8",
    "uint8",
    "float16",
    "bool",
    np.float32,
    np.int64,
    np.uint32,
    np.dtype("int16"),
    "i4",
    "u4",
    "f4",
    "f8",
    "i8",
    "u8",
    "<i4",
    "?",
    int,
    float,
    bool,
    "S3",
    "complex64",
)


def out_for(d: Draw, x: Given, of: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return an `out` of the right shape, mostly of the right dtype."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(of(*args, **kwargs))
    except Exception:
        return LEFT
    dtype = result.dtype if d.chance(0.6) else d.dtype()
    shape = result.shape if d.chance(0.92) or not result.size else (*result.shape, 2)
    items = np.zeros(shape, dtype)
    if x.how in ("gpu", "view", "expr"):
        return Given(items, "gpu" if d.chance(0.9) else "numpy")
    return Given(items, d.pick(("numpy", "numpy", "strided", "fortran", "reversed", "swapped", "readonly", "gpu")))


#: How often an option is given, and what is drawn for it.
_OPTIONS: dict[str, tuple[float, Callable[[Draw], Any]]] = {
    "dtype": (0.15, lambda d: d.pick(DTYPES)),
    "keepdims": (0.2, lambda d: d.chance(0.7)),
    "initial": (0.03, lambda d: d.whole(-2, 5)),
    "include_initial": (0.3, lambda d: d.chance(0.7)),
    "ddof": (0.15, lambda d: d.pick((0, 1, 2))),
    "correction": (0.15, lambda d: d.pick((0, 1, 0.5, 3))),
    "n": (0.3, lambda d: d.pick((0, 1, 2, 3, -1))),
}


def drawn_along(
    name: str, of: Callable[..., Any], order: tuple[str, ...], named: tuple[str, ...] = (), *, several: bool = True,
    pool: Sequence[str] = ALL, **changes: Any,
) -> Callable[[Draw], Call]:  # fmt: skip
    """Return what draws a call with an array, and options: in numpy's order, or by their names alone."""
    keys, options = (*order, *named), {**_OPTIONS, **changes}
    takes_complex = "dtype" in keys and "dtype" not in changes

    def draw(d: Draw) -> Call:
        x = drawn_array(d, ("complex64",) if takes_complex and d.chance(0.03) else pool)
        if d.chance(0.1):  # few items, among which one that is no number decides
            few = d.items("float32", (d.whole(1, 4), d.whole(1, 3)), "special")
            x = Given(few if d.chance(0.6) else few.ravel(), d.pick(("numpy", "gpu")))
        values = {key: d.maybe(p, make(d)) for key, (p, make) in options.items() if key in keys}
        values["axis"] = d.maybe(0.6, d.axis(x.items.ndim, several))
        if "out" in keys:
            given = {key: value for key, value in values.items() if value is not LEFT}
            out = out_for(d, x, of, x.items, **given) if d.chance(0.1) else LEFT
            same = out is not LEFT and (out.items.shape, out.items.dtype) == (x.items.shape, x.items.dtype)
            values["out"] = x if same and name.startswith("cum") and d.chance(0.3) else out  # some in place
        if "where" in keys:
            mask = Given(d.items("bool", x.items.shape), "gpu" if x.how == "gpu" and d.chance(0.5) else "numpy")
            values["where"] = d.maybe(0.03, mask)
        return d.call(
            name, [x], [(key, values[key]) for key in order], {k: values[k] for k in named if values[k] is not LEFT}
        )

    return draw


def float_of(got: Any) -> np.dtype:
    return got.dtype if got.dtype.kind == "f" else np.dtype(np.float64)


def eps_of(got: Any) -> float:
    return float(np.finfo(float_of(got)).eps)


def rounded(ulps: float, absolute: float = 0.0) -> Callable[..., Any]:
    """Return bounds of a function of numpy's of one rounding, in units in the last place."""

    def find(want: Any, got: Any, *args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            magnitude = np.abs(want.astype(np.longdouble)) if want.dtype.kind == "f" else np.zeros(want.shape)
            magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
            return want, ulps * magnitude + absolute / max(eps_of(got), 2.0**-23)

    return find


#: Public functions without an entry, and why.
EXEMPT: dict[str, str] = {
    "copy_ranges": "writes its second argument: tests/primitives/test_copy_ranges.py",
    "find_if": "takes a function of expressions: tests/primitives/test_find_if.py",
    "batch": "submits calls together: tests/runtime/test_any_order.py",
    "benchmark": "the stopwatch",
    "benchmarked": "the stopwatch",
    "capabilities": "of the device",
    "capture": "records calls: tests/runtime/test_any_order.py",
    "default_device": "of the device",
    "empty_cache": "memory of the device",
    "function": "WGSL of the user's",
    "hold_clock": "the stopwatch",
    "leaf": "a part of an expression: tests/primitives/test_random_expressions.py",
    "list_adapters": "of the machine",
    "measure": "the stopwatch",
    "memory_stats": "memory of the device",
    "pinned_empty": "memory of the device",
    "profile": "the stopwatch",
    "read_results": "files: helpers.fuzz_results",
    "request_device": "of the machine",
    "rolling": "returns windows: tests/primitives/test_rolling.py, against pandas",
    "scalar": "a part of an expression: tests/primitives/test_random_expressions.py",
    "stream": "takes primitives: tests/primitives/test_stream.py",
    "struct": "a part of an expression: tests/primitives/test_random_expressions.py",
    "synchronize": "waits",
    "timing_helper": "the stopwatch",
    "timing_overhead": "the stopwatch",
    "to_dataframe": "files",
    "compare_kernels": "the stopwatch",
    "write_results": "files",
    "warm_up": "compiles",
}
