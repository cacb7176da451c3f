"""One-shot functions that add, take differences, and multiply matrices.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives import MatMul, VectorAdd
from ..primitives.reduce_axis import one_axis
from ..runtime.array import Array, asarray, is_python
from ..runtime.chunked_array import ChunkedArray, Items
from ..types.datatype import STORAGE_DATATYPES, as_datatype
from ..types.expression import Expression
from ..types.operators import Xor
from ..types.options import integer
from .arguments import REMEDIES, Call, argument_array, argument_datatype, weak_items
from .arrays import add_broadcast, is_broadcast, take
from .reductions import one_result, reduce
from .repeated_calls import one_shot
from .signatures import AddCall, MatMulCall, typed_as
from .stacks import join

_MATRICES = {"a": ("m", "k"), "b": ("k", "n")}


@typed_as(AddCall)
@one_shot(REMEDIES)
def add(a: Any, b: Any, out: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return ``a + b``, item by item; integers wrap.

    Parameters
    ----------
    a, b : numpy.ndarray, Array or number
        An array's datatype must hold a Python number.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype. It may be an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array if an argument is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 3], dtype=np.int32)
    >>> gw.add(x, 10)
    array([11, 12, 13], dtype=int32)
    >>> gw.add(np.array([[0], [10]], dtype=np.int32), x)
    array([[ 1,  2,  3],
           [11, 12, 13]], dtype=int32)
    """
    if is_broadcast(a, b):
        return add_broadcast("gw.add()", a, b, out, device)
    call = Call("gw.add()", device)
    kind = call.take("a", a, VectorAdd.datatypes, shape="any", computes=True, fuses=False, chunked=True)
    call.take("b", b, VectorAdd.datatypes, shape="any", computes=True, fuses=False, chunked=True)
    call.check_one_datatype("b", "a")
    call.check_lengths()
    primitive = call.primitive(VectorAdd, kind)
    call.take_out(primitive, out, call.arrays["a"].shape, casting="same_kind")
    return one_result(call, primitive, out)


@one_shot()
def diff(
    x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None, *, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the differences between neighbours, ``x[1:] - x[:-1]``; integers wrap.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        An Array of float64 where the device computes with it; dates are subtracted by numpy.
    n : int, default 1
    axis : int, default -1
    prepend, append : numpy.ndarray or number, optional
        For numpy arrays.
    device : wgpu.GPUDevice, optional
        By default that of an Array, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.diff([1, 4, 9, 16])
    array([3, 5, 7])
    """
    call = "gw.diff()"
    times = integer(f"{call}: n", n, 0)
    if isinstance(x, Expression):
        x = asarray(x, device)
    items: Any = Call(call).items("x", x)
    if times == 0:
        return items
    if items.ndim == 0:
        raise ArgumentError(f"{call}: x is a single item, which has no neighbours; give one dimension or more")
    along = one_axis(call, axis, items.ndim)
    ends = [end for end in (prepend, append) if end is not None]
    if ends and isinstance(items, Array):
        raise ArgumentError(f"{call}: prepend= and append= are for numpy arrays; write the ends with gw.diff(x)")
    if ends:
        one = (*items.shape[:along], 1, *items.shape[along + 1 :])
        parts = [end for end in (prepend, items, append) if end is not None]
        items = join(call, [np.asarray(end) if np.ndim(end) else np.broadcast_to(end, one) for end in parts], along)
    if items.dtype.kind in "mM":
        return np.diff(items, min(times, items.shape[along] + 1), along)
    if not items.shape[along]:
        return items if isinstance(items, Array) else items.astype(items.dtype.newbyteorder("="))
    for _ in range(min(times, items.shape[along])):
        items = _differences(call, items, along, device)
    return items


def _differences(call: str, items: Any, axis: int, device: wgpu.GPUDevice | None) -> Any:
    """Return the differences between neighbours along an axis."""
    length = items.shape[axis]
    if isinstance(items, np.ndarray):
        argument_datatype(call, "x", items, items.dtype, STORAGE_DATATYPES)
        before, behind = ((slice(None),) * axis + (slice(k, length - 1 + k),) for k in (0, 1))
        if items.dtype.kind == "b":
            return reduce(np.stack([items[before], items[behind]]), Xor, axis=0, device=device)
        return add(items[behind], np.negative(items[before]), device=device)
    argument_datatype(call, "x", items, items.dtype, STORAGE_DATATYPES)
    ends = [items[k : length - 1 + k] if axis == 0 else take(items, np.arange(k, length - 1 + k), axis) for k in (0, 1)]
    first, second = (end.as_expression() for end in ends)
    return asarray(first != second if first.type == "bool" else second - first).astype(items.datatype, copy=False)


@one_shot()
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the differences between neighbours, of all items.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        As for `diff`.
    to_end, to_begin : numpy.ndarray or number, optional
        For numpy arrays.
    device : wgpu.GPUDevice, optional
        By default that of an Array, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.ediff1d(np.array([1, 4, 9]))
    array([3, 5])
    """
    call = Call("gw.ediff1d()")
    items = call.ravel("x", x)
    given: Any = items if isinstance(items, (Array, Expression)) else call.items("x", items)
    if (given.type if isinstance(given, Expression) else given.dtype.name) == "bool":
        raise DatatypeError(f"{call}: x is of bool, which has no differences; gw.diff(x) says where neighbours differ")
    found = diff(items, device=device)
    if to_end is None and to_begin is None:
        return found
    if isinstance(found, Array):
        raise ArgumentError(f"{call}: to_end= and to_begin= are for numpy arrays; leave them out")

    def read(name: str, end: Any) -> np.ndarray:
        datatype = as_datatype(found.dtype, STORAGE_DATATYPES)
        items = weak_items(call.name, name, end, datatype) if is_python(end) else argument_array(call.name, name, end)
        if not np.can_cast(items.dtype, found.dtype, "same_kind"):
            raise DatatypeError(
                f"{call}: {name} is of {items.dtype}, but the differences of {found.dtype}; give "
                f"np.asarray({name}).astype(np.{found.dtype})"
            )
        return items.ravel()

    begin, end = (read(f"to_{k}", [] if each is None else each) for k, each in (("begin", to_begin), ("end", to_end)))
    return np.concatenate([begin, found, end]).astype(found.dtype)


@typed_as(MatMulCall)
@one_shot(REMEDIES)
def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the matrix product ``a @ b``, in the datatype of the matrices.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Of f32 or f16, with shapes (m, k) and (k, n) or a vector; an Array of one dimension is a matrix, row by row.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype. A numpy array may be
        an input.
    m, n, k : int, optional
        Sizes, for Arrays of one dimension. One is enough if the lengths determine the others.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of an Array (m·n,), unless both have two dimensions.

    Raises
    ------
    LengthError
        If the sizes do not match.
    ArgumentError
        If the sizes are unknown, or there are more than two dimensions.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.matmul(np.eye(2, dtype=np.float32), np.array([[1, 2], [3, 4]], dtype=np.float32))
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    call = Call("gw.matmul()", device)
    given = {name: call.items(name, value, chunked=True) for name, value in (("a", a), ("b", b))}
    sizes = _matrix_sizes(given, {"m": m, "n": n, "k": k})
    kind, _ = (call.take(name, value, MatMul.datatypes, shape="flat", chunked=True) for name, value in given.items())
    call.check_one_datatype("b", "a")
    primitive = call.primitive(MatMul, kind, **sizes)
    primitive.signature.check_lengths(call.sizes)
    shape = tuple(sizes[size] for name, size in (("a", "m"), ("b", "n")) if given[name].ndim == 2)
    # Arrays of one dimension are matrices row by row, and so is their product.
    flat = call.on_gpu and len(shape) != 2
    given_out = out.ravel() if isinstance(out, Array) and out.shape == shape else out
    call.take_out(primitive, given_out, None if call.on_gpu else shape)
    result = call.results(primitive)["output"]
    if out is not None:
        return out
    if flat or isinstance(result, ChunkedArray):
        return result
    return result.reshape(shape) if call.on_gpu else result.reshape(shape)[()]


def _matrix_sizes(given: Mapping[str, Any], asked: Mapping[str, int | None]) -> dict[str, int]:
    """Return m, n and k, as matrices and the caller say."""
    sizes = {name: integer(f"gw.matmul(): {name}", size, 0) for name, size in asked.items() if size is not None}
    said = {name: f"{name}={size}" for name, size in sizes.items()}
    for name, matrix in given.items():
        if isinstance(matrix, Items) and matrix.ndim == 1:
            continue
        if matrix.ndim not in (1, 2):
            raise ArgumentError(
                f"matmul: {name} has shape {matrix.shape}; it takes matrices and vectors: multiply stacks one by one"
            )
        # A vector has k items.
        names = _MATRICES[name] if matrix.ndim == 2 else ("k",)
        for size, length in zip(names, matrix.shape, strict=True):
            if sizes.setdefault(size, length) != length:
                raise LengthError(
                    f"matmul: {name} has shape {matrix.shape}, so that {size} is {length}, but {said[size]}; "
                    f"a is (m, k), b is (k, n)"
                )
            said.setdefault(size, f"{name} has shape {matrix.shape}, where it is {length}")
        if matrix.ndim == 1:
            sizes.setdefault("m" if name == "a" else "n", 1)
    # What one size and an Array's length tell of the other.
    for name in ("a", "b", "a"):
        for known, wanted in (_MATRICES[name], _MATRICES[name][::-1]):
            if wanted not in sizes and sizes.get(known):
                if given[name].size % sizes[known]:
                    raise LengthError(
                        f"matmul: {name} has {given[name].size} items, which is not a multiple of "
                        f"{known}={sizes[known]}"
                    )
                sizes[wanted] = given[name].size // sizes[known]
    missing = [f"{name}=" for name in asked if name not in sizes]
    if missing:
        raise ArgumentError(
            f"matmul: an Array of one dimension holds a matrix row by row; give {', '.join(missing)} (a is m × k, b is "
            f"k × n), or reshape it"
        )
    return sizes
