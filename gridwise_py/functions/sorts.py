"""One-shot sorts, of keys, of pairs, and of indices; partitions, and the k best items.

A result has the type of the input: numpy array, Array or ChunkedArray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, DatatypeError, LengthError
from ..primitives import ArgSort, MergeSort, Sort, SortPairs
from ..primitives.engines.merge_order import Less
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.nth_element import MOST_PLACES, NthElement
from ..primitives.reduce_axis import one_axis
from ..primitives.top_k import TopK, TopKMode
from ..runtime.array import Array, asarray, empty
from ..runtime.chunked_array import ChunkedArray
from ..types.datatype import VALUE_DATATYPES
from ..types.expression import Expression
from ..types.options import integer, one_of
from ..types.program import Flat
from .arguments import REMEDIES, Call, HostItems, argument_array, deliver, numpy_result
from .arrays import take, zeros
from .families import family
from .orders import make_row_places, sort_rows, with_last, with_last_at
from .repeated_calls import one_shot
from .signatures import ArgSortCall, SortCall, SortKind, SortPairsCall, typed_as
from .stacks import join

_KINDS = get_args(SortKind)


@typed_as(SortCall)
@one_shot(REMEDIES)
def sort(
    x: Any,
    axis: int | None = -1,
    kind: SortKind | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
    less: Less | None = None,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return a sorted copy; stable.

    Parameters
    ----------
    x : numpy.ndarray or Array
        With `less` of one dimension, of u32, i32, f32, or structs of these. Of dates and durations, which lie on the
        host, NaT comes last.
    axis : int, default -1
        The last one is fastest.
    kind, stable : optional
        Every sort here is stable.
    order : None
        Records need `less`.
    descending : bool, default False
        Largest first. Equal items keep their order, and NaN comes last in both directions.
    less : callable, optional
        Another order: a function of two items that says whether the first goes before the second, as in `MergeSort`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of `x`, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the shape and datatype of `x`.

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    AxisError
        If `axis` is out of range.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.sort(np.array([3.0, np.nan, 1.0], dtype=np.float32))
    array([ 1.,  3., nan], dtype=float32)
    >>> gw.sort(np.array([3, 1, 2]), descending=True)
    array([3, 2, 1])
    """
    call = "gw.sort()"
    check_kind(call, kind, order, _KINDS)
    items, along = along_one(call, x, axis)
    if along is not None and less is not None:
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, but with less= it works along one dimension; for all items give "
            f"axis=None, and for rows call it once for each"
        )
    if along is not None:
        return deliver(call, _sort_along(call, items, along, device, descending=descending, indices=False), out)
    made = Call(call, device)
    primitive: MergeSort | Sort
    if less is not None:
        kind = made.take("input", items, MergeSort.datatypes, chunked=True)
        primitive = made.primitive(MergeSort, kind, descending=descending, less=less)
    else:
        kind = made.take("input", items, Sort.datatypes, chunked=True)
        primitive = made.primitive(Sort, kind, descending=descending)
    made.take_out(primitive, out)
    return made.results(primitive)["output"]


def check_kind(call: str, kind: Any, order: Any, known: Sequence[str]) -> None:
    """Check arguments of numpy that change nothing: every sort is stable, and none of records."""
    if kind is not None and kind not in [word[0] for word in known]:  # numpy takes first letters
        one_of(f"{call}: kind", kind, known)
    if order is not None:
        raise ArgumentError(f"{call}: order={order!r} names fields of records, but numbers are sorted; give one field")


def along_one(call: str, x: Any, axis: Any) -> tuple[Any, int | None]:
    """Return the items of an argument, and the axis along which to work; None where they have one dimension.

    With an axis of None they are all items, in C order.
    """
    if isinstance(x, (*EXPRESSIONS, ChunkedArray)):
        if axis is not None:
            one_axis(call, axis, 1)
        return x, None
    items = x if isinstance(x, Array) else argument_array(call, "x", x)
    if axis is None:
        return (x if items.ndim == 1 else items.ravel()), None
    along = one_axis(call, axis, items.ndim)
    return (x, None) if items.ndim == 1 else (items, along)


def _sort_along(
    call: str, items: Any, axis: int, device: wgpu.GPUDevice | None, *, descending: bool, indices: bool
) -> Any:
    """Return the items of an array of several dimensions in order along an axis, or their indices along it."""
    made = Call(call, device)
    datatype = made.take("x", items, shape="any")
    rows = asarray(with_last(items, axis), made.device)
    if not rows.size:
        found = zeros(rows.shape, "u32", rows.device) if indices else rows.copy()
    else:
        found = sort_rows(rows, datatype, make_row_places(rows) if indices else None, descending=descending)
        found = found.reshape(rows.shape)
    return with_last_at(made.result(found, np.intp if indices else None), axis)


@typed_as(ArgSortCall)
@one_shot(REMEDIES)
def argsort(
    x: Any,
    axis: int | None = -1,
    kind: SortKind | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
    out: Any = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the indices that sort; stable.

    Parameters
    ----------
    x, axis, kind, order, stable, descending
        As for `sort`.
    out : numpy.ndarray or Array, optional
        Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array may be
        an input.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of the shape of `x`: intp for numpy, u32 for an Array.

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    AxisError
        If `axis` is out of range.
    LengthError
        If `out` has another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.argsort(np.array([30, 10, 20], dtype=np.uint32))
    array([1, 2, 0])
    """
    call = "gw.argsort()"
    check_kind(call, kind, order, _KINDS)
    items, along = along_one(call, at_least_1d(call, x), axis)
    if along is not None:
        return deliver(call, _sort_along(call, items, along, device, descending=descending, indices=True), out)
    made = Call(call, device)
    kind = made.take("input", items, ArgSort.datatypes, chunked=True)
    primitive = made.primitive(ArgSort, kind, descending=descending)
    made.take_out(primitive, out, dtype=np.dtype(np.intp))
    result = made.results(primitive)["output"]
    return result if made.on_gpu else result.astype(np.intp, copy=False)


def at_least_1d(call: str, x: Any) -> Any:
    """Return a single item as an array of one, as numpy takes it where it returns indices."""
    if isinstance(x, (*EXPRESSIONS, ChunkedArray)):
        return x
    items = x if isinstance(x, Array) else argument_array(call, "x", x)
    return items.reshape(1) if items.ndim == 0 else x


@typed_as(SortPairsCall)
@one_shot(REMEDIES)
def sort_pairs(
    keys: Any, values: Any, *, descending: bool = False, out: Any = None, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return sorted copies of keys and values, ordered by key; stable.

    Parameters
    ----------
    keys : numpy.ndarray or Array
    values : numpy.ndarray or Array
        Of 4 or 8 bytes.
    descending
        As for `sort`.
    out : tuple of numpy.ndarray or of Array, optional
        For keys and values; in numpy also the inputs.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Keys and values.

    Raises
    ------
    DatatypeError
        For other dtypes; the message names the conversion.
    LengthError
        If keys and values have other lengths, or `out` has.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> keys, values = gw.sort_pairs(np.array([3, 1, 2], dtype=np.uint32), np.array([0.3, 0.1, 0.2], dtype=np.float32))
    >>> keys, values
    (array([1, 2, 3], dtype=uint32), array([0.1, 0.2, 0.3], dtype=float32))
    """
    call = Call("gw.sort_pairs()", device)
    kinds = (
        call.take("keys", keys, SortPairs.datatypes, chunked=True),
        call.take("values", values, VALUE_DATATYPES, fuses=False, chunked=True),
    )
    call.check_lengths()
    primitive = call.primitive(SortPairs, *kinds, descending=descending)
    call.take_out(primitive, out)
    return tuple(call.results(primitive).values())


# ---- the best items, and partitions


#: What the functions take: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Rankable: TypeAlias = HostItems | Array | Expression


class TopItems(NamedTuple):
    """What `top_k` returns."""

    values: Any
    indices: Any


@one_shot({"largest": "give mode='largest' or mode='smallest'"})
def top_k(
    x: Rankable,
    k: int,
    *,
    axis: int = -1,
    mode: TopKMode = "largest",
    sorted: bool = True,
    device: wgpu.GPUDevice | None = None,
) -> TopItems:
    """Return the k largest or smallest items, or those of each row, and their indices.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        An expression has one dimension.
    k : int
        From 0 to n.
    axis : int, default -1
        The last one is fastest.
    mode : {"largest", "smallest"}, default "largest"
    sorted : bool, default True
        Whether the best item comes first. Otherwise they are in the order of their indices.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    TopItems
        ``values`` and ``indices``. Behind those of a counted Array with fewer than k items, 2^32 - 1.

    Raises
    ------
    AxisError
        If `axis` is out of range.
    ArgumentError
        If `mode` is unknown.
    LengthError
        If k is larger than n.

    Notes
    -----
    Of equal items the first ones are chosen, and come first. A NaN is chosen after every number, in both modes. See
    `TopK` for the algorithm, and for ``n=`` on the GPU.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.top_k(np.array([3, 9, 2, 9, 5], dtype=np.uint32), 3)
    TopItems(values=array([9, 9, 5], dtype=uint32), indices=array([1, 3, 4]))
    """
    call = Call("gw.top_k()", device)
    k = call.integer("k", k, 0)
    options: dict[str, Any] = {"mode": mode, "sorted": bool(sorted)}
    if isinstance(x, EXPRESSIONS):
        one_axis(call.name, axis, 1)
        return TopItems(**call.results(call.primitive(TopK, call.take("input", x), k, **options)))
    items = call.items("input", x)
    if items.ndim == 0:
        raise ArgumentError(f"{call}: x is a single item; give an array of one dimension or more")
    axis = one_axis(call.name, axis, items.ndim)
    items = with_last(items, axis)
    shape, length = (*items.shape[:-1], k), items.shape[-1]
    if k > length:
        raise LengthError(
            f"{call}: k={k}, but x has {length} items{' a row' if items.ndim > 1 else ''}; give a smaller k"
        )
    if items.ndim > 1 and length:
        options["row_length"] = length
    kind = call.hold("input", items.reshape(-1) if items.ndim > 1 else items, x, TopK.datatypes)
    values, indices = (
        with_last_at(each if each.shape == shape else each.reshape(shape), axis)
        for each in call.results(call.primitive(TopK, kind, k, **options)).values()
    )
    return TopItems(values, indices if call.on_gpu else indices.astype(np.intp))


@one_shot()
def nth_element(x: Rankable, k: int | Sequence[int] | np.ndarray, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the item at `k` of the sorted ones, or those at several places, without sorting.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        Of any shape and datatype.
    k : int or array_like of int
        On the host, as in ``gw.sort(x)[k]``.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array

    Raises
    ------
    BoundsError
        If `k` is out of range.

    Notes
    -----
    NaN comes last; of −0 and +0, which are equal, +0 is given. The input is read two to four times for every 16
    places, where a sort moves items of 4 bytes nine times; see `NthElement`. If only the GPU knows how many items
    count, `k` counts from the front, and of places behind the last item the last one is given.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([30, 10, 20, 40])
    >>> gw.nth_element(x, 1), gw.nth_element(x, [0, -1])
    (np.int64(20), array([10, 40]))
    """
    call = Call("gw.nth_element()", device)
    kind = call.take("input", x, shape="flat", chunked=True)
    asked = argument_array(call.name, "k", k)
    if asked.dtype.kind not in "iu" and asked.size:
        raise DatatypeError(f"{call}: k={k!r:.60} must be an integer, or several")
    places = asked.reshape(-1).astype(np.int64)
    length = call.sizes.get("input")
    if length is None:  # of an expression
        length = flat_of(x).size
    if any(array.count is not None for array in call.arrays.values() if isinstance(array, Array)):
        least = 0
    else:
        least = -length
    if places.size and not (least <= places.min() and places.max() < length):
        raise BoundsError(f"{call}: k={k!r:.60} must be from {'-n' if least else 0} to n - 1, of n = {length} items")
    found = select_places(call, kind, np.where(places < 0, places + length, places)).reshape(asked.shape)
    return found if call.on_gpu else numpy_result(found.to_numpy())


def select_places(call: Call, kind: Any, places: np.ndarray) -> Array:
    """Return the items that a sort of the call's ``input`` would put at places, in their order, on the GPU.

    `MOST_PLACES` of them take about two and a half reads of the input.
    """
    wanted, where = np.unique(places, return_inverse=True)
    parts = [wanted[k : k + MOST_PLACES].astype(np.uint32) for k in range(0, wanted.size, MOST_PLACES)]
    outputs: list[Array] = []
    for part in parts:
        # One of three numbers of places, for few kernels.
        count = next(each for each in (1, 2, MOST_PLACES) if each >= part.size)
        padded = np.concatenate([part, np.full(count - part.size, part[-1])])
        primitive = call.primitive(NthElement, kind, count)
        outputs.append(call.run(primitive, places=asarray(padded, call.device))["values"])
    if not outputs:
        return empty(0, kind.datatype if isinstance(kind, Flat) else kind, call.device)
    found = join(call.name, outputs, 0) if len(outputs) > 1 else outputs[0]
    if np.array_equal(where, np.arange(where.size)):
        return found[: where.size]
    return cast(Array, take(found, where.astype(np.uint32)))


@family()
def _partitioning(call: str, function: Any, indices: bool = False):
    def partition(
        x: HostItems | Array,
        kth: int | Sequence[int],
        axis: int | None = -1,
        kind: Literal["introselect"] = "introselect",
        order: None = None,
        *,
        device: wgpu.GPUDevice | None = None,
    ) -> np.ndarray | Array:
        """Parameters
        ----------
        x : numpy.ndarray or Array
            Of any shape and datatype.
        kth : int or sequence of int
        axis : int, default -1
        kind, order : optional
            Records are not sorted.
        device : wgpu.GPUDevice, optional
            By default that of `x`, else `default_device()`.

        Returns
        -------
        numpy.ndarray or Array

        Raises
        ------
        BoundsError
            If `kth` is out of range.
        AxisError
            If `axis` is.
        """
        items = at_least_1d(call, x) if indices else x
        _check_partition(call, items, kth, axis, kind, order)
        return function(items, axis, device=device)

    return partition


@_partitioning(sort)
def partition() -> None:
    """Return the items so that the k-th is where a sort puts it, smaller ones before it.

    All items are sorted; `top_k` is faster.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.partition(np.array([3, 1, 2]), 1)
    array([1, 2, 3])
    """


@_partitioning(argsort, indices=True)
def argpartition() -> None:
    """Return indices that partition items at the k-th, as `partition` does: intp for numpy, u32 for an Array.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.argpartition(np.array([3, 1, 2]), 1)
    array([1, 2, 0])
    """


def _check_partition(call: str, x: Any, kth: Any, axis: Any, kind: Any, order: Any) -> None:
    check_kind(call, kind, order, ("introselect",))
    items, along = along_one(call, x, axis)
    if isinstance(items, EXPRESSIONS):
        raise ArgumentError(f"{call}: x is an expression, and a sort moves items; give gw.asarray(x)")
    shape = np.shape(items)
    length = shape[-1 if along is None else along]
    places = argument_array(call, "kth", kth)
    if places.ndim > 1 or places.dtype.kind not in "iu":
        raise DatatypeError(f"{call}: kth={kth!r:.60} must be an integer, or a list of some")
    for each in places.ravel().tolist():
        place = integer(f"{call}: kth", each)
        if length and not -length <= place < length:  # of no items numpy takes any
            raise BoundsError(f"{call}: kth={kth!r} must be from -n to n - 1, of x with n = {length} items")
