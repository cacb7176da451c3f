"""Primitives on dask arrays of one dimension, and on series of dask.dataframe.

Every function builds a graph and computes nothing. The bits of a result depend on the values, the chunks, `split_every`
and the options, never on which worker did what or died. Across vendors of GPUs that needs ``deterministic=True`` for
float sums.
"""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from .. import STORAGE_DATATYPES, Add, BinOp, Datatype, Max, Min, Multiply
from ..errors import ArgumentError, AxisError, DatatypeError, LengthError, LimitError
from ..internals import ITEM_DATATYPES, as_datatype, integer
from . import chunks, splitters
from .chunks import How
from .graph import TREE_WIDTH, Graph, Key, blocks
from .worker import what_gpus_take

_Op: TypeAlias = BinOp | Literal["add", "multiply", "min", "max"]

#: A sort on one GPU takes fewer keys than this.
_MOST_SORTED = 1 << 30
_MOST_GROUPS = 1 << 24
_UNASKED_BYTES = 64 << 20
#: One GPU sorts so much faster than several do after they have exchanged their pieces.
_TOGETHER_BYTES = 128 << 20
#: Of chunks whose lengths are not known: at least so many groups of parts, or one for so many parts.
_UNKNOWN_GROUPS, _UNKNOWN_PARTS = 16, 4
#: Tasks of a graph that the scheduler handles in a minute or two.
_MOST_PIECES = 1 << 18


# ---- what is taken


def _take(call: str, x: Any, name: str = "x", known: Mapping[str, Datatype] = STORAGE_DATATYPES) -> da.Array:
    """Return an argument as a dask array of one dimension, of a datatype that is known."""
    array = name
    if not isinstance(x, da.Array) and hasattr(x, "to_dask_array") and getattr(x, "ndim", None) == 1:
        # Lengths stay unknown: Dask counts partitions that it fuses later.
        x, array = x.to_dask_array(), f"{name}.to_dask_array(lengths=True)"
    if not isinstance(x, da.Array):
        raise ArgumentError(
            f"{call}: {name} is {type(x).__name__}, but must be a dask array or a series of dask.dataframe; "
            f"dask.array.from_array({name}, chunks=10**7) makes one of a numpy array"
        )
    if x.ndim != 1:
        raise ArgumentError(f"{call}: {name} has shape {x.shape}, but must have one dimension; give {name}.ravel()")
    if x.dtype.kind == "O":
        codes = f"dask.array.unique({array}, return_inverse=True)[1]"
        raise DatatypeError(f"{call}: {name} is of Python objects; give their ranks: {codes}")
    as_datatype(x.dtype, known, convert=f"{name}.astype(np.{{}})")
    return x


def _lengths(x: da.Array) -> tuple[int, ...] | None:
    """Return the lengths of the chunks; None where they are not known."""
    sizes = x.chunks[0]
    return None if any(np.isnan(size) for size in sizes) else tuple(int(size) for size in sizes)


def _check_chunks(call: str, x: da.Array, *, itemsize_bytes: int | None = None, sorts: bool = False) -> None:
    """Raise LimitError for chunks that no GPU of the cluster has room for, where their lengths are known."""
    sizes = _lengths(x)
    if not sizes:
        return
    largest = sorted(sizes)[-1]
    item_bytes = itemsize_bytes or x.dtype.itemsize
    limits = []
    if sorts:
        limits.append((_MOST_SORTED - 1, f"a sort takes fewer than {_MOST_SORTED} keys"))
    if largest * item_bytes > _UNASKED_BYTES:
        _, most_bytes = what_gpus_take(ask=True)
        limits.append((most_bytes // item_bytes, f"a GPU of the cluster has room for chunks of {most_bytes} bytes"))
    for most, why in limits:
        if largest > most:
            raise LimitError(
                f"{call}: a chunk has {largest} items of {item_bytes} bytes, but {why}; give x.rechunk({most})"
            )


def _kind_of_sum(dtype: np.dtype) -> np.dtype:
    """Return what numpy adds up in."""
    return np.sum(np.empty(0, dtype)).dtype


# ---- reductions


def reduce(
    x: Any,
    op: _Op = "add",
    *,
    deterministic: bool = False,
    compensated: bool = False,
    split_every: int = TREE_WIDTH,
) -> da.Array:
    """Combine all items.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension, of any datatype of `gw.reduce`.
    op : BinOp or {"add", "multiply", "min", "max"}, default "add"
        Associative. Chunks are combined from left to right, so it need not commute.
    deterministic, compensated : bool, default False
        As in `gw.reduce`.
    split_every : int, default 16
        How many chunks' results a task combines.

    Returns
    -------
    dask.array.Array
        Without dimensions, of the dtype of `x`: integers wrap. `sum` and `prod` widen as numpy's do.

    Raises
    ------
    EmptyReductionError
        When it is computed, of no items without an identity.
    """
    return _reduce("gwd.reduce()", x, op, None, deterministic, compensated, split_every)


def sum(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    split_every: int | None = None,
    deterministic: bool = False,
    compensated: bool = False,
) -> da.Array:
    """Return the sum of all items, in the dtype of numpy's sum unless one is given; see `reduce`."""
    x, dtype = _widen("gwd.sum()", x, axis, dtype)
    return _reduce("gwd.sum()", x, Add, dtype, deterministic, compensated, split_every, keepdims)


def prod(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    split_every: int | None = None,
    deterministic: bool = False,
) -> da.Array:
    """Return the product of all items, in the dtype of numpy's product unless one is given; see `reduce`."""
    x, dtype = _widen("gwd.prod()", x, axis, dtype)
    return _reduce("gwd.prod()", x, Multiply, dtype, deterministic, False, split_every, keepdims)


def min(x: Any, axis: int | None = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Return the least item; NaN if there is one; see `reduce`."""
    _check_axis("gwd.min()", axis)
    return _reduce("gwd.min()", x, Min, None, False, False, split_every, keepdims)


def max(x: Any, axis: int | None = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Return the greatest item; NaN if there is one; see `reduce`."""
    _check_axis("gwd.max()", axis)
    return _reduce("gwd.max()", x, Max, None, False, False, split_every, keepdims)


def _check_axis(call: str, axis: Any) -> None:
    if axis not in (None, 0, -1):
        raise AxisError(f"{call}: axis={axis!r}, but x has one dimension; give 0, or nothing")


def _widen(call: str, x: Any, axis: Any, dtype: Any) -> tuple[da.Array, np.dtype]:
    """Return the items and the dtype that they are added up in, as numpy does: converted before, if it is another."""
    _check_axis(call, axis)
    x = _take(call, x, known=ITEM_DATATYPES)
    usual = _kind_of_sum(x.dtype)
    wanted = usual if dtype is None else np.dtype(dtype)
    return (x if wanted in (usual, x.dtype) else x.astype(wanted)), wanted


def _reduce(
    call: str,
    x: Any,
    op: _Op,
    dtype: np.dtype | None,
    deterministic: bool,
    compensated: bool,
    split_every: int | None,
    keepdims: bool = False,
) -> da.Array:
    x = _take(call, x, known=ITEM_DATATYPES)
    width = TREE_WIDTH if split_every is None else integer("split_every", split_every, 2)
    _check_chunks(call, x)
    of: np.dtype = x.dtype if dtype is None else dtype
    how = chunks.Combination(BinOp.find(op), of, deterministic, compensated)
    graph = Graph("reduce", [x], how, width)
    parts = graph.each("part", partial(chunks.reduced, how=how), blocks(x), on_gpu=True)
    last = graph.tree("combine", partial(chunks.reduced_parts, how=how), parts, width=width, on_gpu=True)
    graph.add("", partial(chunks.result, how=how), last, on_gpu=True)
    found: Any = graph.scalar(of)
    return found.reshape(1) if keepdims else found


# ---- scans


def scan(
    x: Any,
    op: _Op = "add",
    kind: Literal["inclusive", "exclusive"] = "inclusive",
    *,
    deterministic: bool = False,
    compensated: bool = False,
    keep: bool = False,
) -> da.Array:
    """Return all prefix results under `op`: every chunk is reduced, then scanned from what comes before it.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension, of any datatype of `gw.scan`. Chunks that lie on GPUs (`on_gpu`) are not uploaded twice.
    op : BinOp or {"add", "multiply", "min", "max"}, default "add"
        Associative; it need not commute.
    kind : {"inclusive", "exclusive"}
    deterministic, compensated : bool, default False
        As in `gw.scan`.
    keep : bool, default False
        Whether the chunks of the result stay on the GPUs, as Arrays.

    Returns
    -------
    dask.array.Array
        With the chunks and the dtype of `x`: integers wrap. `cumsum` widens as numpy's does.
    """
    return _scan("gwd.scan()", x, op, kind, None, deterministic, compensated, keep)


def cumsum(
    x: Any,
    axis: int | None = None,
    dtype: Any = None,
    *,
    deterministic: bool = False,
    compensated: bool = False,
    keep: bool = False,
) -> da.Array:
    """Return the sums of all items up to each, in the dtype of numpy's cumsum unless one is given; see `scan`."""
    x, dtype = _widen("gwd.cumsum()", x, axis, dtype)
    return _scan("gwd.cumsum()", x, Add, "inclusive", dtype, deterministic, compensated, keep)


def cumprod(
    x: Any, axis: int | None = None, dtype: Any = None, *, deterministic: bool = False, keep: bool = False
) -> da.Array:
    """Return the products of all items up to each, in the dtype of numpy's cumprod unless one is given; see `scan`."""
    x, dtype = _widen("gwd.cumprod()", x, axis, dtype)
    return _scan("gwd.cumprod()", x, Multiply, "inclusive", dtype, deterministic, False, keep)


def _scan(
    call: str,
    x: Any,
    op: _Op,
    kind: str,
    dtype: np.dtype | None,
    deterministic: bool,
    compensated: bool,
    keep: bool,
) -> da.Array:
    x = _take(call, x, known=ITEM_DATATYPES)
    if kind not in ("inclusive", "exclusive"):
        raise ArgumentError(f"{call}: kind={kind!r} is unknown; known are inclusive and exclusive")
    of: np.dtype = x.dtype if dtype is None else dtype
    _check_chunks(call, x, itemsize_bytes=of.itemsize if keep else None)
    how = chunks.Combination(BinOp.find(op), of, deterministic, compensated)
    graph = Graph("scan", [x], how, kind, keep)
    keys = blocks(x)
    totals = graph.each("total", partial(chunks.reduced, how=how), keys[:-1], on_gpu=True)
    before = graph.add("carries", partial(chunks.carries, how=how), totals, on_gpu=True)
    scanned = partial(chunks.scanned, how=how, kind=kind, keep=keep)
    graph.each("", scanned, keys, [before] * len(keys), range(len(keys)), on_gpu=True)
    return graph.array(x.chunks[0], of)


# ---- sorts


def sort(x: Any, axis: int = -1, *, stable: bool | None = None, descending: bool = False) -> da.Array:
    """Return a sorted copy, like numpy's stable sort: NaN last, −0 equal to 0.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension, of any datatype of `gw.sort`; chunks of fewer than 2^30 items.
    axis : int, default -1
        The one that there is.
    stable : bool, optional
        As numpy has it; every sort here is stable.
    descending : bool, default False
        Largest first. Equal items keep their order, and NaN comes last in both directions.

    Returns
    -------
    dask.array.Array
        With the chunks of `x`, exactly, however often an item occurs.
    """
    _check_axis("gwd.sort()", axis)
    return _sort("gwd.sort()", [_take("gwd.sort()", x)], "keys", descending)[0]


def sort_pairs(keys: Any, values: Any, *, descending: bool = False) -> tuple[da.Array, da.Array]:
    """Return sorted copies of `keys` and `values`, ordered by key; stable.

    Parameters
    ----------
    keys, values : dask.array.Array or series of dask.dataframe
        As many items each. Keys as for `sort`; values of 4 or 8 bytes.
    descending
        As for `sort`.

    Returns
    -------
    tuple of dask.array.Array
        With the chunks of `keys`.
    """
    call = "gwd.sort_pairs()"
    keys, values = _match(call, keys, values)
    if as_datatype(values.dtype, STORAGE_DATATYPES).itemsize_bytes < 4:
        raise DatatypeError(
            f"{call}: values are of {values.dtype}, but must be of 4 or 8 bytes; convert them, for example "
            f"values.astype('float32')"
        )
    return _sort(call, [keys, values], "pairs", descending)  # pyright: ignore[reportReturnType]


def argsort(x: Any, axis: int = -1, *, stable: bool | None = None, descending: bool = False) -> da.Array:
    """Return the indices that would sort `x`, like numpy's stable argsort; of uint64, with the chunks of `x`.

    Parameters
    ----------
    x, axis, stable, descending
        As for `sort`.
    """
    _check_axis("gwd.argsort()", axis)
    return _sort("gwd.argsort()", [_take("gwd.argsort()", x)], "indices", descending)[1]


def _match(call: str, keys: Any, values: Any) -> tuple[da.Array, da.Array]:
    """Return two arrays as dask arrays whose chunks belong together."""
    keys, values = _take(call, keys, "keys"), _take(call, values, "values")
    key_sizes, value_sizes = _lengths(keys), _lengths(values)
    if key_sizes is not None and value_sizes is not None:
        if keys.size != values.size:
            raise LengthError(f"{call}: {keys.size} keys, but {values.size} values; give as many")
        if keys.size == 0:  # which rechunk() leaves as it is
            values = da.zeros(0, chunks=(key_sizes,), dtype=values.dtype)
        return keys, values if key_sizes == value_sizes else values.rechunk((key_sizes,))
    if keys.numblocks != values.numblocks:
        raise LengthError(
            f"{call}: {keys.numblocks[0]} chunks of keys, but {values.numblocks[0]} of values, whose lengths are not "
            f"known; take both from one table, or call compute_chunk_sizes() on them"
        )
    return keys, values


def _sort(
    call: str, inputs: list[da.Array], what: Literal["keys", "pairs", "indices"], descending: bool
) -> tuple[da.Array, ...]:
    x, sizes = inputs[0], _lengths(inputs[0])
    keys = blocks(x)
    dtypes = [x.dtype, *([np.dtype(np.uint64)] if what == "indices" else [each.dtype for each in inputs[1:]])]
    # Indices are widened at the end: they cross to a GPU and back as they are.
    held = [*dtypes[:1], *([_index_dtype(sizes)] if what == "indices" else dtypes[1:])]
    _check_chunks(call, x, itemsize_bytes=sorted(dtype.itemsize for dtype in dtypes)[-1], sorts=True)
    ends = _groups(call, x, sizes, [dtype.itemsize for dtype in held])
    graph = Graph(f"sort-{what}", inputs, descending, ends)
    apart = len(ends) > 1
    runs = _runs(graph, what, inputs, sizes, {"in_order": apart, "descending": descending}, held[-1])
    counts = _sizes(graph, keys, sizes)
    found = _exchange(graph, runs, counts, sizes, ends, descending) if apart else [runs]
    merge = partial(chunks.merged, dtypes=dtypes, descending=descending)
    begins = [0, *ends[:-1]]
    parts: list[Key] = []
    for group, whole in enumerate(graph.each("merge", merge, found, on_gpu=True)):
        mine = range(begins[group], ends[group])
        own = counts[mine.start : mine.stop]
        parts += [graph.add("part", chunks.part, whole, own, i - mine.start, index=(i,)) for i in mine]
    names = ("sorted", "values")[: len(dtypes)]
    for number, name in enumerate(names):
        graph.each(name, partial(_column, number), parts)
    return tuple(graph.array(x.chunks[0], dtype, step=name) for name, dtype in zip(names, dtypes, strict=True))


def _least(*numbers: int) -> int:
    return sorted(numbers)[0]  # min() is a function of this module


def _most(*numbers: int) -> int:
    return sorted(numbers)[-1]


def _index_dtype(sizes: tuple[int, ...] | None) -> np.dtype:
    return np.dtype(np.uint64 if sizes is None or np.sum(sizes) >= 1 << 32 else np.uint32)


def _groups(call: str, x: da.Array, sizes: tuple[int, ...] | None, itemsizes: list[int]) -> list[int]:
    """Return where groups of parts end: one GPU sorts a group at once, and all GPUs have one at least."""
    parts = x.numblocks[0]
    items = 0 if sizes is None else int(np.sum(sizes))
    gpus, most_bytes = what_gpus_take(ask=sizes is None or items * x.dtype.itemsize > _UNASKED_BYTES)
    if sizes is None:
        count = _least(parts, _most(gpus, _UNKNOWN_GROUPS, -(-parts // _UNKNOWN_PARTS)))
        ends = [parts * (i + 1) // count for i in range(count)]
    else:
        most = _least(_MOST_SORTED - 1, most_bytes // _most(*itemsizes))
        wanted = gpus if items * np.sum(itemsizes) > _TOGETHER_BYTES else 1
        count = _most(1, _least(parts, _most(wanted, -(-items // most))))
        ends = _ends_of_groups(sizes, -(-items // count), most)
    if parts * len(ends) > _MOST_PIECES:
        raise LimitError(
            f"{call}: {parts} chunks, of which each gives a piece to {len(ends)} groups of parts, but at most "
            f"{_MOST_PIECES} pieces can be exchanged; {_fewer(x, sizes)}"
        )
    return ends


def _ends_of_groups(sizes: Sequence[int], wanted: int, most: int) -> list[int]:
    """Return where groups of parts end that have about as many items as wanted, and no more than a sort takes."""
    ends: list[int] = []
    items = passed = 0
    for i, size in enumerate(sizes):
        middle = passed + size // 2 > wanted * (len(ends) + 1)
        if items and (items + size > most or middle):
            ends.append(i)
            items = 0
        items += size
        passed += size
    return [*ends, len(sizes)]


def _fewer(x: da.Array, sizes: tuple[int, ...] | None) -> str:
    if sizes is None:
        return "make the partitions larger, for example by repartition(npartitions=…)"
    return f"give x.rechunk({2 * -(-x.size // x.numblocks[0])}) or larger chunks"


def _sizes(graph: Graph, keys: Sequence[Key], sizes: tuple[int, ...] | None) -> list[Any]:
    """Return the lengths of the chunks, or the tasks that count them."""
    return list(sizes) if sizes is not None else graph.each("size", _size, keys)


def _column(number: int, found: Any) -> np.ndarray:
    return found[number]


def _size(chunk: chunks.Chunk) -> int:
    return int(chunk.size)


def _runs(
    graph: Graph,
    what: str,
    inputs: list[da.Array],
    sizes: tuple[int, ...] | None,
    options: dict[str, Any],
    index_dtype: np.dtype,
) -> list[Key]:
    """Add the upload of each chunk, and its sort where parts of it go to several groups."""
    lists: list[Sequence[Any]] = [blocks(x) for x in inputs]
    if what != "indices":
        return graph.each("run", partial(chunks.held, **options), *lists, on_gpu=True)
    first = graph.add("first", chunks.offsets, _sizes(graph, blocks(inputs[0]), sizes))
    count = len(lists[0])
    function = partial(chunks.held_with_indices, dtype=index_dtype, **options)
    return graph.each("run", function, *lists, [first] * count, range(count), on_gpu=True)


def _exchange(
    graph: Graph,
    runs: Sequence[Key],
    sizes: list[Any],
    known: tuple[int, ...] | None,
    ends: list[int],
    descending: bool,
) -> list[list[Key]]:
    """Add the search for the cuts of sorted chunks; return the pieces of each group."""
    count = len(runs)
    state = graph.add("search", splitters.search, sizes, ends[:-1])
    sample = partial(chunks.sampled_keys, descending=descending)
    for number in range(splitters.rounds(count, count * _MOST_SORTED if known is None else int(np.sum(known)))):
        samples = graph.each(f"sample-{number}", sample, runs, [state] * count, range(count), on_gpu=True)
        state = graph.add(f"narrow-{number}", splitters.narrowed, state, samples)
    table = graph.add("cuts", splitters.cuts, state)
    return [
        [graph.add("piece", chunks.piece, run, table, i, group, index=(i, group)) for i, run in enumerate(runs)]
        for group in range(len(ends))
    ]


# ---- small results of large data


def histogram(
    x: Any,
    bins: int | Sequence[float] | np.ndarray = 10,
    range: tuple[float, float] | None = None,
    *,
    edges: Sequence[float] | np.ndarray | None = None,
    split_every: int = TREE_WIDTH,
) -> da.Array:
    """Return how many items are in each bin, by numpy's rule: the last bin has both its edges, NaN is in none.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension: bool, integers or floats.
    bins : int or sequence of numbers, default 10
        How many bins of the same width, or the edges, which ascend.
    range : tuple of two numbers, optional
        Where the first bin begins and the last one ends. By default the least and the greatest item, which takes two
        more passes.
    edges : sequence of numbers, optional
        The edges, in place of `bins` and `range`.
    split_every : int, default 16
        How many chunks' counts a task adds up.

    Returns
    -------
    dask.array.Array
        Shape (bins,), of int64.
    """
    call = "gwd.histogram()"
    if edges is not None and range is not None:
        raise ArgumentError(f"{call}: edges say where bins begin and end; give either edges= or range=")
    x, width = _take(call, x), integer("split_every", split_every, 2)
    _check_chunks(call, x)
    given = edges if edges is not None else bins if np.ndim(bins) else None
    count = None if given is not None else integer("bins", bins, 1)
    limits = _limits(call, given, range)
    graph = Graph("histogram", [x], count, None if limits is None else limits.tolist(), width)
    keys = blocks(x)
    between: Any = graph.add("limits", np.array, limits.tolist(), limits.dtype) if limits is not None else None
    if between is None:
        between = _found_range(graph, x, keys, width)
    length = count if count is not None else len(limits) - 1 if limits is not None else 0
    counted = partial(chunks.counted, bins=count, dtype=x.dtype)
    parts = graph.each("part", counted, keys, [between] * len(keys), on_gpu=True)
    graph.add("", chunks.totalled, graph.tree("total", chunks.totalled, parts, width=width), index=(0,))
    return graph.array((length,), np.dtype(np.int64))


def _limits(call: str, given: Any, range: tuple[float, float] | None) -> np.ndarray | None:
    """Return the edges, or the two limits of bins of the same width; None where the items have to tell."""
    if given is not None:
        found = np.asarray(given)
        if found.ndim != 1 or found.size < 2 or not np.all(found[:-1] <= found[1:]):
            raise ArgumentError(f"{call}: edges must be two or more numbers that ascend")
        return found
    if range is None:
        return None
    found = np.asarray(range)
    if found.shape != (2,) or found.dtype.kind not in "iuf" or not (np.isfinite(found).all() and found[0] <= found[1]):
        raise ArgumentError(f"{call}: range={range!r} must be two finite numbers that ascend")
    return found


def _found_range(graph: Graph, x: da.Array, keys: Sequence[Key], width: int) -> Key:
    """Add the search for the least and the greatest item."""
    ends: list[Key] = []
    for name, op in (("least", Min), ("greatest", Max)):
        how = chunks.Combination(op, x.dtype)
        found = graph.each(name, partial(chunks.reduced, how=how), keys, on_gpu=True)
        combine = partial(chunks.reduced_parts, how=how)
        found = graph.tree(f"{name}-of", combine, found, width=width, on_gpu=True)
        ends.append(graph.add(f"{name}-all", combine, found, on_gpu=True))
    return graph.add("limits", chunks.checked_range, *ends)


def groupby(
    keys: Any, values: Any, how: How, *, max_groups: int = _MOST_GROUPS, split_every: int = TREE_WIDTH
) -> Delayed:
    """Aggregate the values of each key.

    Parameters
    ----------
    keys, values : dask.array.Array or series of dask.dataframe
        As many items each.
    how : {"sum", "min", "max", "count", "mean"}
    max_groups : int, default 2^24
        The most groups there may be: all come together on one worker.
    split_every : int, default 16
        How many chunks' groups a task merges.

    Returns
    -------
    dask.delayed.Delayed
        Of a tuple of numpy arrays: keys in their order, and of each the aggregate. Sums are in the dtype of numpy's,
        least and greatest values in that of `values`, counts of int64, means of float64.

    Raises
    ------
    LimitError
        When it is computed, for more groups.
    """
    call = "gwd.groupby()"
    if how not in ("sum", "min", "max", "count", "mean"):
        raise ArgumentError(f"{call}: how={how!r} is unknown; known are sum, min, max, count, mean")
    keys, values = _match(call, keys, values)
    for each in (keys, values):
        _check_chunks(call, each)
    width = integer("split_every", split_every, 2)
    options = {"how": how, "max_groups": integer("max_groups", max_groups, 1)}
    graph = Graph("groupby", [keys, values], how, max_groups, width)
    parts = graph.each("part", partial(chunks.grouped, **options), blocks(keys), blocks(values), on_gpu=True)
    merge = partial(chunks.merged_groups, **options)
    parts = graph.tree("merge", merge, parts, width=width, on_gpu=True)
    last = graph.add("merge-all", merge, parts, on_gpu=True)
    graph.add("", partial(chunks.grouped_result, how=how, dtype=values.dtype), [last])
    return graph.delayed()


def top_k(
    x: Any, k: int, *, mode: Literal["largest", "smallest"] = "largest", split_every: int = TREE_WIDTH
) -> tuple[da.Array, da.Array]:
    """Return the k largest or smallest items, best first, and their indices.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension.
    k : int
        From 1 to the length of `x`. All chunks' best items pass through one worker, `split_every` chunks at a time.
    mode : {"largest", "smallest"}
    split_every : int, default 16

    Returns
    -------
    values, indices : dask.array.Array
        Shape (k,); indices of uint64. Of equal items the first ones, NaN after every number.

    Raises
    ------
    LengthError
        If there are fewer than k items; when it is computed, where lengths are not known.
    """
    call = "gwd.top_k()"
    x, k, width = _take(call, x), integer("k", k, 1), integer("split_every", split_every, 2)
    if mode not in ("largest", "smallest"):
        raise ArgumentError(f"{call}: mode={mode!r} is unknown; known are largest and smallest")
    _check_chunks(call, x)
    sizes, keys = _lengths(x), blocks(x)
    if sizes is not None and k > x.size:
        raise LengthError(f"{call}: k={k}, but x has {x.size} items; give a smaller k")
    graph = Graph("top-k", [x], k, mode, width)
    first = graph.add("first", chunks.offsets, _sizes(graph, keys, sizes))
    options = {"k": k, "mode": mode}
    found = graph.each(
        "part", partial(chunks.first_best, **options), keys, [first] * len(keys), range(len(keys)), on_gpu=True
    )
    found = graph.tree("best", partial(chunks.best_of, **options), found, width=width, on_gpu=True)
    best = graph.add("last", partial(chunks.best_of, **options, last=True), found, on_gpu=True)
    for number, name in enumerate(("values", "indices")):
        graph.each(name, partial(_column, number), [best])
    return graph.array((k,), x.dtype, step="values"), graph.array((k,), np.dtype(np.uint64), step="indices")


def unique(x: Any, *, split_every: int = TREE_WIDTH) -> da.Array:
    """Return the distinct items in their order, like numpy's unique: one NaN at most.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension. The distinct items have to fit one worker.
    split_every : int, default 16
        How many chunks' distinct items a task merges.

    Returns
    -------
    dask.array.Array
        Of one chunk, whose length is known when it is computed.
    """
    call = "gwd.unique()"
    x, width = _take(call, x), integer("split_every", split_every, 2)
    _check_chunks(call, x)
    graph = Graph("unique", [x], width)
    parts = graph.each("part", chunks.distinct, blocks(x), on_gpu=True)
    parts = graph.tree("merge", chunks.distinct_parts, parts, width=width, on_gpu=True)
    graph.each("", chunks.distinct_parts, [parts], on_gpu=True)
    return graph.array((np.nan,), x.dtype)


# ---- chunks that stay on the GPUs


def on_gpu(x: Any) -> da.Array:
    """Return an array whose chunks are Arrays on the workers' GPUs; ``on_gpu(x).persist()`` serves many calls.

    Parameters
    ----------
    x : dask.array.Array or series of dask.dataframe
        Of one dimension.

    Returns
    -------
    dask.array.Array
        For the functions of this module. A chunk that is fetched by a client becomes a numpy array.
    """
    x = _take("gwd.on_gpu()", x, known=ITEM_DATATYPES)
    _check_chunks("gwd.on_gpu()", x)
    graph = Graph("on-gpu", [x])
    graph.each("", chunks.uploaded, blocks(x), on_gpu=True)
    return graph.array(x.chunks[0], x.dtype)


def to_host(x: da.Array) -> da.Array:
    """Return an array whose chunks are numpy arrays again, for functions of Dask."""
    x = _take("gwd.to_host()", x, known=ITEM_DATATYPES)
    graph = Graph("to-host", [x])
    graph.each("", chunks.host, blocks(x))
    return graph.array(x.chunks[0], x.dtype)
