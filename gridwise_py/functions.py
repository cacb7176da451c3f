"""One-shot functions: numpy in, numpy out; or Array in, Array out; or ChunkedArray in and out, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import wgpu
from numpy.typing import NDArray

from .call_errors import explained
from .errors import ArgumentError, BufferUsageError, DatatypeError, LengthError
from .primitives import ArgSort, MatMul, Reduce, Scan, Sort, SortPairs, VectorAdd
from .primitives.base import Primitive
from .primitives.matmul import matrix_size
from .primitives.scan import ScanKind
from .runtime.array import Array, asarray, host_array
from .runtime.chunked_array import ChunkedArray, Items, ItemsT
from .runtime.context import context_of
from .runtime.device import default_device
from .types.datatype import VALUE_DATATYPES, Datatype, as_datatype
from .types.operators import Add, BinOpLike, Max, Min, Multiply, as_binop

__all__ = ["add", "argsort", "cumsum", "matmul", "max", "min", "prod", "reduce", "scan", "sort", "sort_pairs", "sum"]

PrimitiveT = TypeVar("PrimitiveT", bound=Primitive)
ScalarT = TypeVar("ScalarT", bound=np.number[Any])
SecondT = TypeVar("SecondT", bound=np.generic)


class _SupportsArray(Protocol):
    """What numpy makes an array of without a copy of each item: a pandas Series, a torch tensor of the CPU."""

    def __array__(self) -> np.ndarray: ...


_Number: TypeAlias = float | np.number[Any] | np.bool_
#: One dimension or more on the host. A number is none.
HostItems: TypeAlias = np.ndarray | _SupportsArray | Sequence[_Number] | Sequence[Sequence[_Number]]

_ONE_DIMENSION = "it works along the one dimension of {x}"
_ROWS = "; for rows, call it once for each, or use numpy; for all items give {x}.ravel()"
_STABLE = "every sort here is stable; leave it out"
# What numpy's functions take and these do not.
_REMEDIES = {
    "axis": _ONE_DIMENSION + _ROWS,
    "axes": _ONE_DIMENSION + _ROWS,
    "keepdims": _ONE_DIMENSION + "; leave it out",
    "dtype": "results are in the datatype of {x}; convert it first, for example with {x}.astype(np.float32)",
    "out": "make the primitive (gw.Reduce, gw.Scan, gw.Sort …) once, and call its execute(…, output=an_array)",
    "initial": "combine it with the result",
    "where": "choose the items first: {x}[mask]",
    "kind": _STABLE,
    "stable": _STABLE,
    "order": "it sorts numbers; for records, use gw.argsort of a field",
}


def _device_of(*values: Any, device: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice:
    devices = {id(v.device): v.device for v in values if isinstance(v, Items)}
    if device is not None:
        devices[id(device)] = device
    if len(devices) > 1:
        names = ", ".join(d.adapter.info["device"] for d in devices.values())
        raise BufferUsageError(f"the arguments lie on different devices ({names}); copy them through numpy")
    return next(iter(devices.values()), None) or default_device()


def _primitive(cls: type[PrimitiveT], device: wgpu.GPUDevice, *key: Any, **options: Any) -> PrimitiveT:
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


def _host_array(call: str, name: str, value: Any) -> np.ndarray:
    """Return what numpy makes of an argument."""
    try:
        return host_array(value)
    except DatatypeError:
        raise  # it has masked items
    except ValueError as error:
        raise ArgumentError(
            f"{call}: numpy makes no array of {name} ({error}); give one array of one dimension"
        ) from error


def _check_dimension(call: str, name: str, items: np.ndarray, others: Mapping[str, Any]) -> None:
    """Raise where an argument is a single number, or has several dimensions."""
    if items.ndim == 1:
        return
    if items.ndim == 0:
        item = items.item()
        other, like = next(((o, value) for o, value in others.items() if np.ndim(value) == 1), ("", None))
        if like is None:
            remedy = "give an array of one dimension"
        elif isinstance(like, Items):
            remedy = f"nothing is broadcast here; give np.full({other}.size, {item!r}, {other}.dtype)"
        else:
            remedy = f"nothing is broadcast here; give np.full_like({other}, {item!r})"
        raise ArgumentError(f"{call}: {name} is a single item ({item!r}) and no array; {remedy}")
    raise ArgumentError(
        f"{call}: {name} has shape {items.shape}, but {call} works along one dimension, and has no axis= yet; for all "
        f"items give {name}.ravel(); for rows, call it once for each, or use numpy"
    )


def _datatype_of(call: str, name: str, value: Any, dtype: np.dtype, known: Mapping[str, Datatype]) -> Datatype:
    """Return an argument's datatype; raise with what its kind of data is converted with."""
    made = ""
    if isinstance(value, Items):
        convert = f"gw.asarray({name}.to_numpy().astype(np.{{}}))"
    elif hasattr(value, "astype"):
        convert = f"{name}.astype(np.{{}})"
    else:  # a list, a range, a tensor
        convert, made = f"np.asarray({name}, dtype=np.{{}})", f"numpy makes {dtype} of this {type(value).__name__}; "
    try:
        return as_datatype(dtype, known, convert=convert)
    except DatatypeError as error:
        raise DatatypeError(f"{call}: {name}: {made}{error}") from None


def _run(
    call: str,
    cls: type[Primitive],
    key: tuple[Any, ...],
    device: wgpu.GPUDevice | None,
    inputs: dict[str, Any],
    **options: Any,
) -> tuple[Any, ...]:
    """Return the outputs, as arrays of the inputs' kind."""
    given: dict[str, Any] = {}
    # Before anything is uploaded: what cannot be computed with raises here.
    for name, value in inputs.items():
        shown = "x" if name == "input" else name
        given[name] = value if isinstance(value, Items) else _host_array(call, shown, value)
        if not isinstance(value, Items):
            _check_dimension(call, shown, given[name], inputs)
    first = next(iter(inputs))
    shown = "x" if first == "input" else first
    datatype = _datatype_of(call, shown, inputs[first], given[first].dtype, cls.datatypes)
    device = _device_of(*inputs.values(), device=device)
    primitive = _primitive(cls, device, datatype.name, *key, **options)
    for name, items in given.items():
        wanted = primitive.signature.datatype(name)
        if not isinstance(items, Items) and wanted is not None and items.dtype != wanted.dtype:
            raise DatatypeError(
                f"{call}: {name} is of {items.dtype}, but {first} of {datatype} (numpy {datatype.numpy_name}); "
                f"convert one of the two, for example with np.asarray({name}, dtype=np.{wanted.numpy_name}) where that "
                f"loses nothing"
            )
    arrays = {name: v if isinstance(v, ChunkedArray) else asarray(v, device) for name, v in given.items()}
    # Bound, not executed: the primitive is kept, and must not keep the caller's arrays.
    outputs = tuple(primitive.bind(**arrays).execute().outputs.values())
    on_gpu = any(isinstance(value, Items) for value in inputs.values())
    return outputs if on_gpu else tuple(output.to_numpy() for output in outputs)


@overload
def add(a: ItemsT, b: ItemsT | HostItems, *, device: wgpu.GPUDevice | None = None) -> ItemsT: ...
@overload
def add(a: HostItems, b: ItemsT, *, device: wgpu.GPUDevice | None = None) -> ItemsT: ...
@overload
def add(a: NDArray[ScalarT], b: HostItems, *, device: wgpu.GPUDevice | None = None) -> NDArray[ScalarT]: ...
@overload
def add(a: HostItems, b: HostItems, *, device: wgpu.GPUDevice | None = None) -> NDArray[Any]: ...
@explained(_REMEDIES)
def add(a: Any, b: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return ``a + b``, item by item; integers wrap, as in numpy.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Shape (n,), both in one datatype: u32, i32 or f32 (numpy uint32, int32, float32). Nothing is broadcast: for a
        number c give ``np.full_like(a, c)``.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); an Array where an argument is one.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 3], dtype=np.int32)
    >>> gw.add(x, np.full_like(x, 10))
    array([11, 12, 13], dtype=int32)
    """
    return _run("gw.add()", VectorAdd, (), device, {"a": a, "b": b})[0]


@overload
def reduce(
    x: Items,
    op: BinOpLike = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Array: ...
@overload
def reduce(
    x: NDArray[ScalarT],
    op: BinOpLike = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ScalarT: ...
@overload
def reduce(
    x: HostItems,
    op: BinOpLike = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> np.number[Any]: ...
@explained(_REMEDIES)
def reduce(
    x: Any,
    op: BinOpLike = Add,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Combine all items of `x`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Other dtypes are refused, with the conversion
        that there is; see Notes.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.

    Raises
    ------
    DatatypeError
        For another dtype.
    ArgumentError
        For a single number, or more than one dimension.
    EmptyReductionError
        For an empty minimum or maximum.

    Notes
    -----
    The result has the dtype of `x`: sums and products of integers wrap modulo 2**32, where numpy widens to 64 bits.
    Where they may get larger than that, reduce ``x.astype(np.float32)`` with ``compensated=True`` (24 bits of the sum
    are right), or let numpy do it.

    Lists of Python numbers, and ``np.arange(10)``, are of int64 or float64: convert them with
    ``np.asarray(x, dtype=np.int32)``, say.
    """
    return _reduce("gw.reduce()", x, op, device, deterministic=deterministic, compensated=compensated)


def _reduce(call: str, x: Any, op: BinOpLike, device: wgpu.GPUDevice | None, **options: bool) -> Any:
    (result,) = _run(call, Reduce, (as_binop(op),), device, {"input": x}, **options)
    return result if isinstance(result, Items) else result[0]


@overload
def sum(
    x: Items, *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> Array: ...
@overload
def sum(
    x: NDArray[ScalarT], *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> ScalarT: ...
@overload
def sum(
    x: HostItems, *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> np.number[Any]: ...
@explained(_REMEDIES)
def sum(x: Any, *, deterministic: bool = False, compensated: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the sum of `x` in its own datatype (integers wrap, unlike `numpy.sum`); 0 for no items.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first: ``x.astype(np.float32)``
        rounds float64 to about 7 digits; ``x.astype(np.int32)`` is right for int64 within ±2**31;
        ``np.asarray(x, dtype=np.int32)`` does it for a list.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; a sum whose error hardly grows with n. See `Reduce`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.

    Notes
    -----
    A sum of u32 or i32 is taken modulo 2**32, where `numpy.sum` widens to 64 bits: three times 2**31 give 2**31. Where
    the sum may be larger, take ``gw.sum(x.astype(np.float32), compensated=True)``, or numpy.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> int(gw.sum(np.arange(10, dtype=np.uint32)))
    45
    >>> int(gw.sum(np.full(3, 2**31, dtype=np.uint32)))
    2147483648
    >>> float(gw.sum(np.full(3, 2**31, dtype=np.float32), compensated=True))
    6442450944.0
    """
    return _reduce("gw.sum()", x, Add, device, deterministic=deterministic, compensated=compensated)


@overload
def prod(x: Items, *, deterministic: bool = ..., device: wgpu.GPUDevice | None = ...) -> Array: ...
@overload
def prod(x: NDArray[ScalarT], *, deterministic: bool = ..., device: wgpu.GPUDevice | None = ...) -> ScalarT: ...
@overload
def prod(x: HostItems, *, deterministic: bool = ..., device: wgpu.GPUDevice | None = ...) -> np.number[Any]: ...
@explained(_REMEDIES)
def prod(x: Any, *, deterministic: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the product of `x` in its own datatype (integers wrap, unlike `numpy.prod`); 1 for no items.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. Products of
        integers are taken modulo 2**32; f32 reaches 3.4e38.
    deterministic : bool, default False
        For floats: the same bits everywhere. See `Reduce`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.
    """
    return _reduce("gw.prod()", x, Multiply, device, deterministic=deterministic)


@overload
def min(x: Items, *, device: wgpu.GPUDevice | None = ...) -> Array: ...
@overload
def min(x: NDArray[ScalarT], *, device: wgpu.GPUDevice | None = ...) -> ScalarT: ...
@overload
def min(x: HostItems, *, device: wgpu.GPUDevice | None = ...) -> np.number[Any]: ...
@explained(_REMEDIES)
def min(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the smallest item of `x`; NaN if there is one; raises for no items.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. (`sort` takes
        numbers of 64 bits, too: its first item is the smallest.)
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.
    """
    return _reduce("gw.min()", x, Min, device)


@overload
def max(x: Items, *, device: wgpu.GPUDevice | None = ...) -> Array: ...
@overload
def max(x: NDArray[ScalarT], *, device: wgpu.GPUDevice | None = ...) -> ScalarT: ...
@overload
def max(x: HostItems, *, device: wgpu.GPUDevice | None = ...) -> np.number[Any]: ...
@explained(_REMEDIES)
def max(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the largest item of `x`; NaN if there is one; raises for no items.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. (`sort` takes
        numbers of 64 bits, too: its last item is the largest.)
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.
    """
    return _reduce("gw.max()", x, Max, device)


@overload
def scan(
    x: ItemsT,
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def scan(
    x: NDArray[ScalarT],
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[ScalarT]: ...
@overload
def scan(
    x: HostItems,
    op: BinOpLike = ...,
    kind: ScanKind = ...,
    *,
    deterministic: bool = ...,
    compensated: bool = ...,
    device: wgpu.GPUDevice | None = ...,
) -> NDArray[Any]: ...
@explained(_REMEDIES)
def scan(
    x: Any,
    op: BinOpLike = Add,
    kind: ScanKind = "inclusive",
    *,
    deterministic: bool = False,
    compensated: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return all prefix sums of `x` under `op`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`; integers
        wrap modulo 2**32.
    op : BinOp or {"add", "multiply", "min", "max"}, default Add
    kind : {"inclusive", "exclusive"}
        Whether item i of the result combines items 0 to i, or 0 to i − 1.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    return _scan("gw.scan()", x, op, kind, device, deterministic=deterministic, compensated=compensated)


def _scan(call: str, x: Any, op: BinOpLike, kind: str, device: wgpu.GPUDevice | None, **options: bool) -> Any:
    return _run(call, Scan, (as_binop(op), kind), device, {"input": x}, **options)[0]


@overload
def cumsum(
    x: ItemsT, *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> ItemsT: ...
@overload
def cumsum(
    x: NDArray[ScalarT], *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> NDArray[ScalarT]: ...
@overload
def cumsum(
    x: HostItems, *, deterministic: bool = ..., compensated: bool = ..., device: wgpu.GPUDevice | None = ...
) -> NDArray[Any]: ...
@explained(_REMEDIES)
def cumsum(
    x: Any, *, deterministic: bool = False, compensated: bool = False, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the inclusive prefix sums of `x` in its own datatype (integers wrap, unlike `numpy.cumsum`).

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32 or f32 (numpy uint32, int32, float32). Convert others first, as for `sum`. Integers wrap
        modulo 2**32, where `numpy.cumsum` widens to 64 bits.
    deterministic, compensated : bool, default False
        For floats: the same bits everywhere; prefix sums whose error hardly grows with n. See `Scan`.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.cumsum(np.array([3, 1, 2], dtype=np.int32))
    array([3, 4, 6], dtype=int32)
    """
    return _scan("gw.cumsum()", x, Add, "inclusive", device, deterministic=deterministic, compensated=compensated)


@overload
def sort(x: ItemsT, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...) -> ItemsT: ...
@overload
def sort(x: NDArray[ScalarT], *, descending: bool = ..., device: wgpu.GPUDevice | None = ...) -> NDArray[ScalarT]: ...
@overload
def sort(x: HostItems, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...) -> NDArray[Any]: ...
@explained(_REMEDIES)
def sort(x: Any, *, descending: bool = False, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items of `x` in order, as numpy's stable sort gives them.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,), of u32, i32, f32, u64, i64, f64 or f16; it stays as it is.
    descending : bool, default False
        Largest first; equal items keep their order, and NaN comes last in either case.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    return _run("gw.sort()", Sort, (), device, {"input": x}, descending=descending)[0]


@overload
def argsort(x: ItemsT, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...) -> ItemsT: ...
@overload
def argsort(x: HostItems, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...) -> NDArray[np.intp]: ...
@explained(_REMEDIES)
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
    (result,) = _run("gw.argsort()", ArgSort, (), device, {"input": x}, descending=descending)
    return result if isinstance(result, Items) else result.astype(np.intp)


@overload
def sort_pairs(
    keys: ItemsT, values: ItemsT | HostItems, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...
) -> tuple[ItemsT, ItemsT]: ...
@overload
def sort_pairs(
    keys: HostItems, values: ItemsT, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...
) -> tuple[ItemsT, ItemsT]: ...
@overload
def sort_pairs(
    keys: NDArray[ScalarT], values: NDArray[SecondT], *, descending: bool = ..., device: wgpu.GPUDevice | None = ...
) -> tuple[NDArray[ScalarT], NDArray[SecondT]]: ...
@overload
def sort_pairs(
    keys: HostItems, values: HostItems, *, descending: bool = ..., device: wgpu.GPUDevice | None = ...
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@explained(_REMEDIES)
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
    call = "gw.sort_pairs()"
    dtype = values.dtype if isinstance(values, Items) else _host_array(call, "values", values).dtype
    value_datatype = _datatype_of(call, "values", values, dtype, VALUE_DATATYPES)
    inputs = {"keys": keys, "values": values}
    return _run(call, SortPairs, (value_datatype.name,), device, inputs, descending=descending)


@overload
def matmul(
    a: ItemsT,
    b: ItemsT | HostItems,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def matmul(
    a: HostItems,
    b: ItemsT,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> ItemsT: ...
@overload
def matmul(
    a: HostItems,
    b: HostItems,
    *,
    m: int | None = ...,
    n: int | None = ...,
    k: int | None = ...,
    device: wgpu.GPUDevice | None = ...,
) -> Any: ...  # two vectors give a number, as in numpy
@explained(_REMEDIES)
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
        By default that of an Array among the arguments, else `default_device()`.

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
    call = "gw.matmul()"
    given = {n: v if isinstance(v, Items) else _host_array(call, n, v) for n, v in {"a": a, "b": b}.items()}
    sizes = _matrix_sizes(given, {"m": m, "n": n, "k": k})
    for name, value in {"a": a, "b": b}.items():
        _datatype_of(call, name, value, given[name].dtype, MatMul.datatypes)
    items = {name: value if isinstance(value, Items) else value.reshape(-1) for name, value in given.items()}
    (result,) = _run(call, MatMul, (), device, items, **sizes)
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
