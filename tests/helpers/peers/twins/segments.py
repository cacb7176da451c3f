"""Segments, and runs of equal keys."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import references as ref
from ..calls import Call, Given
from ..draws import HUGE, Draw
from .table import WORDS, add, drawn_array, wide_dtypes


def _offsets(d: Draw, n: int) -> np.ndarray:
    offsets = np.sort(d.rng.integers(0, n + 1, d.whole(0, 6)))
    offsets = np.concatenate([[0], offsets, [n]])
    kind = d.rng.random()
    if kind < 0.05:
        offsets = d.pick(
            (offsets[::-1], offsets + 1, offsets[:0], offsets[:1], np.zeros(3), offsets - 1, offsets + 2**32)
        )
    return offsets.astype(d.pick(("int64", "int32", "uint32", "uint64"))) if kind > 0.05 and n < 2**31 else offsets


def _draw_segmented(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = drawn_array(d, dims=1, least=1)
        n, named = x.items.size, {}
        args: list[Any] = [x]
        if name == "segmented_sort_pairs":
            args.append(d.alike(d.items(d.dtype(WORDS), n if d.chance(0.97) else n + 1), x))
        if d.chance(0.3) and name in ("segmented_sort", "segmented_sort_pairs", "segmented_reduce"):
            length = d.whole(1, max(n, 1)) if d.chance(0.6) else d.pick((0, -1, n + 1, 1.5, *HUGE))
            named["length"] = length
        else:
            offsets = _offsets(d, n)
            if x.how in ("gpu", "view", "expr") and d.chance(0.6):
                args.append(Given(offsets.astype(np.uint32), "gpu"))
            else:
                args.append(Given(offsets, d.how(offsets, gpu=False)) if d.chance(0.95) else [])
        if name == "segmented_top_k":
            args.append(d.whole(0, 6) if d.chance(0.9) else d.pick((1024, 1025, -1, 1.0, *HUGE)))
            if d.chance(0.3):
                named["mode"] = d.pick(("largest", "smallest"))
            if d.chance(0.3):
                named["sorted"] = d.chance(0.5)
        elif name in ("segmented_reduce", "segmented_scan"):
            op = d.pick(tuple(ref.UFUNCS))
            if "length" in named:
                named["op"] = op
            elif d.chance(0.8):
                args.append(op)
            if name == "segmented_scan" and d.chance(0.5):
                named["kind"] = d.pick(("inclusive", "exclusive"))
        elif d.chance(0.3):
            named["descending"] = True
        return Call(name, tuple(args), named)

    return draw


def _segmented_reduce(x: Any, offsets: Any = None, op: str = "add", *, length: Any = None) -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    parts = ref.segments(x, offsets, length)
    if length is not None and x.size % int(length):
        raise ref.Refused("no whole number of segments")
    return np.array([ref.combined(op, part) for part in parts], x.dtype)


def _segmented_reduce_exact(
    want: Any, got: Any, x: Any, offsets: Any = None, op: str = "add", *, length: Any = None
) -> Any:
    parts = ref.segments(np.asarray(x), offsets, length)
    return want.astype(np.longdouble) if want.dtype.kind == "f" else want, [ref.magnitude(op, part) for part in parts]


def _segmented_scan(x: Any, offsets: Any, op: str = "add", kind: str = "inclusive") -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    parts = _covering(ref.segments(x, offsets), x)
    return np.concatenate([x[:0], *(ref.scanned(op, part, kind) for part in parts)])


def _segmented_scan_exact(want: Any, got: Any, x: Any, offsets: Any, op: str = "add", kind: str = "inclusive") -> Any:
    parts = ref.segments(np.asarray(x), offsets)
    scales = [ref.magnitudes(op, part) for part in parts]
    return want, np.concatenate([np.zeros(0), *scales])


def _covering(parts: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    """Return segments that all items are in; results of others are unspecified."""
    if sum(part.size for part in parts) != x.size:
        raise ref.Unspecified
    return parts


def _segmented_sort(x: Any, offsets: Any = None, *, length: Any = None, descending: bool = False) -> Any:
    x = np.asarray(x)
    parts = _covering(ref.segments(x, offsets, length), x)
    return np.concatenate([x[:0], *(part[ref.order(part, descending)] for part in parts)])


def _segmented_sort_pairs(
    keys: Any, values: Any, offsets: Any = None, *, length: Any = None, descending: bool = False
) -> Any:
    keys, values = np.asarray(keys), np.asarray(values)
    if keys.shape != values.shape:
        raise ref.Refused("lengths")
    parts, of = _covering(ref.segments(keys, offsets, length), keys), ref.segments(values, offsets, length)
    orders = [ref.order(part, descending) for part in parts]
    return tuple(
        np.concatenate([x[:0], *(part[order] for part, order in zip(each, orders, strict=True))])
        for x, each in ((keys, parts), (values, of))
    )


def _segmented_top_k(x: Any, offsets: Any, k: Any, *, mode: str = "largest", sorted: bool = True) -> Any:
    x, k = np.asarray(x), operator.index(k)
    parts = ref.segments(x, offsets)
    if not 0 <= k <= 1024:
        raise ref.Refused("k")
    values, indices = np.zeros((len(parts), k), x.dtype), np.full((len(parts), k), -1, np.intp)
    for i, part in enumerate(parts):
        chosen = ref.best(part, k, mode, sorted)
        values[i, : chosen.size], indices[i, : chosen.size] = part[chosen], chosen
    return values, indices


add("segmented_reduce", _segmented_reduce, _draw_segmented("segmented_reduce"), exact=_segmented_reduce_exact)
add("segmented_scan", _segmented_scan, _draw_segmented("segmented_scan"), exact=_segmented_scan_exact)
add("segmented_sort", _segmented_sort, _draw_segmented("segmented_sort"))
add("segmented_sort_pairs", _segmented_sort_pairs, _draw_segmented("segmented_sort_pairs"))
add("segmented_top_k", _segmented_top_k, _draw_segmented("segmented_top_k"))


def _draw_by_key(name: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        keys = drawn_array(d, dims=1, least=1, kind="few" if d.chance(0.6) else None)
        x = d.alike(d.items(d.dtype(), keys.items.size if d.chance(0.97) else keys.items.size + 1), keys)
        named = {"kind": d.pick(("inclusive", "exclusive"))} if name == "scan_by_key" and d.chance(0.5) else {}
        return Call(name, (keys, x, d.pick(tuple(ref.UFUNCS))) if d.chance(0.8) else (keys, x), named)

    return draw


def _runs_of(keys: Any, x: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    keys, x = np.asarray(keys), np.asarray(x)
    if keys.shape != x.shape:
        raise ref.Refused("lengths")
    starts = ref.runs(ref.key_bits(keys))
    return starts, np.split(x, starts[1:]) if starts.size else []


def _reduce_by_key(keys: Any, x: Any, op: str = "add") -> Any:
    starts, parts = _runs_of(keys, ref.of_four_bytes(np.asarray(x)))
    x = ref.of_four_bytes(np.asarray(x))
    return np.asarray(keys)[starts], np.array([ref.combined(op, part) for part in parts], x.dtype)


def _reduce_by_key_exact(want: Any, got: Any, keys: Any, x: Any, op: str = "add") -> Any:
    return [None, (want, [ref.magnitude(op, part) for part in _runs_of(keys, x)[1]])]


def _scan_by_key(keys: Any, x: Any, op: str = "add", kind: str = "inclusive") -> Any:
    x = ref.of_four_bytes(np.asarray(x))
    return np.concatenate([x[:0], *(ref.scanned(op, part, kind) for part in _runs_of(keys, x)[1])])


def _scan_by_key_exact(want: Any, got: Any, keys: Any, x: Any, op: str = "add", kind: str = "inclusive") -> Any:
    scales = [ref.magnitudes(op, part) for part in _runs_of(keys, x)[1]]
    return want, np.concatenate([np.zeros(0), *scales])


add("reduce_by_key", _reduce_by_key, _draw_by_key("reduce_by_key"), dtypes=wide_dtypes, exact=_reduce_by_key_exact)
add("scan_by_key", _scan_by_key, _draw_by_key("scan_by_key"), exact=_scan_by_key_exact)


def _draw_segment_ids(d: Draw) -> Call:
    offsets = np.concatenate([[0], np.cumsum(d.rng.integers(0, 5, d.whole(0, 20)))]).astype(
        d.pick(("int64", "int32", "uint32", "uint64"))
    )
    if d.chance(0.1):
        offsets = d.pick(
            (offsets[::-1].copy(), offsets + offsets.dtype.type(1), offsets[:0], offsets.astype(np.float64))
        )
    if d.chance(0.3) and offsets.dtype.kind in "iu" and offsets.size and offsets[0] == 0:
        return Call("segment_ids", (Given(offsets.astype(np.uint32), "gpu"),), {"size": int(offsets[-1])})
    return Call("segment_ids", (Given(offsets, d.how(offsets, gpu=False)),))


def _segment_ids(offsets: Any, *, size: Any = None) -> Any:
    offsets = np.asarray(offsets)
    if offsets.size and offsets.dtype.kind not in "iu":
        raise TypeError("offsets")
    if not offsets.size or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise ref.Refused("offsets")
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets.astype(np.int64)))[:size]


add("segment_ids", _segment_ids, _draw_segment_ids)
