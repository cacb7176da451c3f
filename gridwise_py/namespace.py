"""What the package and its arrays answer to names of numpy, CuPy, PyTorch and pandas that they do not have."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

_ClassT = TypeVar("_ClassT")

_UPLOAD = "make it with numpy and upload it: gw.asarray(np.{name}(…, dtype=np.float32))"
_OPERATOR = (
    "use Python's operator on Arrays, which gives an expression; gw.asarray(…) stores it (docs/concepts/expressions.md)"
)
_WGSL = "gw.function('fn f(x: f32) -> f32 …') calls functions of WGSL, in expressions (docs/concepts/expressions.md)"
#: What takes the place of a name of numpy or pandas that is missing here; ``{name}`` is that name.
INSTEAD: dict[str, str] = {
    "array": "gw.asarray(data) uploads data, gw.empty(n) makes an Array of n items",
    **dict.fromkeys(("linspace",), _UPLOAD),
    **dict.fromkeys(("subtract", "multiply", "divide", "negative"), _OPERATOR),
    "convolve": "a moving sum is a difference of prefix sums: s = gw.cumsum(x), then s[k:] - s[:-k]; else a gw.Kernel",
    "rolling": "a moving sum is a difference of prefix sums: s = gw.cumsum(x), then s[k:] - s[:-k]",
    "histogramdd": "gw.histogram2d; for more dimensions gw.bincount of the bins' numbers, which gw.digitize gives",
    "bitwise_count": "gw.popcount",
    "around": "gw.round",
    "nancumsum": "gw.cumsum(gw.where(gw.isnan(x), 0, x))",
    "nancumprod": "gw.cumprod(gw.where(gw.isnan(x), 1, x))",
    **dict.fromkeys(
        ("merge_join", "join"),
        "gw.sort both by their keys, then gw.searchsorted of one in the other; gw.isin tells which",
    ),
    **dict.fromkeys(("power", "mod", "remainder", "floor_divide", "square", "invert", "less", "greater"), _OPERATOR),
    **dict.fromkeys(("equal", "not_equal", "bitwise_and", "bitwise_or", "bitwise_xor"), _OPERATOR),
    **dict.fromkeys(("logical_and", "logical_or", "logical_not"), _OPERATOR),
    **dict.fromkeys(("tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh"), _WGSL),
    **dict.fromkeys(("log2", "log10", "log1p", "expm1", "cbrt"), _WGSL),
    **dict.fromkeys(
        ("isfinite", "isinf"), "(gw.bitcast('u32', x) & 0x7F800000) != 0x7F800000 says whether x is finite"
    ),
    **dict.fromkeys(("fmin", "fmax"), "gw.where(gw.isnan(a), b, gw.minimum(a, b)); gw.nanmin and gw.nanmax reduce"),
    **dict.fromkeys(("cov", "corrcoef"), "gw.matmul(x, gw.transpose(x)) of x without its mean, gw.mean(x, 1)"),
    "amin": "gw.min",
    "amax": "gw.max",
    "dot": "gw.matmul",
    "argwhere": "gw.nonzero gives the same indices, one array for each dimension",
    **dict.fromkeys(("append", "hstack"), "gw.ChunkedArray([a, b]) takes Arrays as one; else gw.empty and copy_from"),
    "insert": "gw.empty, and gw.put of the old and of the new items",
    "select": "gw.where(first, a, gw.where(second, b, default))",
    "trim_zeros": "found = gw.flatnonzero(x), then x[found[0] : found[-1] + 1]",
    **dict.fromkeys(("take_along_axis", "put_along_axis"), "gw.take and gw.put of all items: row * length + index"),
    "sort_complex": "x[gw.lexsort((x.imag, x.real))] of a numpy array",
    "concatenate": "gw.ChunkedArray([a, b]) takes Arrays as one",
    "groupby": "gw.group_by(keys, total=(x, 'sum'))",
    "nlargest": "gw.top_k(x, k)",
    "nsmallest": "gw.top_k(x, k, mode='smallest')",
    "sort_values": "gw.take(column, gw.argsort(by)) of each column, gw.lexsort for several keys",
    **dict.fromkeys(("value_counts", "drop_duplicates"), "gw.unique(x, return_counts=True)"),
    "ndarray": "gw.Array",
    "asnumpy": "x.to_numpy()",
}

#: Functions that are methods elsewhere, and what they take.
_FUNCTIONS = {
    **dict.fromkeys(
        ("all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "max", "mean", "min", "nonzero", "prod",
         "std", "sum", "transpose", "var"), "x",
    ),
    "argpartition": "x, k", "clip": "x, low, high", "compress": "condition, x", "partition": "x, k",
    "put": "x, indices, values", "repeat": "x, repeats", "searchsorted": "x, values", "take": "x, indices",
}  # fmt: skip
_TO_NUMPY = "x.to_numpy() copies the items to the host"
#: What takes the place of an attribute that arrays have elsewhere, and here have not.
ATTRIBUTES_INSTEAD: dict[str, str] = {
    **{name: f"gw.{name}({given}) is a function here" for name, given in _FUNCTIONS.items()},
    "sort": "gw.sort(x) gives a sorted copy; gw.sort(x, out=x) sorts in place",
    "T": "gw.transpose(x) makes the transposed Array",
    "dot": "gw.matmul(x, y) is the product of matrices, gw.sum(x * y) that of vectors",
    "flatten": "x.ravel() is a view of all items in one dimension",
    "squeeze": "x.reshape(shape) is a view of another shape",
    "itemsize": "x.dtype.itemsize",
    "tobytes": "x.to_numpy().tobytes()",
    **dict.fromkeys(("get", "cpu", "numpy", "asnumpy"), _TO_NUMPY),
}
#: The same for what only an array has that is stored: of expressions.
_STORED_INSTEAD = {"to_numpy": "nothing is computed yet; gw.asarray(x).to_numpy() stores it first"}


class _Missing:
    """An attribute that is not there, and says what is.

    A ``__getattr__`` could say it, too, but would make Python slower at all attributes.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, value: object, kind: type) -> NoReturn:
        name = self._name
        remedy = ATTRIBUTES_INSTEAD.get(name) or _STORED_INSTEAD[name]
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}: {remedy}")


def with_answers(cls: type[_ClassT]) -> type[_ClassT]:
    """Let a class answer to attributes that arrays have elsewhere; as a decorator.

    To ``hasattr``, ``dir`` and type checkers they are not there.
    """
    for name in (ATTRIBUTES_INSTEAD.keys() | _STORED_INSTEAD.keys()) - set(dir(cls)):
        setattr(cls, name, _Missing(name))

    def __dir__(self: object) -> list[str]:
        return [name for name in object.__dir__(self) if not isinstance(_found(type(self), name), _Missing)]

    cls.__dir__ = __dir__
    return cls


def _found(kind: type, name: str) -> object:
    """Return what a class has by a name, as it is there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def no_such_name(package: str, name: str) -> AttributeError:
    """Return what to raise for a name that the package does not have; Python itself finds similar names."""
    remedy = f": {INSTEAD[name].format(name=name)}" if name in INSTEAD else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{remedy}")


def places_of(modules: Mapping[str, str]) -> dict[str, str]:
    """Map each name to its module, from the names of each module in one text."""
    return {name: module for module, names in modules.items() for name in names.split()}


def loaded_late(
    package: str, places: Mapping[str, str], check_is_installed: Callable[[str], None] = lambda _: None
) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package with names that are loaded when they are first used.

    Parameters
    ----------
    package : str
        Its full name.
    places : mapping
        For each name the module that has it, below the package.
    check_is_installed : callable, optional
        Takes the full name of what is used; raises ImportError where the extra that it needs is missing.
    """

    def __getattr__(name: str) -> object:
        if name not in places:
            raise no_such_name(package, name)
        check_is_installed(f"{package}.{name}")
        value = getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
