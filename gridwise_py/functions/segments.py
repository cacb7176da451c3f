"""One-shot functions of segments: reductions and scans by key or by offsets, and repeated values.

With numpy arrays the results are numpy arrays, cut to what there is. With an Array or an expression of Arrays they are
Arrays on the GPU; where only the GPU knows their length they carry their count, and nothing is read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError, LimitError
from ..primitives import ReduceByKey, Repeat, ScanByKey, SegmentedReduce, SegmentedScan, SegmentedSort, SegmentedTopK
from ..primitives.engines.segments import KEY_DATATYPES
from ..primitives.fusion import EXPRESSIONS
from ..primitives.reduce_axis import one_axis
from ..primitives.scan import ScanKind
from ..primitives.top_k import SEGMENT_MOST, TopKMode
from ..runtime.array import Array, asarray, empty
from ..runtime.host_items import cast_items, extremes
from ..types.datatype import DATATYPES, ITEM_DATATYPES, VALUE_DATATYPES, Datatype
from ..types.expression import Expression
from ..types.operators import Add, BinOpLike
from .arguments import REMEDIES, Call, HostItems, index_array, index_words
from .arrays import full, take
from .repeated_calls import one_shot
from .sorts import TopItems

#: What the functions take: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Segmentable: TypeAlias = HostItems | Array | Expression
# Kernels work on items of 4 and of 8 bytes.
_WIDENED = {"b": np.uint32, "u": np.uint32, "i": np.int32, "f": np.float32}
_MOST_OFFSET = 1 << 32
_U32 = {"u32": DATATYPES["u32"]}


class ReducedByKey(NamedTuple):
    """What `reduce_by_key` returns."""

    keys: Any
    values: Any


class SegmentedTopItems(NamedTuple):
    """What `segmented_top_k` returns of a number for each segment."""

    values: Any
    indices: Any
    offsets: Any


class _Call(Call):
    """A call whose inputs have one dimension, and lie in segments."""

    def __init__(self, name: str, device: wgpu.GPUDevice | None, shown: Mapping[str, str] | None = None):
        super().__init__(name, device, shown)
        #: Of numpy arrays that were made wider.
        self._dtypes: dict[str, np.dtype[Any]] = {}
        #: Items of the longest one, where the offsets were given in numpy.
        self.longest_segment: int | None = None

    def take_wide(self, name: str, value: Any, known: Mapping[str, Datatype], *, fuses: bool = True) -> Any:
        """Take an input of 4 or 8 bytes; smaller items are read as 4, of an Array with ``fuses`` without a copy.

        Kernels add items, and compare or move all others.
        """
        if isinstance(value, EXPRESSIONS):
            return self.take_expression(name, value)
        items = self.items(name, value, computes=name == "items")
        self.check_dimension(name, items)
        if items.dtype.kind in _WIDENED and items.dtype.itemsize < 4:
            if isinstance(items, Array) and fuses:
                self.sizes[name] = items.size
                return self.take_expression(name, items)
            if isinstance(items, np.ndarray):
                self._dtypes[name] = items.dtype.newbyteorder("=")
                items = cast_items(items, _WIDENED[items.dtype.kind])
        return self.hold(name, items, value, known)

    def narrow(self, name: str, items: Any) -> Any:
        """Return a result in numpy in the dtype that an argument had before it was made wider."""
        return items if self.on_gpu or name not in self._dtypes else cast_items(items, self._dtypes[name])

    def take_offsets(self, offsets: Any, items: int | None) -> int:
        """Take offsets; return the number of segments."""
        offsets = index_words(self.name, "offsets", offsets)
        if isinstance(offsets, np.ndarray):
            offsets = _check_offsets(self.name, offsets, items)
            self.longest_segment = int(np.diff(offsets).max(initial=0)) if offsets.ndim == 1 else None
        self.take("offsets", offsets, _U32, fuses=False)
        if self.sizes["offsets"] == 0:
            raise LengthError(f"{self}: offsets has no items; for no segments give [0]")
        return self.sizes["offsets"] - 1


def _check_offsets(call: str, offsets: np.ndarray, items: int | None) -> np.ndarray:
    """Return offsets as u32.

    Raises
    ------
    ArgumentError
        If they fall, or do not lie within the items.
    """
    if offsets.ndim == 1 and offsets.size:
        least, most = map(int, extremes(offsets))
        if least < 0 or most >= _MOST_OFFSET or (items is not None and most > items):
            has = "fewer than 2^32" if items is None else f"{items}"
            raise ArgumentError(f"{call}: offsets are from {least} to {most}, but there are {has} items")
        falls = np.flatnonzero(offsets[1:] < offsets[:-1])
        if falls.size:
            k = int(falls[0])
            raise ArgumentError(
                f"{call}: offsets[{k + 1}]={offsets[k + 1]} is below offsets[{k}]={offsets[k]}; segments follow one "
                f"another, so offsets must not fall"
            )
    return cast_items(offsets, np.uint32)


@one_shot(REMEDIES)
def reduce_by_key(
    keys: Segmentable, x: Segmentable, op: BinOpLike = Add, *, size: int | None = None, deterministic: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> ReducedByKey:  # fmt: skip
    """Combine the items of each run of equal keys.

    Parameters
    ----------
    keys : numpy.ndarray, Array or expression
        Equal keys that are not neighbours make several runs: `sort_pairs` brings them together.
    x : numpy.ndarray, Array or expression
    op : BinOp or str, default Add
        Integers wrap, unlike those of `sum`: take 8 bytes where sums need them.
    size : int, optional
        The runs that there is room for on the GPU; by default all.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter; see `ReduceByKey`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    ReducedByKey
        ``keys`` and ``values``; values, and keys in Arrays, are of at least 4 bytes.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> keys = np.array([7, 7, 7, 2, 2], dtype=np.uint32)
    >>> gw.reduce_by_key(keys, np.arange(5, dtype=np.float32))
    ReducedByKey(keys=array([7, 2], dtype=uint32), values=array([3., 7.], dtype=float32))
    """
    call = _Call("gw.reduce_by_key()", device)
    kinds = call.take_wide("keys", keys, KEY_DATATYPES), call.take_wide("items", x, ITEM_DATATYPES)
    call.check_lengths()
    outputs = call.results(call.primitive(ReduceByKey, *kinds, op, size=size, deterministic=deterministic))
    return ReducedByKey(call.narrow("keys", outputs["output_keys"]), outputs["output_values"])


@one_shot(REMEDIES)
def scan_by_key(
    keys: Segmentable, x: Segmentable, op: BinOpLike = Add, kind: ScanKind = "inclusive", *,
    deterministic: bool = False, device: wgpu.GPUDevice | None = None,
) -> Any:  # fmt: skip
    """Return the prefix sums of each run of equal keys.

    Parameters
    ----------
    keys, x, op, deterministic, device
        As for `reduce_by_key`.
    kind : {"inclusive", "exclusive"}

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> keys = np.array([7, 7, 7, 2, 2], dtype=np.uint32)
    >>> gw.scan_by_key(keys, np.ones(5, dtype=np.int32), kind="exclusive")
    array([0, 1, 2, 0, 1], dtype=int32)
    """
    call = _Call("gw.scan_by_key()", device)
    kinds = call.take_wide("keys", keys, KEY_DATATYPES), call.take_wide("items", x, ITEM_DATATYPES)
    call.check_lengths()
    return call.results(call.primitive(ScanByKey, *kinds, op, kind, deterministic=deterministic))["output"]


@one_shot(REMEDIES)
def segmented_reduce(
    x: Segmentable, offsets: HostItems | Array | None = None, op: BinOpLike = Add, *, length: int | None = None,
    deterministic: bool = False, device: wgpu.GPUDevice | None = None,
) -> Any:  # fmt: skip
    """Combine the items of each segment.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
    offsets : numpy.ndarray or Array, optional
        Integers that do not fall; segment s is ``x[offsets[s]:offsets[s + 1]]``. An Array is read as u32 and not
        checked: others give undefined results, within the arrays.
    op : BinOp or str, default Add
        Integers wrap, as in `reduce_by_key`.
    length : int, optional
        The items of each segment, in place of `offsets`.
    deterministic : bool, default False
        For floats: the same bits on every run and adapter; see `SegmentedReduce`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of at least 4 bytes; of no items the operator's identity.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.segmented_reduce(np.arange(5, dtype=np.int32), [0, 3, 3, 5])
    array([3, 0, 7], dtype=int32)
    """
    call = _Call("gw.segmented_reduce()", device)
    kind = call.take_wide("items", x, ITEM_DATATYPES)
    if (offsets is None) == (length is None):
        raise ArgumentError(f"{call} needs either offsets or length=, which say where the segments are")
    if offsets is not None:
        call.take_offsets(offsets, call.sizes.get("items"))
    primitive = call.primitive(SegmentedReduce, kind, op, length=length, deterministic=deterministic)
    return call.results(primitive)["output"]


@one_shot(REMEDIES)
def segmented_scan(
    x: Segmentable, offsets: HostItems | Array, op: BinOpLike = Add, kind: ScanKind = "inclusive", *,
    deterministic: bool = False, device: wgpu.GPUDevice | None = None,
) -> Any:  # fmt: skip
    """Return the prefix sums of each segment.

    Parameters
    ----------
    x, offsets, op, deterministic, device
        As for `segmented_reduce`.
    kind : {"inclusive", "exclusive"}

    Returns
    -------
    numpy.ndarray or Array
        Items in no segment are unspecified.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.segmented_scan(np.ones(5, dtype=np.int32), [0, 3, 3, 5])
    array([1, 2, 3, 1, 2], dtype=int32)
    """
    call = _Call("gw.segmented_scan()", device)
    of = call.take_wide("items", x, ITEM_DATATYPES)
    call.take_offsets(offsets, call.sizes.get("items"))
    return call.results(call.primitive(SegmentedScan, of, op, kind, deterministic=deterministic))["output"]


@one_shot(REMEDIES)
def segmented_sort(
    x: Segmentable, offsets: HostItems | Array | None = None, *, length: int | None = None, descending: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:  # fmt: skip
    """Sort the items of each segment; stable.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
    offsets : numpy.ndarray or Array, optional
        As for `segmented_reduce`.
    length : int, optional
        The items of each segment; the last one has the rest.
    descending : bool, default False
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Items in no segment are unspecified.

    Notes
    -----
    Offsets in numpy tell how long the longest segment is, which saves dispatches where it is short. Of those in an
    Array nothing is known before they are used; `SegmentedSort` takes ``longest=``.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.segmented_sort(np.array([3, 1, 2, 9, 7]), [0, 3, 5])
    array([1, 2, 3, 7, 9])
    """
    return _segmented_sort("gw.segmented_sort()", x, None, offsets, length, descending, device)["output_keys"]


@one_shot(REMEDIES)
def segmented_sort_pairs(
    keys: Segmentable, values: Segmentable, offsets: HostItems | Array | None = None, *,
    length: int | None = None, descending: bool = False, device: wgpu.GPUDevice | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Sort the pairs of each segment by key; stable.

    Parameters
    ----------
    keys : numpy.ndarray, Array or expression
    values : numpy.ndarray, Array or expression
        Of 4 or 8 bytes.
    offsets, length, descending, device
        As for `segmented_sort`.

    Returns
    -------
    tuple of numpy.ndarray or of Array
        Keys and values.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> keys, values = gw.segmented_sort_pairs(np.array([3, 1, 2, 9, 7]), np.arange(5), length=3)
    >>> values
    array([1, 2, 0, 4, 3])
    """
    call = "gw.segmented_sort_pairs()"
    if cast(Any, values) is None:
        raise DatatypeError(f"{call}: values is None, but must be one for each key; gw.segmented_sort sorts keys alone")
    outputs = _segmented_sort(call, keys, values, offsets, length, descending, device)
    return outputs["output_keys"], outputs["output_values"]


def _segmented_sort(
    call: str, keys: Any, values: Any, offsets: Any, length: int | None, descending: bool,
    device: wgpu.GPUDevice | None,
) -> dict[str, Any]:  # fmt: skip
    made = _Call(call, device, {} if values is not None else {"keys": "x"})
    kind = made.take("keys", keys)
    if isinstance(values, EXPRESSIONS):
        values = asarray(values, device)
    value_kind = None if values is None else made.take("values", values, VALUE_DATATYPES)
    made.check_lengths()
    if (offsets is None) == (length is None):
        raise ArgumentError(f"{call} needs either offsets or length=, which say where the segments are")
    if offsets is not None:
        made.take_offsets(offsets, made.sizes.get("keys"))
    options: dict[str, Any] = {"length": length, "descending": bool(descending)}
    primitive = made.primitive(SegmentedSort, kind, value_kind, **options)
    longest = made.longest_segment
    if longest is not None and longest <= primitive.most:
        # One value, not that of these offsets: so that all such calls have the same kernels.
        primitive = made.primitive(SegmentedSort, kind, value_kind, longest=primitive.most, **options)
    return made.results(primitive)


@one_shot({"largest": "give mode='largest' or mode='smallest'"})
def segmented_top_k(
    x: Segmentable, offsets: HostItems | Array, k: int | HostItems | Array, *, mode: TopKMode = "largest",
    sorted: bool = True, size: int | None = None, device: wgpu.GPUDevice | None = None,
) -> TopItems | SegmentedTopItems:  # fmt: skip
    """Return the k largest or smallest items of each segment, and their indices.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
    offsets : numpy.ndarray or Array
        As for `segmented_reduce`.
    k : int, or numpy.ndarray or Array of integers
        From 0 to 1,024, for all segments or for each; larger numbers of an Array count as 1,024.
    mode : {"largest", "smallest"}, default "largest"
    sorted : bool, default True
        Whether the best item comes first. Otherwise they are in the order of their indices.
    size : int, optional
        With an Array `k`: the results that there is room for. Others are left out.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    TopItems
        ``values`` and ``indices`` in the segment, shape (segments, k). In short segments other values are 0, other
        indices −1 (in Arrays 2³² − 1).
    SegmentedTopItems
        Of several `k` in one dimension, with the ``offsets`` of each segment's results; they carry their count with an
        Array `k`.

    Notes
    -----
    Of equal items the first ones are chosen, and come first; a NaN is chosen after every number, in both modes. See
    `SegmentedTopK`; for rows of one length `top_k` with two dimensions.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.segmented_top_k(np.array([3, 9, 2, 9, 5], dtype=np.uint32), [0, 4, 4, 5], 2)
    TopItems(values=array([[9, 9],
           [0, 0],
           [5, 0]], dtype=uint32), indices=array([[ 1,  3],
           [-1, -1],
           [ 0, -1]]))
    >>> gw.segmented_top_k(np.array([3, 9, 2, 9, 5], dtype=np.uint32), [0, 4, 4, 5], [1, 1, 2])
    SegmentedTopItems(values=array([9, 5], dtype=uint32), indices=array([1, 0]), offsets=array([0, 1, 1, 2]))
    """
    call = _Call("gw.segmented_top_k()", device, {"input": "x", "ks": "k"})
    kind = call.take("input", x)
    segments = call.take_offsets(offsets, call.sizes.get("input"))
    if isinstance(k, Array) or np.ndim(cast(Any, k)):
        return _ragged_top_k(call, kind, k, segments, size, mode=mode, sorted=bool(sorted))
    if size is not None:
        raise ArgumentError(f"{call}: size= is for a k for each segment, on the GPU; leave it out")
    k = call.integer("k", k, 0)
    primitive = call.primitive(SegmentedTopK, kind, k, mode=mode, sorted=bool(sorted))
    values, indices = (each.reshape(segments, k) for each in call.results(primitive).values())
    if isinstance(indices, Array):
        return TopItems(values, indices)
    return TopItems(values, indices.view(np.int32).astype(np.intp))


def _ragged_top_k(call: _Call, kind: Any, k: Any, segments: int, size: int | None, **options: Any) -> SegmentedTopItems:
    """Return the best items of each segment, as many as a number of its own says."""
    if isinstance(k, Array):
        if size is None:
            raise ArgumentError(
                f"{call} needs size=, the results that there is room for: only the GPU knows the sum of k"
            )
        total, room, k = None, call.integer("size", size, 0), index_words(call.name, "k", k)
    elif size is not None:
        raise ArgumentError(f"{call}: size= is for a k on the GPU; leave it out")
    else:
        k = index_array(call.name, "k", k)
        if k.size and not 0 <= k.min() <= k.max() <= SEGMENT_MOST:
            raise LimitError(
                f"{call}: k is from {k.min()} to {k.max()}, but must be from 0 to {SEGMENT_MOST}; for more, sort the "
                f"segments"
            )
        room, total, given = int(k.sum()), None, call.arrays["offsets"]
        if isinstance(given, np.ndarray) and k.shape == (segments,):
            room = total = int(np.minimum(k, np.diff(given.astype(np.int64))).sum())
        k = k.astype(np.uint32)
    call.take("ks", k, _U32, fuses=False)
    if call.sizes["ks"] != segments:
        raise LengthError(
            f"{call}: k has {call.sizes['ks']} items, but there are {segments} segments; give one for each"
        )
    found = call.run(call.primitive(SegmentedTopK, kind, None, size=max(room, 1), **options))
    values, indices, starts = found["values"][:room], found["indices"][:room], found["starts"]
    is_counted = total is None or any(
        each.count is not None for each in call.arrays.values() if isinstance(each, Array)
    )
    if is_counted:
        values, indices = (each.counted_by(starts[segments:]) for each in (values, indices))
    return SegmentedTopItems(call.result(values), call.result(indices, np.intp), call.result(starts, np.intp))


@one_shot()
def repeat(
    x: Segmentable,
    repeats: int | HostItems | Array,
    axis: int | None = None,
    *,
    size: int | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Repeat each item.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        An expression of one dimension; with items of 4 or 8 bytes, or of 1 or 2 if `repeats` is on the host.
    repeats : int, or numpy.ndarray or Array of integers
        For all items, or for each; an Array is read as u32.
    axis : int, optional
        Of several dimensions only with `repeats` on the host.
    size : int, optional
        The items that there is room for, which an Array `repeats` needs.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        An Array carries its count where `repeats` is an Array, or `x` does.

    Raises
    ------
    DatatypeError
        If `repeats` are no integers.
    ArgumentError
        If one is negative, or they make 2³² items or more.
    AxisError
        If `axis` is out of range.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.repeat(np.array([7, 8, 9], dtype=np.int32), [2, 0, 3])
    array([7, 7, 9, 9, 9], dtype=int32)
    """
    call = _Call("gw.repeat()", device, {"values": "x", "counts": "repeats"})
    size = None if size is None else call.integer("size", size, 0)
    items = call.items("values", x, fuses=True)
    ndim = 1 if isinstance(items, EXPRESSIONS) else items.ndim
    if axis is not None:
        along = one_axis(call.name, axis, ndim)
        if ndim > 1:
            return _repeat_along(call.name, items, repeats, along, size, device)
    if isinstance(x, Array) and x.datatype.itemsize_bytes < 4 and x.count is None and not isinstance(repeats, Array):
        return _repeat_along(call.name, x.ravel(), repeats, 0, size, device)
    kind = call.take_wide("values", x if ndim == 1 else cast(Any, items).ravel(), ITEM_DATATYPES, fuses=False)
    length = call.sizes.get("values")
    if isinstance(repeats, Array):
        if size is None:
            raise ArgumentError(
                f"{call} needs size=, the items that there is room for: only the GPU knows the sum of repeats"
            )
        total, counts = None, index_words(call.name, "repeats", repeats)
    else:
        counts = index_array(call.name, "repeats", repeats)
        if length is None and counts.ndim == 0:
            raise ArgumentError(f"{call}: repeats is one number, and x an expression; store it with gw.asarray()")
        counts, total = _counted(call.name, counts, counts.size if length is None else length)
        if call.on_gpu and counts.size == 1 and length is not None and length > 1:
            counts = full(length, int(counts.item()), "u32", call.device)
        else:
            counts = np.broadcast_to(counts, (counts.size if length is None else length,))
    call.take("counts", counts, _U32)
    call.check_lengths()
    room = (total or 0) if size is None else size
    primitive = call.primitive(Repeat, kind, size=max(room, 1))
    if not call.on_gpu:
        return call.narrow("values", call.results(primitive)["output"])[:room]
    given = (array for array in call.arrays.values() if isinstance(array, Array))
    if total is None or any(array.count is not None for array in given):
        found = call.run(primitive)["output"]
        return found if room else found[:0]
    # The host knows how long the result is, so it is an Array without a count.
    output = empty(primitive.size, primitive.datatype, call.device)
    call.run(primitive, output=output)
    return output[: min(total, room)]


def _counted(call: str, counts: np.ndarray, length: int) -> tuple[np.ndarray, int]:
    """Return counts on the host as u32, one for all items or one for each, and how many items they make."""
    if counts.ndim > 1:
        raise ArgumentError(f"{call}: repeats has shape {counts.shape}, but must have one dimension")
    if counts.size not in (1, length):
        raise LengthError(f"{call}: x has {length} items, repeats has {counts.size}; give one for each, or one number")
    least, most = map(int, extremes(counts)) if counts.size else (0, 0)
    if least < 0:
        raise ArgumentError(f"{call}: repeats must be integers of at least 0, not {least}")
    # The sum of uint64 may wrap, but not of numbers that are checked before.
    total = most if most >= _MOST_OFFSET else int(counts.sum(dtype=np.uint64))
    total *= length if counts.size == 1 else 1
    if total >= _MOST_OFFSET:
        raise ArgumentError(f"{call}: repeats make {total} items or more, but fewer than 2^32 are made at once")
    return cast_items(counts, np.uint32).reshape(-1), total


def _repeat_along(
    call: str, items: Any, repeats: Any, axis: int, size: int | None, device: wgpu.GPUDevice | None
) -> Any:
    """Return an array of several dimensions repeated along one of them."""
    if isinstance(repeats, (Array, *EXPRESSIONS)):
        raise ArgumentError(
            f"{call}: x has shape {items.shape}, and only the GPU knows its length along axis {axis} after that; give "
            f"repeats.to_numpy()"
        )
    if size is not None:
        raise ArgumentError(f"{call}: size= is for repeats on the GPU; leave it out")
    length = items.shape[axis]
    counts, _ = _counted(call, index_array(call, "repeats", repeats), length)
    return take(items, np.repeat(np.arange(length, dtype=np.uint32), counts), axis, device=device)


@one_shot(REMEDIES)
def segment_ids(offsets: HostItems | Array, *, size: int | None = None, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the number of each item's segment: the rows of a CSR matrix as those of a COO matrix.

    Parameters
    ----------
    offsets : numpy.ndarray or Array
        As for `segmented_reduce`, from 0 on.
    size : int, optional
        An Array needs it.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of intp for numpy, of u32 with its count for an Array.

    Examples
    --------
    >>> import gridwise_py as gw
    >>> gw.segment_ids([0, 3, 3, 5])
    array([0, 0, 0, 2, 2])
    """
    call = _Call("gw.segment_ids()", device)
    size = None if size is None else call.integer("size", size, 0)
    if isinstance(offsets, Array):
        if size is None:
            raise ArgumentError(f"{call} needs size=, the number of items: only the GPU knows the last offset")
        room = size
    else:
        items: np.ndarray = index_array(call.name, "offsets", offsets)
        if items.size and items.ravel()[0] != 0:
            raise ArgumentError(f"{call}: offsets begins with {items.ravel()[0]}, but must begin with 0")
        room = int(items.max()) if items.size and size is None else size or 0
    call.take_offsets(offsets, None)
    primitive = call.primitive(Repeat, None, size=max(room, 1), by="offsets")
    return call.result(call.run(primitive)["output"], np.intp)
