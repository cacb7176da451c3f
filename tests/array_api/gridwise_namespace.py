"""gridwise_py as array-api-tests wants a library to be: a namespace of functions on arrays that it can read.

The suite compares results by operators and indices, which a `gw.Array` does not have, because nothing is copied from
the GPU implicitly. Its arrays are therefore those of numpy. Each function in `TESTED` uploads its arguments, calls the
function of gridwise_py on Arrays, and downloads the result. All other names are numpy's: the suite needs them to make
and to compare arrays, and `tests.txt` names no test of them.

An example with an argument that gridwise_py documents as not supported is left out (`_leave_out`), and counted by its
reason. Anything else that raises fails the test. As a plugin of pytest this module prints both counts.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import hypothesis
import numpy as np
import pytest

import gridwise_py as gw

__array_api_version__ = "2025.12"
__version__ = gw.__version__

DEFAULT_FLOAT = gw.zeros(()).dtype.name

# Read by the suite when it is imported, which is after this plugin. It cannot do without any complex datatype.
os.environ.setdefault("ARRAY_API_TESTS_MODULE", __name__)
os.environ.setdefault(
    "ARRAY_API_TESTS_SKIP_DTYPES", "complex128" if DEFAULT_FLOAT == "float64" else "complex128,float64"
)

# Many examples are left out, and the first of each datatype waits for the compiler.
hypothesis.settings.register_profile(
    "gridwise",
    suppress_health_check=[hypothesis.HealthCheck.filter_too_much, hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gridwise")

_MAPPED = ("uint32", "int32", "float32")

calls: Counter[str] = Counter()
left_out: Counter[tuple[str, str]] = Counter()


# ---- what is counted


def _leave_out(name: str, reason: str) -> NoReturn:
    """Drop the example of hypothesis that runs, or skip the test."""
    left_out[name, reason] += 1
    if not hypothesis.currently_in_test_context():
        pytest.skip(f"{name}: {reason}")
    hypothesis.reject()


def _refuse_complex(name: str, *dtypes: Any) -> None:
    """Leave the example out if one of the datatypes is complex."""
    if "c" in [np.dtype(dtype).kind for dtype in dtypes]:
        _leave_out(name, "complex64")


def _up(x: Any) -> gw.Array:
    return gw.asarray(x if isinstance(x, np.ndarray) else np.asarray(x))


def _down(name: str, result: gw.Array) -> np.ndarray:
    assert isinstance(result, gw.Array), f"gw.{name} of an Array gave {result!r}"
    calls[name] += 1
    return result.to_numpy()


# ---- creation


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> np.ndarray:
    if copy is False:
        _leave_out("asarray", "copy=False: an upload copies")
    if isinstance(obj, (np.ndarray, np.generic)) and dtype is not None and obj.dtype != dtype:
        return astype(obj, dtype)  # asarray itself does not convert
    if isinstance(obj, complex) and dtype is None:
        dtype = np.complex64  # the only complex datatype on a GPU
    return _down("asarray", gw.asarray(obj, dtype=dtype))


def _creation(name: str) -> Callable[..., np.ndarray]:
    function = getattr(gw, name)

    def create(*args: Any, device: Any = None, **options: Any) -> np.ndarray:
        if name.endswith("_like"):
            args = (_up(args[0]), *args[1:])
        return _down(name, function(*args, **options))

    return create


zeros, ones, full, empty, arange = map(_creation, ("zeros", "ones", "full", "empty", "arange"))
zeros_like, ones_like, full_like, empty_like = map(_creation, ("zeros_like", "ones_like", "full_like", "empty_like"))


# ---- the shape and the datatype


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> np.ndarray:
    x = np.asarray(x)
    if x.dtype != dtype:
        _refuse_complex("astype", x.dtype, dtype)
    return _down("astype", _up(x).astype(dtype, copy=copy))


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> np.ndarray:
    if copy is False:
        _leave_out("reshape", "copy=False: not seen through copies on the host")
    return _down("reshape", _up(x).reshape(shape))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> np.ndarray:
    return _down("take", gw.take(_up(x), _up(indices), axis))


# ---- arithmetic


def _operand(x: Any) -> Any:
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return x
    _refuse_complex("add", np.asarray(x).dtype)
    return _up(x)


def add(x1: Any, x2: Any, /) -> np.ndarray:
    return _down("add", gw.add(_operand(x1), _operand(x2)))


def _map(name: str, op: str) -> Callable[[Any], np.ndarray]:
    def mapped(x: Any, /) -> np.ndarray:
        x = np.asarray(x)
        _refuse_complex(name, x.dtype)
        if x.dtype.name not in _MAPPED:
            _leave_out(name, "dtypes other than float32, int32 and uint32")
        return _down(name, gw.Map(gw.default_device(), x.dtype, op).execute(input=_up(x)).output)

    return mapped


negative, abs, square = _map("negative", "negate"), _map("abs", "abs"), _map("square", "square")


def matmul(x1: Any, x2: Any, /) -> np.ndarray:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    if x1.dtype != x2.dtype or x1.dtype.name not in ("float16", "float32"):
        _leave_out("matmul", "dtypes other than float32 and float16")
    if x1.ndim > 2 or x2.ndim > 2:
        _leave_out("matmul", "stacks of matrices")
    if x1.ndim != 2 or x2.ndim != 2:
        # A product with a vector stays flat on the GPU; for arrays of the host it has numpy's shape.
        calls["matmul"] += 1
        return np.asarray(gw.matmul(x1, x2))
    return _down("matmul", gw.matmul(_up(x1), _up(x2)))


# ---- reductions and scans


def _reduction(name: str) -> Callable[..., np.ndarray]:
    function = getattr(gw, name)
    has_axis = "axis" in inspect.signature(function).parameters

    def reduced(x: Any, /, *, axis: Any = None, keepdims: bool = False, **options: Any) -> np.ndarray:
        x = np.asarray(x)
        if not has_axis and (axis is not None or keepdims):
            _leave_out(name, "axis=, keepdims=")
        if has_axis:
            options |= {"axis": axis, "keepdims": keepdims}
        return _down(name, function(_up(x), **options))

    return reduced


sum, prod, min, max = map(_reduction, ("sum", "prod", "min", "max"))


def _cumulative(name: str, function: Callable[..., gw.Array]) -> Callable[..., np.ndarray]:
    def scanned(x: Any, /, *, axis: int | None = None, include_initial: bool = False, **options: Any) -> np.ndarray:
        return _down(name, function(_up(x), axis=axis, include_initial=include_initial, **options))

    return scanned


cumulative_sum = _cumulative("cumulative_sum", gw.cumulative_sum)
cumulative_prod = _cumulative("cumulative_prod", gw.cumulative_prod)


# ---- sorts


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
    return _down("sort", gw.sort(_up(np.asarray(x)), axis, stable=stable, descending=descending))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> np.ndarray:
    # Indices on the GPU are u32; the standard wants a signed datatype.
    found = gw.argsort(_up(np.asarray(x)), axis, stable=stable, descending=descending)
    return _down("argsort", found).astype(np.int64)


# ---- searches and selections


def searchsorted(x1: Any, x2: Any, /, *, side: Any = "left", sorter: Any = None) -> np.ndarray:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    _refuse_complex("searchsorted", x1.dtype, x2.dtype)
    order = None if sorter is None else _up(np.asarray(sorter).astype(np.uint32))
    # Indices on the GPU are u32; the standard wants a signed datatype.
    return _down("searchsorted", gw.searchsorted(_up(x1), _up(x2), side=side, sorter=order).astype(np.int64))


def _struct_reduction(name: str) -> Callable[..., np.ndarray]:
    function = getattr(gw, name)

    def reduced(x: Any, /, *, axis: Any = None, keepdims: bool = False, **options: Any) -> np.ndarray:
        x = np.asarray(x)
        _refuse_complex(name, x.dtype)
        try:
            found = _down(name, function(_up(x), axis=axis, keepdims=keepdims, **options))
        except gw.ArgumentError as error:
            if "not neighbours" not in str(error):
                raise
            _leave_out(name, "axes that are not neighbours")
        # Indices and counts on the GPU are u32; the standard wants a signed datatype.
        return found.astype(np.int64) if found.dtype == np.uint32 else found

    return reduced


any, all, argmin, argmax, count_nonzero = map(_struct_reduction, ("any", "all", "argmin", "argmax", "count_nonzero"))
mean, var, std = map(_struct_reduction, ("mean", "var", "std"))


def nonzero(x: Any, /) -> tuple[np.ndarray, ...]:
    x = np.asarray(x)
    _refuse_complex("nonzero", x.dtype)
    return tuple(_down("nonzero", part).astype(np.int64) for part in gw.nonzero(_up(x)))


def _unique(name: str, indices: tuple[str, ...]) -> Callable[[Any], Any]:
    def unique(x: Any, /) -> Any:
        x = np.asarray(x)
        _refuse_complex(name, x.dtype)
        found = getattr(gw, name)(_up(x))
        if not indices:
            return _down(name, found)
        fields = {field: _down(name, getattr(found, field)) for field in ("values", *indices)}
        return getattr(np, name)(x.ravel()[:0])._replace(**{
            field: array if field == "values" else array.astype(np.int64) for field, array in fields.items()
        })  # fmt: skip

    return unique


unique_values = _unique("unique_values", ())
unique_counts = _unique("unique_counts", ("counts",))
unique_inverse = _unique("unique_inverse", ("inverse_indices",))
unique_all = _unique("unique_all", ("indices", "inverse_indices", "counts"))


# ---- the rest of the namespace

TESTED = [
    "asarray", "zeros", "ones", "full", "empty", "arange", "zeros_like", "ones_like", "full_like", "empty_like",
    "astype", "reshape", "take", "add", "negative",
    "abs", "square", "matmul", "sum", "prod", "min", "max", "cumulative_sum", "cumulative_prod",
    "any", "all", "mean", "argmin", "argmax", "var", "std", "sort", "argsort", "searchsorted", "count_nonzero",
    "nonzero", "unique_values", "unique_counts", "unique_inverse", "unique_all",
]  # fmt: skip


def __array_namespace_info__() -> Any:
    info = np.__array_namespace_info__()
    defaults = info.default_dtypes() | {
        "real floating": np.dtype(DEFAULT_FLOAT),
        "complex floating": np.dtype(np.complex64),
    }
    names = ("capabilities", "devices", "default_device", "dtypes")
    return SimpleNamespace(
        default_dtypes=lambda *, device=None: defaults, **{name: getattr(info, name) for name in names}
    )


def __getattr__(name: str) -> Any:
    if name in ("linalg", "fft"):  # optional extensions, none of which is here
        raise AttributeError(name)
    return getattr(np, name)


# ---- a plugin of pytest

_ARGUMENT = r"(\[.*\])?$"
_CHOSEN = re.compile("|".join([
    *(rf"::test_{name}{_ARGUMENT}" for name in TESTED if name != "asarray"),
    r"::test_asarray_(scalars|arrays)$",
    r"test_special_cases.py::test_(unary|binary)\[(add|negative|abs|square)\(",
    r"test_special_cases.py::test_empty_arrays\[(sum|prod)\]",
    r"test_special_cases.py::test_nan_propagation\[(sum|prod|min|max)\]",
]))  # fmt: skip


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep the tests of functions that exist here."""
    chosen = [item for item in items if _CHOSEN.search(item.nodeid)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section(f"on {gw.list_adapters()[0]}")
    for name in TESTED:
        reasons = [f"{count} left out ({reason})" for (left, reason), count in left_out.items() if left == name]
        if calls[name] or reasons:
            terminalreporter.write_line(f"{name}: " + "; ".join([f"{calls[name]} calls", *reasons]))
