"""What the package and its arrays answer to names of numpy, CuPy, PyTorch and pandas that they do not have."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

_ClassT = TypeVar("_ClassT")

#: What takes the place of names of numpy, PyTorch or pandas that are missing here. Tests run its code.
_PLACES = {
    "array": "gw.asarray([1, 2]) uploads data, gw.empty(k) makes an Array of k items",
    "linspace geomspace logspace eye identity tri vander bartlett blackman hamming hanning kaiser meshgrid indices "
    "ix_ mask_indices tril_indices triu_indices diag_indices diagflat fromfunction load loadtxt genfromtxt fromfile "
    "frombuffer fromiter fromregex fromstring from_dlpack broadcast_to broadcast_arrays block bmat": (
        "gw.asarray(np.linspace(0, 1, k, dtype=np.float32)) uploads what numpy makes or reads"
    ),
    "asanyarray ascontiguousarray asfortranarray asarray_chkfinite require asmatrix": "gw.asarray(x)",
    "save savetxt savez savez_compressed array2string array_repr array_str": "numpy's function of x.to_numpy()",
    "subtract multiply divide true_divide negative positive power pow float_power mod remainder fmod floor_divide "
    "divmod reciprocal square invert bitwise_invert bitwise_not less less_equal greater greater_equal equal not_equal "
    "left_shift right_shift bitwise_left_shift bitwise_right_shift bitwise_and bitwise_or bitwise_xor logical_and "
    "logical_or logical_xor logical_not": (
        "Python's operator on Arrays gives an expression, which gw.asarray(a + b) stores, say"
    ),
    "convolve correlate": (
        "gw.sum(np.lib.stride_tricks.sliding_window_view(x, k), axis=1) is a moving sum of a numpy array"
    ),
    "histogramdd": "gw.histogram2d(a, b, 4); for more dimensions gw.bincount of the bins' numbers, of gw.digitize",
    "bitwise_count": "gw.popcount",
    "around": "gw.round(x)",
    "nancumsum": "gw.cumsum(gw.where(gw.isnan(x), 0, x)) of float32",
    "nancumprod": "gw.cumprod(gw.where(gw.isnan(x), 1, x)) of float32",
    "merge_join": "gw.join(a, b) has the rows of equal keys",
    "tan asin arcsin acos arccos atan arctan atan2 arctan2 sinh cosh asinh arcsinh acosh arccosh atanh arctanh exp2 "
    "log2 log10 log1p expm1 cbrt sinc i0 fix frexp modf ldexp deg2rad radians rad2deg degrees": (
        "gw.function('fn f(x: f32) -> f32 { return tan(x); }') calls WGSL's functions in expressions"
    ),
    "fmin fmax": "gw.where(gw.isnan(a), b, gw.minimum(a, b)); gw.nanmin and gw.nanmax reduce",
    "isposinf isneginf": "x == np.inf and x == -np.inf",
    "signbit copysign": "gw.bitcast('u32', x) >> 31 is 1 where an Array of f32 is negative",
    "fabs": "gw.abs(x)",
    "heaviside": "gw.where(x < 0, 0.0, gw.where(x == 0, b, 1.0))",
    "hypot": "gw.sqrt(a * a + b * b)",
    "logaddexp logaddexp2": "gw.log(gw.exp(a) + gw.exp(b))",
    "isclose allclose": "gw.all(gw.abs(a - b) <= 1e-6)",
    "array_equal array_equiv": "gw.all(a == b)",
    "interp": "gw.searchsorted(x, values) finds the items of x, which ascends, between which numbers lie",
    "gradient trapezoid": "gw.diff(x) has the steps, gw.sum((x[1:] + x[:-1]) / 2) the area at steps of 1",
    "reshape ravel shape size ndim astype copy expand_dims squeeze atleast_1d atleast_2d atleast_3d": (
        "x.reshape(-1, 2), x.ravel(), x.astype(np.int32), x.copy(); x.shape, x.size, x.ndim"
    ),
    "split array_split hsplit vsplit dsplit unstack": "x[:k] and x[k:] are views",
    "swapaxes moveaxis rollaxis permute_dims matrix_transpose": "gw.transpose(m, (1, 0))",
    "fliplr flipud rot90": "gw.flip(m, 0) and gw.flip(m, 1), gw.transpose(m)",
    "pad resize": "gw.take(x, np.arange(9) - k, mode='wrap') repeats all items, mode='clip' those at the ends",
    "trace diag diagonal fill_diagonal": "gw.take(m.ravel(), np.arange(4) * 5) of 4 rows of 4",
    "unravel_index ravel_multi_index": "indices // k and indices % k are rows and columns of k items",
    "putmask place copyto tril triu": "gw.where(condition, values, x)",
    "outer kron": "gw.matmul(a.reshape(-1, 1), b.reshape(1, -1))",
    "cov corrcoef": "gw.matmul(m, gw.transpose(m)) of rows m without their means, gw.mean(m, 1)",
    "amin": "gw.min(x)",
    "amax": "gw.max(x)",
    "dot inner vdot vecdot matvec vecmat tensordot einsum": (
        "gw.matmul(m, m) is the product of matrices, gw.sum(a * b) that of vectors"
    ),
    "argwhere": "gw.nonzero(x) gives the same indices, one array for each dimension",
    "append hstack concat vstack row_stack": "gw.concatenate([a, b]); gw.stack([a, b]) has them as rows",
    "insert": "gw.empty, and gw.put of the old and of the new items",
    "select choose": "gw.where(a > 1, a, gw.where(b > 1, b, 0.0))",
    "trim_zeros": "x[gw.flatnonzero(x)[0] : gw.flatnonzero(x)[-1] + 1] of a numpy array",
    "take_along_axis put_along_axis": "gw.take and gw.put of all items: row * length + index",
    "sort_complex": "z[gw.lexsort((z.imag, z.real))] of a numpy array",
    "groupby": "gw.group_by(keys, total=(x, 'sum'))",
    "nlargest topk": "gw.top_k(x, k)",
    "nsmallest": "gw.top_k(x, k, mode='smallest')",
    "sort_values": "gw.take(x, gw.argsort(keys)) of each column, gw.lexsort for several keys",
    "value_counts": "gw.unique(x, return_counts=True) has each number once, in ascending order",
    "drop_duplicates": "x[np.sort(gw.unique(x, return_index=True)[1])] of a numpy array; gw.unique(x) ascends",
    "resample": "gw.group_by(time.dt.floor('h'), total=(x, 'sum'))",
    "rank": "gw.searchsorted(gw.sort(x), x) + 1 is the least rank of equal items",
    "pivot pivot_table crosstab": "gw.group_by(table, ['row', 'column'], n='size', observed=False)",
    "dropna": "gw.compress(~gw.isnan(x), x)",
    "fillna": "gw.where(gw.isnan(x), 0.0, x)",
    "DataFrame Series read_csv describe": "pandas has tables; functions here take them and their columns",
    "base_repr binary_repr broadcast_shapes can_cast common_type datetime_data einsum_path format_float_positional "
    "format_float_scientific get_include get_printoptions getbufsize geterr geterrcall info iscomplexobj isdtype "
    "isfortran isrealobj isscalar issubdtype iterable may_share_memory min_scalar_type mintypecode nested_iters "
    "printoptions promote_types result_type set_printoptions setbufsize seterr seterrcall shares_memory show_config "
    "show_runtime test typename": "only numpy has it: it is about dtypes, texts and settings, not items",
    "ndarray": "gw.Array",
    "asnumpy": "x.to_numpy()",
}
_OF_NUMPY = "only numpy has it, for x.to_numpy(): "
#: Why functions of numpy are not here, and no others do.
_REASONS = {
    "busday_count busday_offset datetime_as_string is_busday isnat": "Arrays hold no dates",
    "angle conj conjugate imag iscomplex isreal real real_if_close unwrap": "complex numbers are only summed here",
    "apply_along_axis apply_over_axes frompyfunc piecewise": "Python's functions are traced here, not called by item",
    "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots": "polynomials have few coefficients",
    "column_stack cross diag_indices_from dstack gcd lcm nextafter packbits spacing tril_indices_from "
    "triu_indices_from unpackbits": "it has no kernel yet",
}
INSTEAD: dict[str, str] = {
    name: place
    for table in (_PLACES, {names: f"{_OF_NUMPY}{reason}" for names, reason in _REASONS.items()})
    for names, place in table.items() for name in names.split()
}  # fmt: skip

#: Functions that are methods elsewhere, and what they take.
_FUNCTIONS = {
    "all any argmax argmin argsort cumprod cumsum max mean min nonzero prod std sum transpose var": "x",
    "argpartition partition": "x, k", "clip": "x, low, high", "compress": "condition, x", "put": "x, indices, values",
    "repeat": "x, repeats", "searchsorted": "x, values", "take": "x, indices",
}  # fmt: skip
_TO_NUMPY = "x.to_numpy() copies the items to the host"
#: What takes the place of an attribute that arrays have elsewhere, and here have not.
ATTRIBUTES_INSTEAD: dict[str, str] = {
    **{name: f"gw.{name}({given}) is a function here" for names, given in _FUNCTIONS.items() for name in names.split()},
    "sort": "gw.sort(x) gives a sorted copy",
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
    remedy = INSTEAD.get(name, "")
    if not remedy and callable(getattr(sys.modules.get("numpy"), name, None)):
        remedy = f"np.{name} computes it on the host"
    return AttributeError(f"module {package!r} has no attribute {name!r}{remedy and ': '}{remedy}")


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
