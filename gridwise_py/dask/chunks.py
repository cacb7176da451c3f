"""What runs on the chunks of a distributed array: numpy arrays or Arrays in. Knows no Dask.

Every function here is pure: a chunk whose worker died is computed again elsewhere, and the bits are the same. The
first argument of each is the device of the worker. Numbers that chunks contribute to a result are arrays of one item,
or of none where a chunk is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from .. import (
    Add,
    Array,
    BinOp,
    Multiply,
    arange,
    asarray,
    count,
    empty,
    group_by,
    histogram,
    reduce,
    scan,
    sort,
    sort_pairs,
    synchronize,
    top_k,
    unique,
)  # fmt: skip
from .. import max as top
from ..errors import LengthError, LimitError
from .shared import host_memory
from .splitters import Search, sampled
from .stages import stage

Chunk: TypeAlias = "np.ndarray | Array"
How = Literal["sum", "min", "max", "count", "mean"]


def host(chunk: Chunk) -> np.ndarray:
    """Return a chunk as a numpy array."""
    if not isinstance(chunk, Array):
        return np.ascontiguousarray(chunk)
    if chunk.ndim != 1 or chunk.count is not None:
        return chunk.to_numpy()
    with stage("download", chunk.nbytes):
        return chunk.to_numpy(out=host_memory.empty(int(chunk.size), chunk.dtype))


def uploaded(device: wgpu.GPUDevice, chunk: Chunk) -> Array:
    """Return a chunk on the GPU."""
    return asarray(chunk if isinstance(chunk, Array) else np.ascontiguousarray(chunk), device)


# ---- reductions and scans


class Combination(NamedTuple):
    """How items are combined, and in which dtype the result is."""

    op: BinOp
    dtype: np.dtype
    deterministic: bool = False
    compensated: bool = False

    @property
    def wide(self) -> np.dtype:
        """The dtype of what chunks contribute: sums of f16 pass 65,504 on the way to a result that does not."""
        is_wide = self.dtype == np.float16 and self.op in (Add, Multiply)
        return np.dtype(np.float32) if is_wide else self.dtype

    @property
    def options(self) -> dict[str, Any]:
        """Options of `reduce` and `scan`."""
        return {"dtype": self.wide, "deterministic": self.deterministic, "compensated": self.compensated}


def reduced(device: wgpu.GPUDevice, chunk: Chunk, *, how: Combination) -> np.ndarray:
    """Return what the items of a chunk combine to."""
    if chunk.size == 0:
        return np.empty(0, how.wide)
    total = cast(Any, reduce(chunk, how.op, device=device, **how.options))
    return host(total).reshape(1) if isinstance(total, Array) else np.array([total], how.wide)


def reduced_parts(device: wgpu.GPUDevice, parts: Sequence[np.ndarray], *, how: Combination) -> np.ndarray:
    """Return what the results of several chunks, in their order, combine to."""
    return reduced(device, np.concatenate(parts), how=how)


def result(device: wgpu.GPUDevice, parts: Sequence[np.ndarray], *, how: Combination) -> np.generic:
    """Return the result of a reduction: of no items the operator's identity.

    Raises
    ------
    EmptyReductionError
        If there are no items, and the operator has no identity.
    """
    items = np.concatenate(parts)
    if items.size == 0:
        return cast(np.generic, reduce(items.astype(how.dtype), how.op, dtype=how.dtype, device=device))
    return _narrowed(reduced(device, items, how=how), how.dtype)[0]


def _narrowed(items: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):  # infinity, as on the GPU
        return items.astype(dtype, copy=False)


def carries(device: wgpu.GPUDevice, totals: Sequence[np.ndarray], *, how: Combination) -> list[np.ndarray]:
    """Return what comes before each chunk, from the totals of all chunks but the last; nothing before the first."""
    counts = np.cumsum([0, *(total.size for total in totals)])
    items = np.concatenate([np.empty(0, how.wide), *totals])
    before: np.ndarray = scan(items, how.op, device=device, **how.options) if items.size else items
    return [before[max(count - 1, 0) : count] for count in counts]


def scanned(
    device: wgpu.GPUDevice,
    chunk: Chunk,
    before: Sequence[np.ndarray],
    index: int,
    *,
    how: Combination,
    kind: Literal["inclusive", "exclusive"],
    keep: bool,
) -> Chunk:
    """Return the scan of a chunk that begins with what comes before it."""
    options = how.options
    carry = before[index] if before else np.empty(0, how.wide)
    if carry.size:
        options["initial"] = carry
    output: Any = scan(uploaded(device, chunk) if keep else chunk, how.op, kind, device=device, **options)
    if keep:
        return output if how.wide == how.dtype else output.astype(how.dtype)
    return _narrowed(host(output), how.dtype)


# ---- histograms and groups


def counted(
    device: wgpu.GPUDevice, chunk: Chunk, limits: np.ndarray, *, bins: int | None, dtype: np.dtype
) -> np.ndarray:
    """Return how many items are in each bin: between edges, or between two limits in bins of the same width."""
    if bins is None:
        return _i64(histogram(chunk, limits, device=device)[0])
    # As numpy: edges between two items are of their dtype, and numbers of Python take it.
    low, high = limits if limits.dtype == dtype else limits.tolist()
    return _i64(histogram(chunk, bins, range=(low, high), device=device)[0])


def totalled(counts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of counts of several chunks."""
    return np.sum(counts, axis=0)


def _i64(counts: Any) -> np.ndarray:
    return host(counts).astype(np.int64, copy=False)


def checked_range(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Return the range of a histogram from the least and the greatest item, as numpy does.

    Raises
    ------
    LengthError
        If one of them is infinite or NaN.
    """
    if lowest.size == 0:
        return np.array([0.0, 1.0])
    low, high = lowest[0], highest[0]
    if not (np.isfinite(low) and np.isfinite(high)):
        raise LengthError(f"gwd.histogram(): items range from {low} to {high}; give a finite range=(low, high)")
    return np.array([low, high])


class Grouped(NamedTuple):
    """Groups of a part of the rows: keys in their order, and a column per aggregate."""

    keys: np.ndarray
    columns: tuple[np.ndarray, ...]


#: What each aggregate is made from, by the operation that merges these columns.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "sum": ("sum",), "min": ("min",), "max": ("max",), "count": ("sum",), "mean": ("sum", "sum"),
}  # fmt: skip


def grouped(device: wgpu.GPUDevice, keys: Chunk, values: Chunk, *, how: How, max_groups: int) -> Grouped:
    """Return the groups of a chunk."""
    if keys.size != values.size:
        raise LengthError(f"gwd.groupby(): a chunk has {keys.size} keys, but {values.size} values; give as many")
    if keys.size and keys.dtype.itemsize >= 4 and values.dtype.itemsize >= 4 and values.dtype.kind in "iuf":
        return _grouped_on_gpu(device, keys, values, how, max_groups)
    own_keys, items = host(keys), host(values)
    if how in ("sum", "mean"):
        items = items.astype(_added_as(items.dtype, how), copy=False)
    columns = () if how == "count" else (items,)
    if how in ("count", "mean"):
        columns = (*columns, np.ones(items.size, np.uint64))
    return _merged(device, own_keys, columns, how, max_groups)


def _added_as(dtype: np.dtype, how: How) -> np.dtype:
    """Return the dtype that sums are made in."""
    if how == "mean" and dtype.kind in "iu" and dtype.itemsize == 8:
        return np.dtype(np.float64)  # sums of 64-bit integers wrap
    return np.sum(np.empty(0, dtype)).dtype


def _grouped_on_gpu(device: wgpu.GPUDevice, keys: Chunk, values: Chunk, how: How, max_groups: int) -> Grouped:
    """As `grouped`, of items that a GPU groups as they are: they cross to it once, and are widened there."""
    wanted = _added_as(values.dtype, how) if how in ("sum", "mean") else values.dtype
    if wanted.kind == "f" and values.dtype.kind != "f":
        values = host(values).astype(wanted)
    with stage("upload", keys.nbytes + (0 if how == "count" else values.nbytes)):
        own_keys = uploaded(device, keys)
        items = own_keys if how == "count" else uploaded(device, values).astype(wanted, copy=False)
    aggregates: dict[str, Any] = {} if how == "count" else {"c0": (items, _COLUMNS[how][0])}
    if how in ("count", "mean"):
        aggregates[f"c{len(aggregates)}"] = count
    with stage("GPU"):
        # A radix sort of small keys takes few passes.
        bits = max(int(top(own_keys).item()).bit_length(), 1) if own_keys.dtype.kind == "u" else None
        groups = group_by(own_keys, aggregates, key_bits=bits, deterministic=True, device=device)
        found = groups.keys.to_numpy()
    _check_groups(found.size, max_groups)
    columns = [groups[name].to_numpy() for name in aggregates]
    if how in ("count", "mean"):
        columns[-1] = columns[-1].astype(np.uint64)
    return Grouped(found, tuple(columns))


def merged_groups(device: wgpu.GPUDevice, parts: Sequence[Grouped], *, how: How, max_groups: int) -> Grouped:
    """Return the groups of several chunks."""
    keys = np.concatenate([part.keys for part in parts])
    columns = tuple(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True))
    return _merged(device, keys, columns, how, max_groups)


def _merged(
    device: wgpu.GPUDevice, keys: np.ndarray, columns: tuple[np.ndarray, ...], how: How, max_groups: int
) -> Grouped:
    if keys.size == 0:
        return Grouped(keys, columns)
    aggregates = {f"c{i}": (column, _COLUMNS[how][i]) for i, column in enumerate(columns)}
    groups = group_by(keys, aggregates, deterministic=True, device=device)
    _check_groups(groups.keys.size, max_groups)
    return Grouped(groups.keys, tuple(getattr(groups, name) for name in aggregates))


def _check_groups(number: int, max_groups: int) -> None:
    if number > max_groups:
        raise LimitError(
            f"gwd.groupby(): {number} groups are more than max_groups={max_groups}, and all groups come "
            f"together on one worker; give a larger max_groups, or group by fewer keys"
        )


def grouped_result(parts: Sequence[Grouped], *, how: How, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and their aggregates, of the one part that all were merged to, for values of a dtype."""
    (found,) = parts
    if how == "mean":
        return found.keys, found.columns[0] / found.columns[1]
    # On the GPU small items are aggregated in 32 bits.
    wanted = {"count": np.dtype(np.int64), "sum": np.sum(np.empty(0, dtype)).dtype}.get(how, dtype)
    return found.keys, _narrowed(found.columns[0], wanted)


# ---- sorts


class Columns:
    """Keys, and values if there are any: as many items each, on the GPU or in host memory."""

    __slots__ = ("columns",)

    def __init__(self, *columns: Chunk):
        self.columns: tuple[Chunk, ...] = columns

    @property
    def size(self) -> int:
        """Items of a column."""
        return int(self.columns[0].size)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self.columns)

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self.columns)

    @property
    def is_on_gpu(self) -> bool:
        """Whether any column is an Array."""
        return any(isinstance(column, Array) for column in self.columns)

    def between(self, begin: int, end: int) -> Columns:
        """Return some of the items, without a copy."""
        return Columns(*(column[begin:end] for column in self.columns))

    def on_host(self) -> Columns:
        """Return the items in host memory."""
        return Columns(*(host(column) for column in self.columns))


def _joined(device: wgpu.GPUDevice, chunks: Sequence[Chunk]) -> Array:
    """Return items of several chunks, one behind the other, on the GPU."""
    if len(chunks) == 1 and isinstance(chunks[0], Array):
        return chunks[0]
    whole = empty(sum(chunk.size for chunk in chunks), chunks[0].dtype, device)
    begin = 0
    with stage("upload", sum(chunk.nbytes for chunk in chunks if not isinstance(chunk, Array))):
        for chunk in chunks:
            whole[begin : begin + chunk.size].copy_from(chunk)
            begin += chunk.size
    return whole


def _in_order(device: wgpu.GPUDevice, columns: Sequence[Array], descending: bool) -> Columns:
    if not columns[0].size:
        return Columns(*columns)
    with stage("GPU"):
        if len(columns) == 1:
            found = Columns(sort(columns[0], descending=descending, device=device))
        else:
            found = Columns(*sort_pairs(columns[0], columns[1], descending=descending, device=device))
        synchronize(device)
    return found


def held(device: wgpu.GPUDevice, *columns: Chunk, in_order: bool, descending: bool) -> Columns:
    """Return a chunk, and its values if there are any, on the GPU; in order if that is asked for."""
    sizes = [column.size for column in columns]
    if len(set(sizes)) > 1:
        raise LengthError(f"gwd.sort_pairs(): a chunk has {sizes[0]} keys, but {sizes[1]} values; give as many")
    arrays = [_joined(device, [column]) for column in columns]
    return _in_order(device, arrays, descending) if in_order else Columns(*arrays)


def held_with_indices(
    device: wgpu.GPUDevice,
    chunk: Chunk,
    first: np.ndarray,
    index: int,
    *,
    dtype: np.dtype,
    in_order: bool,
    descending: bool,
) -> Columns:
    """Return a chunk on the GPU, and where each item is in the whole array."""
    begin = int(first[index])
    indices = arange(begin, begin + chunk.size, dtype=dtype, device=device) if chunk.size else np.empty(0, dtype)
    return held(device, chunk, indices, in_order=in_order, descending=descending)


def sampled_keys(device: wgpu.GPUDevice, run: Columns, state: Search, index: int, *, descending: bool) -> np.ndarray:
    """Return the keys of a sorted chunk that a round of the search for cuts takes."""
    with stage("GPU"):
        return sampled(run.columns[0], state, index, descending=descending)


def piece(run: Columns, table: np.ndarray, index: int, group: int) -> Columns:
    """Return what a sorted chunk gives to a group of parts; without a copy."""
    row = table[index]
    return run.between(0 if group == 0 else int(row[group - 1]), run.size if group == row.size else int(row[group]))


def merged(
    device: wgpu.GPUDevice, pieces: Sequence[Columns], *, dtypes: Sequence[np.dtype], descending: bool
) -> Columns:
    """Return pieces of chunks, in the order of these chunks, as one in order; stable. It stays on the GPU."""
    some = [each for each in pieces if each.size] or [pieces[0]]
    arrays = [_joined(device, column) for column in zip(*some, strict=True)]
    found = _in_order(device, arrays, descending)
    return Columns(*(cast(Array, each).astype(dtype, copy=False) for each, dtype in zip(found, dtypes, strict=True)))


def part(group: Columns, sizes: Sequence[int], number: int) -> tuple[np.ndarray, ...]:
    """Return a part of a group of parts of these sizes, in host memory."""
    begin = sum(sizes[:number])
    return tuple(host(each) for each in group.between(begin, begin + sizes[number]))


def offsets(sizes: Sequence[int]) -> np.ndarray:
    """Return where each chunk begins in the whole array."""
    return np.cumsum([0, *sizes], dtype=np.uint64)[:-1]


# ---- the largest items, and distinct ones


class Candidates(NamedTuple):
    """The best items of a part of an array, best first, and where they are in the whole array."""

    values: np.ndarray
    indices: np.ndarray


def first_best(
    device: wgpu.GPUDevice, chunk: Chunk, first: np.ndarray, index: int, *, k: int, mode: Literal["largest", "smallest"]
) -> Candidates:
    """Return the best items of a chunk, of equal ones the first."""
    if chunk.size == 0:
        return Candidates(np.empty(0, chunk.dtype), np.empty(0, np.uint64))
    values, indices = top_k(chunk, min(k, chunk.size), mode=mode, device=device)
    return Candidates(host(values), host(indices).astype(np.uint64) + first[index])


def best_of(
    device: wgpu.GPUDevice,
    parts: Sequence[Candidates],
    *,
    k: int,
    mode: Literal["largest", "smallest"],
    last: bool = False,
) -> Candidates:
    """Return the best of several chunks' best items.

    Raises
    ------
    LengthError
        If `last`, and there are fewer than k.
    """
    values = np.concatenate([part.values for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    if last and values.size < k:
        raise LengthError(f"gwd.top_k(): k={k}, but x has {values.size} items; give a smaller k")
    if values.size == 0:
        return Candidates(values, indices)
    best = top_k(values, min(k, values.size), mode=mode, device=device)
    return Candidates(best.values, indices[best.indices])


def distinct(device: wgpu.GPUDevice, chunk: Chunk) -> np.ndarray:
    """Return the distinct items of a chunk, in order."""
    return unique(host(chunk), device=device)


def distinct_parts(device: wgpu.GPUDevice, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distinct items of several chunks."""
    return distinct(device, np.concatenate(parts))
