"""Functions of items, with numpy's names: of arrays on the host their values, of Arrays and expressions an expression.

On the host numpy's types come back, but floats of integers of up to 4 bytes are float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives.fusion import flat_of
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray
from ..runtime.context import context_of
from ..types import expression_functions as expressions
from ..types.datatype import ITEM_DATATYPES, STORAGE_DATATYPES, VALUE_DATATYPES
from ..types.expression import LEAF_DATATYPES, Expression, Later, Operators, converted, f32, f64, u32
from ..types.expression_functions import StructExpression
from ..types.operations import INTEGERS, NUMPY_TYPES
from ..types.options import integer
from ..types.shapes import broadcast_shape
from .arguments import Call, argument_array, argument_datatype, deliver, device_of, is_weak, numpy_result
from .families import describe
from .reductions import narrow_numbers
from .selections import nonzero

_IN_FLOATS = "Of float32; of float16 for float16, of float64 for 8 bytes."
#: What WGSL has in f32 alone.
_IN_F32 = ("exp", "log", "sin", "cos", "tanh")


def _is_later(*values: Any) -> bool:
    """Whether a result is an expression, because an argument is on the GPU or known later."""
    return any(isinstance(value, (Operators, StructExpression, Later)) for value in values)


def _beside(call: str, values: tuple[Any, ...]) -> list[Any]:
    """Return the arguments of an expression: arrays of the host are uploaded to where the others are."""
    made: list[Any] = []
    for value in values:
        on_gpu = isinstance(value, (Operators, StructExpression))
        if not (on_gpu or value is None or is_weak(value) or isinstance(value, np.generic)):
            items = narrow_numbers(value, argument_array(call, "an argument", value))
            value = asarray(items, device_of(*_arrays_of(values)))
        made.append(value)
    return made


def _arrays_of(values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the Arrays of the expressions among values."""
    for value in values:
        if isinstance(value, Operators) and not isinstance(value, Later):
            yield from (array for _, array in flat_of(value.as_expression()).arrays)


def _store(call: str, expression: Any, out: Any) -> Any:
    return expression if out is None else deliver(call, asarray(expression), out)


def _compute(
    call: str, function: Callable[..., Any], given: list[np.ndarray], dtype: Any, out: Any, device: Any
) -> Any:
    """Return a function of numpy arrays, computed on the GPU, in a dtype of numpy."""
    device = device_of(device=device)
    for items in given:
        known = LEAF_DATATYPES if items.dtype.kind in "mM" else STORAGE_DATATYPES  # an integer is no NaT
        argument_datatype(call, "x", items, items.dtype, known)
    broadcast_shape(call, [items.shape for items in given])  # raises before anything is uploaded
    with np.errstate(all="ignore"):
        found = asarray(function(*(asarray(items, device) for items in given))).to_numpy().astype(dtype, copy=False)
    return deliver(call, numpy_result(found), out)


def _one_host(call: str, x: Any) -> np.ndarray:
    """Return the items of an argument, and of Python's numbers those of 4 bytes."""
    if isinstance(x, ChunkedArray):
        raise ArgumentError(f"{call}: x is a ChunkedArray; give its chunks one by one")
    return narrow_numbers(x, argument_array(call, "x", x))


def _as_they_are(call: str, x: Any) -> Any:
    """Return a copy of the items of an argument, in this machine's byte order."""
    items = argument_array(call, "x", x)
    return numpy_result(items.astype(items.dtype.newbyteorder("=")))


def _of_floats(name: str, sentence: str, result: str = _IN_FLOATS) -> Callable[..., Any]:
    """Return a function of floats."""
    call, function = f"gw.{name}()", getattr(expressions, name)

    def of_items(x: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array, expression or number
            {takes}
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape and dtype.
        device : wgpu.GPUDevice, optional
            That computes on arrays of the host; by default `default_device()`.

        Returns
        -------
        numpy.ndarray, numpy scalar or Expression
            {result} An expression where `x` is on the GPU: `asarray` stores it.
        """
        if _is_later(x):
            return _store(call, function(x), out)
        items = _one_host(call, x)
        if name in ("floor", "ceil", "trunc") and items.dtype.kind in "biu":
            return deliver(call, _as_they_are(call, x), out)
        if of_bits and items.dtype.kind in "biu":
            return deliver(call, numpy_result(np.full(items.shape, name == "isfinite")), out)
        is_wide = items.dtype.itemsize == 8 and items.dtype.kind in "iuf"
        if is_wide and not of_bits and (name in _IN_F32 or not context_of(device_of(device=device)).has_float64):
            argument_datatype(call, "x", x, items.dtype, LEAF_DATATYPES)
        dtype = np.float64 if is_wide else np.float16 if items.dtype == np.float16 else np.float32

        def of_array(array: Array) -> Any:
            return function(f64(array) if is_wide else f32(_number(array)))

        return _compute(call, of_array, [items], np.bool_ if of_bits else dtype, out, device)

    of_bits = name in ("isnan", "isfinite", "isinf")
    takes = "Bool, integers and floats" + (" of up to 4 bytes; on the GPU floats." if name in _IN_F32 else ".")
    return explained()(describe(of_items, name, sentence, result=result, takes=takes))


def _number(array: Array) -> Any:
    """Return an Array as an expression of numbers: of bools 0 and 1."""
    expression = array.as_expression()
    return converted("u32", expression) if expression.type == "bool" else expression


sqrt = _of_floats("sqrt", "Return the square root.")
exp = _of_floats("exp", "Return the exponential.")
log = _of_floats("log", "Return the natural logarithm.")
sin = _of_floats("sin", "Return the sine.")
cos = _of_floats("cos", "Return the cosine.")
tanh = _of_floats("tanh", "Return the hyperbolic tangent.")
_AS_THEY_ARE = "Of the dtype of `x`."
floor = _of_floats("floor", "Return `x` rounded down.", _AS_THEY_ARE)
ceil = _of_floats("ceil", "Return `x` rounded up.", _AS_THEY_ARE)
rint = _of_floats("rint", "Return `x` rounded to the nearest integer, ties to even.")
trunc = _of_floats("trunc", "Return `x` without what is behind the point.", _AS_THEY_ARE)
isnan = _of_floats("isnan", "Return whether `x` is NaN.", "Of bool.")
isfinite = _of_floats("isfinite", "Return whether `x` is neither infinite nor NaN.", "Of bool.")
isinf = _of_floats("isinf", "Return whether `x` is infinite.", "Of bool.")


@explained()
def round(x: Any, decimals: int = 0, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return `x` rounded to the nearest integers, ties to even, as `rint`; `decimals` is 0.

    Raises
    ------
    ArgumentError
        For other `decimals`: give ``gw.rint(gw.f32(x) * 100) / 100``.
    """
    if integer("gw.round(): decimals", decimals) != 0:
        on_gpu = f"gw.rint(gw.f32(x) * 1e{decimals}) / 1e{decimals}"
        remedy = on_gpu if _is_later(x) else f"np.round(x, {decimals})"
        raise ArgumentError(f"gw.round(): decimals={decimals}, but only integers are rounded to; give {remedy}")
    if isinstance(x, Operators) and not isinstance(x, Later):
        is_whole = x.as_expression().type in INTEGERS
    else:
        is_whole = not _is_later(x) and _one_host("gw.round()", x).dtype.kind in "iu"
    return floor(x, out, device=device) if is_whole else rint(x, out, device=device)


def _of_numbers(name: str, kind: str, sentence: str, takes: str) -> Callable[..., Any]:
    """Return a function of numbers that keeps their dtype."""
    call = f"gw.{name}()"
    function: Callable[[Any], Any] = Operators.__abs__ if kind == "abs" else getattr(expressions, kind)

    def of_items(x: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array, expression or number
            Integers and floats.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape and dtype.
        device : wgpu.GPUDevice, optional
            That computes on arrays of the host; by default `default_device()`.

        Returns
        -------
        numpy.ndarray, numpy scalar or Expression
            Of the dtype of `x`. An expression where `x` is on the GPU: `asarray` stores it.
        """
        if _is_later(x):
            return _store(call, function(x), out)
        items, whole = _one_host(call, x), argument_array(call, "x", x)
        if kind == "abs" and items.dtype.kind == "b":
            return deliver(call, numpy_result(items.copy()), out)
        if items.dtype.kind in "cm":
            raise DatatypeError(f"{call}: x is of {items.dtype}, but must be of real numbers; give np.{name}(x)")
        if items.dtype.kind not in takes:
            argument_datatype(call, "x", x, items.dtype, VALUE_DATATYPES)
        if items.dtype == np.float64 and not context_of(device_of(device=device)).has_float64:
            argument_datatype(call, "x", x, items.dtype, LEAF_DATATYPES)
        if items.dtype.kind == "i" and items.dtype != whole.dtype:  # of Python's integers
            found = _compute(call, function, [items], np.int32, None, device)
            magnitudes = found.astype(np.uint32) if kind == "abs" else found  # that of -2**31 is no int32
            return deliver(call, magnitudes.astype(whole.dtype), out)
        return _compute(call, function, [items], items.dtype.newbyteorder("="), out, device)

    return explained()(describe(of_items, name, sentence))


sign = _of_numbers("sign", "sign", "Return the sign: −1, 0 or 1.", "iuf")
absolute = _of_numbers("absolute", "abs", "Return the magnitude; that of the least integer wraps.", "iuf")
abs = absolute


@explained()
def nan_to_num(
    x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, *,
    device: wgpu.GPUDevice | None = None,
) -> Any:  # fmt: skip
    """Return `x` with numbers in place of NaN and of infinities.

    Parameters
    ----------
    x : numpy.ndarray, Array, expression or number
    nan : number or array, default 0.0
    posinf, neginf : number or array, optional
        By default the largest and the least number of the dtype. Arrays are broadcast beside `x`.
    device : wgpu.GPUDevice, optional
        That computes on arrays of the host; by default `default_device()`.

    Returns
    -------
    numpy.ndarray, numpy scalar or Expression
        Of the dtype of `x`. An expression where `x` is on the GPU: `asarray` stores it.
    """
    call, function = "gw.nan_to_num()", expressions.nan_to_num
    if _is_later(x, nan, posinf, neginf):
        return function(*_beside(call, (x, nan, posinf, neginf)))
    items = _one_host(call, x)
    if items.dtype.kind in "biu":
        return _as_they_are(call, x)
    if items.dtype == np.float16:  # whose ends are its own
        ends = np.finfo(np.float16)
        posinf, neginf = (float(ends.max) if posinf is None else posinf), float(ends.min) if neginf is None else neginf
    options = {"nan": nan, "posinf": posinf, "neginf": neginf}
    several = {name: np.asarray(value, items.dtype) for name, value in options.items() if np.ndim(value)}
    wide = broadcast_shape(call, [items.shape, *(each.shape for each in several.values())])
    if wide != items.shape:
        raise LengthError(f"{call}: x has shape {items.shape}, but the numbers {wide}; give np.broadcast_to(x, {wide})")

    def of_arrays(array: Array, *others: Array) -> Any:
        return function(array, **options | dict(zip(several, others, strict=True)))

    return _compute(call, of_arrays, [items, *several.values()], items.dtype, None, device)


@explained()
def popcount(x: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the number of bits that are set, as `numpy.bitwise_count`.

    Parameters
    ----------
    x : numpy.ndarray, Array, expression or number
        Unsigned integers; on the GPU u32 or u64.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape and dtype.
    device : wgpu.GPUDevice, optional
        That computes on arrays of the host; by default `default_device()`.

    Returns
    -------
    numpy.ndarray, numpy scalar or Expression
        Of uint8; an expression of u32 where `x` is on the GPU.
    """
    call = "gw.popcount()"
    if _is_later(x):
        return _store(call, expressions.popcount(x), out)
    items = argument_array(call, "x", x)
    if isinstance(x, int) and 0 <= x < 2**32:
        items = items.astype(np.uint32)
    if items.dtype.kind != "u":
        raise DatatypeError(f"{call}: x is of {items.dtype}, but must be unsigned; give x.astype(np.uint32)")

    def bits(array: Array) -> Any:
        return expressions.popcount(array if array.datatype.name == "u64" else u32(array))

    return _compute(call, bits, [items], np.uint8, out, device)


def _pick(name: str, a: Any, b: Any, out: Any, device: Any) -> Any:
    """Return the smaller or the larger of two items, of numpy's promoted dtype."""
    call, function = f"gw.{name}()", getattr(expressions, name)
    if _is_later(a, b):
        return _store(call, function(*_beside(call, (a, b))), out)
    made = Call(call, device)
    datatype = made.promote({"a": a, "b": b}, computes=False)
    if made.on_gpu:
        raise ArgumentError(f"{call}: an argument is a ChunkedArray; give its chunks one by one")
    first, second = (np.asarray(made.convert(name, datatype)) for name in ("a", "b"))
    if datatype.dtype.kind == "b":  # expressions do not compare truths
        function = getattr(operator, "or_" if name == "maximum" else "and_")
    return _compute(call, function, [first, second], datatype.dtype, out, device)


@explained()
def minimum(a: Any, b: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the smaller of two items; NaN propagates.

    Parameters
    ----------
    a, b : numpy.ndarray, Array, expression or number
        Promoted and broadcast as in numpy. On the GPU of one type, or one of 8 bytes.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape and dtype.
    device : wgpu.GPUDevice, optional
        That computes on arrays of the host; by default `default_device()`.

    Returns
    -------
    numpy.ndarray, numpy scalar or Expression
        An expression where an argument is on the GPU: `asarray` stores it.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.minimum(np.array([3, 1, 4]), 2)
    array([2, 1, 2])
    """
    return _pick("minimum", a, b, out, device)


@explained()
def maximum(a: Any, b: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the larger of two items, as `minimum` takes them; NaN propagates."""
    return _pick("maximum", a, b, out, device)


def _bounds(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the bounds of integers, with None for a Python number beyond all of them, as numpy takes it."""
    dtype: Any = NUMPY_TYPES[x.type] if isinstance(x, Expression) else getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        ends = np.iinfo(cast(Any, dtype))
        low = None if is_weak(low) and isinstance(low, int) and low < ends.min else low
        high = None if is_weak(high) and isinstance(high, int) and high > ends.max else high
    return low, high


@explained()
def clip(x: Any, low: Any = None, high: Any = None, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items of `x`, those below `low` as `low`, those above `high` as `high`.

    Parameters
    ----------
    x, low, high : numpy.ndarray, Array, expression or number
        As for `minimum`; None is no bound.
    out : numpy.ndarray or Array, optional
        Where to put the result, of its shape and dtype.
    device : wgpu.GPUDevice, optional
        That computes on arrays of the host; by default `default_device()`.

    Returns
    -------
    numpy.ndarray, numpy scalar or Expression
        An expression where an argument is on the GPU: `asarray` stores it.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.clip(np.array([3, -1, 9]), 0, 5)
    array([3, 0, 5])
    """
    call = "gw.clip()"
    low, high = _bounds(x, low, high)
    if _is_later(x, low, high):
        return _store(call, expressions.clip(*_beside(call, (x, low, high))), out)
    above = x if low is None else maximum(x, low, device=device)
    if high is not None:
        above = minimum(above, high, device=device)
    elif low is None:
        above = _as_they_are(call, x)
    return deliver(call, above, out)


@explained()
def where(condition: Any, a: Any = None, b: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return `a` where a condition holds, else `b`; without these, what `nonzero` does.

    Parameters
    ----------
    condition : numpy.ndarray, Array, expression or bool
        On the GPU of bool.
    a, b : numpy.ndarray, Array, expression or number, or structs of expressions
        Promoted and broadcast as in numpy, but Python's numbers do not wrap. On the GPU of one type, or one of 8 bytes;
        both are computed for each item.
    device : wgpu.GPUDevice, optional
        That computes on arrays of the host; by default `default_device()`.

    Returns
    -------
    numpy.ndarray, numpy scalar or Expression
        An expression where an argument is on the GPU: `asarray` stores it.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([3, -1, 4], dtype=np.int32))
    >>> gw.asarray(gw.where(x > 0, x, 0)).to_numpy()
    array([3, 0, 4], dtype=int32)
    >>> gw.where(np.array([True, False]), np.array([1.5, 2.5]), 0)
    array([1.5, 0. ])
    """
    call = "gw.where()"
    if (a is None) != (b is None):
        raise ArgumentError(f"{call} takes a condition, or a condition and both a and b")
    if a is None:
        return nonzero(condition, device=device)
    if _is_later(condition, a, b):
        if not (_is_later(condition) or isinstance(condition, ChunkedArray)):
            condition = argument_array(call, "condition", condition) != 0
        return expressions.where(*_beside(call, (condition, a, b)))
    chosen = argument_array(call, "condition", condition) != 0
    made = Call(call, device)
    datatype = made.promote({"a": a, "b": b}, ITEM_DATATYPES, computes=False)
    first, second = (np.asarray(made.convert(name, datatype)) for name in ("a", "b"))
    dtype, function = datatype.dtype, cast(Any, expressions.where)
    words: Any = np.uint64 if dtype.kind == "c" else dtype
    given = (np.asarray(items, dtype).view(words) for items in (first, second))
    return _compute(call, function, [chosen, *given], words, None, device).view(dtype)
