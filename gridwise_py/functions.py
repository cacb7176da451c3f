"""One-shot functions: numpy in, numpy out; or Array in, Array out; or ChunkedArray in and out, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import wgpu

from .arguments import Items
from .array import asarray, host_array
from .binop import Add, BinOp, Max, Min, Multiply, as_binop
from .chunked import ChunkedArray
from .context import context_of
from .datatype import VALUE_DATATYPES, as_datatype
from .device import default_device
from .errors import ArgumentError, BufferUsageError, LengthError
from .primitive import Primitive
from .primitives import ArgSort, MatMul, Reduce, Scan, Sort, SortPairs, VectorAdd
from .primitives.matmul import matrix_size

__all__ = ["add", "argsort", "cumsum", "matmul", "max", "min", "prod", "reduce", "scan", "sort", "sort_pairs", "sum"]

P = TypeVar("P", bound=Primitive)


def _device_of(*values: Any, device: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice:
    devices = {id(v.device): v.device for v in values if isinstance(v, Items)}
    if device is not None:
        devices[id(device)] = device
    if len(devices) > 1:
        names = ", ".join(d.adapter.info["device"] for d in devices.values())
        raise BufferUsageError(f"the arguments lie on different devices ({names}); copy them through numpy")
    return next(iter(devices.values()), None) or default_device()


def _primitive(cls: type[P], device: wgpu.GPUDevice, *key: Any, **options: Any) -> P:
    """Return a primitive that is kept with the device, so that a second call finds its pipelines."""
    context = context_of(device)
    with context.lock:
        kept = context.__dict__.setdefault("_functions", {})
        name = (cls, *key, *options.items())
        found = kept.get(name)
        if found is None:
            found = kept[name] = cls(device, *key, **options)
            if len(kept) > 64:
                kept.pop(next(iter(kept)))
        return found


def _run(
    cls: type[P], key: tuple, device: wgpu.GPUDevice | None, inputs: dict[str, Any], **options: Any
) -> tuple[Any, ...]:
    """Return the outputs, as arrays of the inputs' kind."""
    given = {name: value if isinstance(value, Items) else host_array(value) for name, value in inputs.items()}
    # Before anything is uploaded: what cannot be computed with raises here.
    datatype = as_datatype(next(iter(given.values())).dtype, cls.datatypes)
    device = _device_of(*inputs.values(), device=device)
    arrays = {name: v if isinstance(v, ChunkedArray) else asarray(v, device) for name, v in given.items()}
    primitive = _primitive(cls, device, datatype.name, *key, **options)
    with context_of(device).lock:
        outputs = tuple(primitive.execute(**arrays).outputs.values())
        primitive.release()
    on_gpu = any(isinstance(value, Items) for value in inputs.values())
    return outputs if on_gpu else tuple(output.to_numpy() for output in outputs)


def add(a: Any, b: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return ``a + b``; integers wrap.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Shape (n,), of one datatype (u32, i32, f32).
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); an Array where an argument is one.
    """
    return _run(VectorAdd, (), device, {"a": a, "b": b})[0]


def reduce(
    x: Any,
    op: BinOp | str = Add,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine all items of `x`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,).
    op : BinOp or str, default Add
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.

    Raises
    ------
    EmptyReductionError
        For an empty minimum or maximum.
    """
    options = {"deterministic": deterministic, "compensated": compensated}
    (result,) = _run(Reduce, (as_binop(op),), device, {"input": x}, **options)
    return result if isinstance(result, Items) else result[0]


def sum(x: Any, *, deterministic: bool = False, compensated: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the sum of `x` in its own datatype (integers wrap, unlike `numpy.sum`); 0 for no items.

    `deterministic` and `compensated` are those of `Reduce`.
    """
    return reduce(x, Add, deterministic=deterministic, compensated=compensated, device=device)


def prod(x: Any, *, deterministic: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the product of `x` in its own datatype; 1 for no items. `deterministic` is that of `Reduce`."""
    return reduce(x, Multiply, deterministic=deterministic, device=device)


def min(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the smallest item of `x`; NaN if there is one; raises for no items."""
    return reduce(x, Min, device=device)


def max(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the largest item of `x`; NaN if there is one; raises for no items."""
    return reduce(x, Max, device=device)


def scan(
    x: Any,
    op: BinOp | str = Add,
    kind: str = "inclusive",
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return all prefix sums of `x` under `op`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,).
    op : BinOp or str, default Add
    kind : {"inclusive", "exclusive"}
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`.
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    options = {"deterministic": deterministic, "compensated": compensated}
    return _run(Scan, (as_binop(op), kind), device, {"input": x}, **options)[0]


def cumsum(
    x: Any, *, deterministic: bool = False, compensated: bool = False, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the inclusive prefix sums of `x` in its own datatype (integers wrap, unlike `numpy.cumsum`).

    `deterministic` and `compensated` are those of `Scan`.
    """
    return scan(x, Add, "inclusive", deterministic=deterministic, compensated=compensated, device=device)


def sort(x: Any, *, descending: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items of `x` in order, as numpy's stable sort gives them.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32, f32, u64, i64, f64 or f16; it stays as it is.
    descending : bool, default False
        Largest first; equal items keep their order, and NaN comes last in either case.
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    return _run(Sort, (), device, {"input": x}, descending=descending)[0]


def argsort(x: Any, *, descending: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the positions that would sort `x`, as numpy's stable argsort gives them.

    Parameters
    ----------
    x, descending, device
        As for `sort`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), of numpy's index type for numpy, of u32 for an Array.
    """
    (result,) = _run(ArgSort, (), device, {"input": x}, descending=descending)
    return result if isinstance(result, Items) else result.astype(np.intp)


def sort_pairs(keys: Any, values: Any, *, descending: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return `keys` in order, and each key's value along with it.

    Parameters
    ----------
    keys : numpy.ndarray or Array
        Shape (n,); as for `sort`.
    values : numpy.ndarray or Array
        Shape (n,), of any datatype of 4 or 8 bytes.
    descending, device
        As for `sort`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Keys and values, shape (n,) each.
    """
    dtype = values.dtype if isinstance(values, Items) else np.asarray(values).dtype
    value_datatype = as_datatype(dtype, VALUE_DATATYPES)
    return _run(SortPairs, (value_datatype.name,), device, {"keys": keys, "values": values}, descending=descending)


def matmul(
    a: Any,
    b: Any,
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
        Of f32 or f16. Numpy: shapes (m, k) and (k, n); a vector is a row of `a`, or a column of `b`, as in
        `numpy.matmul`. An Array has one dimension: its matrix lies in it row by row.
    m, n, k : int, optional
        Sizes, for Arrays. One is enough where the lengths tell the others.
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy.ndarray or Array
        Shape (m, n), without the dimensions that vectors lack; an Array of shape (m·n,) where an argument is one.

    Raises
    ------
    LengthError
        If the sizes do not fit each other.
    ArgumentError
        If they are not known, or there are more than two dimensions.
    """
    given = {name: value if isinstance(value, Items) else host_array(value) for name, value in {"a": a, "b": b}.items()}
    sizes = _matrix_sizes(given, {"m": m, "n": n, "k": k})
    items = {name: value if isinstance(value, Items) else value.reshape(-1) for name, value in given.items()}
    (result,) = _run(MatMul, (), device, items, **sizes)
    if isinstance(result, Items):
        return result
    shape = [sizes[size] for name, size in (("a", "m"), ("b", "n")) if given[name].ndim == 2]
    return result.reshape(shape)[()]


_MATRICES = {"a": ("m", "k"), "b": ("k", "n")}


def _matrix_sizes(given: Mapping[str, Any], asked: Mapping[str, int | None]) -> dict[str, int]:
    """Return m, n and k, as matrices and the caller say."""
    sizes = {name: matrix_size(name, size) for name, size in asked.items() if size is not None}
    said = {name: f"{name}={size}" for name, size in sizes.items()}
    for name, matrix in given.items():
        if isinstance(matrix, Items):
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
                        f"matmul: {name} has {given[name].size} items, which are no rows and columns with "
                        f"{known}={sizes[known]}"
                    )
                sizes[wanted] = given[name].size // sizes[known]
    missing = [f"{name}=" for name in asked if name not in sizes]
    if missing:
        raise ArgumentError(f"matmul: an Array has one dimension; give {', '.join(missing)} (a is m × k, b is k × n)")
    return sizes
