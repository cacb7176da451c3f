"""Segmented sorts beside CUB's, and transposes, flips, rolls and scatters beside copies.

Usage: python benchmarks/peers/segmented_sort_peer.py [--n 2^24] [--cases marks] [--budget-s 55] [--json FILE]
       python benchmarks/peers/segmented_sort_peer.py --n 2^12 --peers none      (any GPU, also a software one)

harness.py says what is measured, and how. Groups:

marks   segments of 2^8 and of 2^12 keys (u32), by offsets (with longest= and without) and of one length, beside
        DeviceSegmentedSort and DeviceSegmentedRadixSort; transposes beside our copy of as many bytes
sweep   segments of 1 to n keys: no length may be a cliff. "random" has lengths by a power law, and empty ones
others  pairs and 8-byte keys; narrow matrices, other items; flip, roll, scatter beside copies and gathers

Other shapes of the segmented sort and the transpose: gridwise tune benchmarks/variants/shapes.py. Results of segmented
sorts must have the checksum of CUB's, and up to 2^20 keys numpy's order; transposes and their like are compared with
numpy up to 2^24 items. Predictions and what was found: docs/contribute/performance.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import harness
import numpy as np

import gridwise_py as gw
from gridwise_py.primitives.reorder import Reorder
from gridwise_py.primitives.take import Take

_LENGTHS = (1, 2, 4, 8, 16, 32, 64, 256, 1 << 10, 1 << 11, 1 << 12, 4098, 6145, 1 << 13, 1 << 14, 1 << 16, 1 << 20)
_CUB = ("segmented_sort", "segmented_radix_sort")
_MOST_SORTED, _MOST_COMPARED = 1 << 20, 1 << 24
Outputs = Mapping[str, np.ndarray]


class Keys:
    """The cases of n keys."""

    def __init__(self, bench: harness.Bench, n: int):
        self._bench, self._device, self._n = bench, bench.device, n
        self._rng = np.random.default_rng(n)
        self._keys = self._rng.integers(0, 1 << 32, n, dtype=np.uint32)
        self._on_gpu, self._output = gw.asarray(self._keys, self._device), gw.empty(n, "u32", self._device)

    def _offsets(self, length: int | None) -> np.ndarray:
        if length is not None:
            return np.append(np.arange(0, self._n, length), self._n).astype(np.uint32)
        lengths = np.minimum(self._rng.pareto(0.7, self._n // 64 + 1) * 4, self._n / 8).astype(np.int64)
        bounds = np.cumsum(lengths)
        return np.concatenate([[0], bounds[bounds < self._n], [self._n]]).astype(np.uint32)

    def sorts(self, length: int | None, group: str, mark: tuple[float, float] | None = None) -> harness.Case:
        """Return sorts in segments of one length, or of random ones: by offsets, and by the length."""
        offsets, sums = self._offsets(length), list[int]()
        both = {"keys": self._on_gpu, "output_keys": self._output}

        def right(outputs: Outputs) -> bool:
            keys = outputs["output_keys"]
            sums[:] = sums or [harness.checksum(keys)]
            if self._n > _MOST_SORTED:
                return harness.checksum(keys) == sums[0]
            segment = np.searchsorted(offsets, np.arange(self._n), side="right")
            return np.array_equal(keys, self._keys[np.lexsort((self._keys, segment))])

        def ours(by_offsets: bool, **options: Any) -> Callable[[], harness.Side]:
            def make() -> harness.Side:
                given = {**both, "offsets": gw.asarray(offsets, self._device)} if by_offsets else both
                return harness.Ours(gw.SegmentedSort(self._device, "u32", **options), given, right)

            return make

        def cub(algorithm: str) -> harness.Side:
            words = (f"segments={offsets.size - 1}", "input=keys", f"offsets=offsets_{length}")
            data = {"keys": self._keys, f"offsets_{length}": offsets}
            return harness.Cub(self._bench.cub, ("case", algorithm, "u32", self._n, *words), data, sums)

        sides = {"offsets": ours(True), "offsets, longest": ours(True, longest=int(np.diff(offsets).max()))}
        if length is not None:
            sides["length"] = ours(False, length=length)
        sides |= {f"cub {algorithm}": functools.partial(cub, algorithm) for algorithm in _CUB}
        name = f"segments of {length}" if length is not None else f"{offsets.size - 1} random segments"
        marks = {} if mark is None else {"cub segmented_sort": ("back_to_back", *mark)}
        return harness.Case(name, self._n, sides, group, 8 * self._n, marks=marks)

    def pairs(self, key: str, value: str | None, length: int) -> harness.Case:
        """Return the case of other keys and of values."""
        kinds = [gw.STORAGE_DATATYPES[each] for each in (key, value) if each is not None]
        n = self._n

        def ours() -> harness.Side:
            words = self._rng.integers(0, 256, n * kinds[0].itemsize_bytes, dtype=np.uint8).view(kinds[0].dtype)
            arrays = {"keys": gw.asarray(words, self._device), "output_keys": gw.empty(n, key, self._device),
                      "offsets": gw.asarray(self._offsets(length), self._device)}  # fmt: skip
            if value is not None:
                arrays |= {name: gw.zeros(n, value, self._device) for name in ("values", "output_values")}
            return harness.Ours(gw.SegmentedSort(self._device, key, value), arrays)

        moved = 2 * sum(kind.itemsize_bytes for kind in kinds) * n
        return harness.Case(f"{key} and {value} in segments of {length}", n, {harness.OURS: ours}, "others", moved)

    def beside_copy(
        self, name: str, group: str, dtype: str, n: int, make: Callable[[], gw.Primitive],
        expected: Callable[[np.ndarray], np.ndarray],
    ) -> harness.Case:  # fmt: skip
        """Return what moves items, beside a copy of as many bytes."""
        datatype = gw.STORAGE_DATATYPES[dtype]
        size_bytes = n * datatype.itemsize_bytes

        @functools.cache
        def data() -> tuple[np.ndarray, gw.Array, gw.Array]:
            words = np.resize(self._keys, -(-size_bytes // 4))
            return words, gw.asarray(words, self._device), gw.empty(words.size, "u32", self._device)

        def right(outputs: Outputs) -> bool:
            if n > _MOST_COMPARED:
                return True
            wanted = np.ascontiguousarray(expected(data()[0].view(datatype.dtype)[:n]))
            return outputs["output"].tobytes() == wanted.tobytes()

        def ours() -> harness.Side:
            _, source, target = data()
            views = {"input": gw.Array(source.buffer, dtype, n), "output": gw.Array(target.buffer, dtype, n)}
            return harness.Ours(make(), views, right)

        def copy() -> harness.Side:
            _, source, target = data()
            return harness.Ours(gw.Copy(self._device, "u32"), {"input": source, "output": target})

        marks = {"copy": ("back_to_back", 0.95)} if group == "marks" else {}
        return harness.Case(name, n, {harness.OURS: ours, "copy": copy}, group, 2 * size_bytes, marks=marks)

    def transpose(self, rows: int, columns: int, dtype: str, group: str) -> harness.Case:
        """Return the case of a matrix."""
        return self.beside_copy(
            f"transpose {rows} x {columns} {dtype}", group, dtype, rows * columns,
            lambda: gw.Transpose(self._device, dtype, rows=rows, columns=columns),
            lambda items: items.reshape(rows, columns).T,
        )  # fmt: skip

    def reorder(self, shift: int | None) -> harness.Case:
        """Return the case of a flip, or of a roll."""
        n = 4 * self._n
        return self.beside_copy(
            "flip" if shift is None else "roll", "others", "u32", n,
            lambda: Reorder(self._device, "u32", outer=1, length=n, inner=1, shift=shift),
            lambda items: items[::-1] if shift is None else np.roll(items, shift),
        )  # fmt: skip

    def scatter(self, kind: str) -> harness.Case:
        """Return the case of a scatter, beside a gather by the same indices."""
        n = self._n
        indices = self._rng.permutation(n) if kind == "random" else np.arange(n)
        named = {"indices": gw.asarray(indices.astype(np.uint32), self._device), "output": self._output}

        def ours() -> harness.Side:
            return harness.Ours(
                gw.Scatter(self._device), {**named, "items": self._on_gpu},
                lambda outputs: np.array_equal(outputs["output"][indices], self._keys),
            )  # fmt: skip

        def gather() -> harness.Side:
            take = Take(self._device, "u32", "u32", outer=1, length=n, count=n, inner=1, clip=True)
            return harness.Ours(take, {**named, "input": self._on_gpu})

        sides = {harness.OURS: ours, "gather": gather}
        return harness.Case(f"scatter by {kind} indices", n, sides, "others", 12 * n)

    def cases(self) -> Iterator[harness.Case]:
        """Return all cases; those of more than n keys are left out."""
        n = self._n
        side = 1 << (n.bit_length() - 1) // 2
        for length, mark in ((1 << 8, (4.0, 10.0)), (1 << 12, (0.8, 1.0))):
            if length <= n:
                yield self.sorts(length, "marks", mark)
        for scale, dtype in ((1, "u32"), (4, "u32"), (2, "u64")):
            yield self.transpose(scale * side, scale * side, dtype, "marks")
        for each in (*(each for each in _LENGTHS if each < n), n, None):
            yield self.sorts(each, "sweep")
        for key, value in (("u32", "u32"), ("f32", None), ("u64", None), ("u64", "f64"), ("u8", None)):
            for length in (1 << 8, 1 << 12, 1 << 14):
                if length <= n:
                    yield self.pairs(key, value, length)
        narrow = [(4, n), (n, 4), (3, n), (n, 3), (n // 32, 32), (20, n // 8)]
        for rows, columns in (*narrow, (2 * side + 1, 2 * side - 1)):
            yield self.transpose(rows, columns, "u32", "others")
        for dtype in ("u8", "u16"):
            yield self.transpose(2 * side, 2 * side, dtype, "others")
            yield self.transpose(2 * side - 1, 2 * side, dtype, "others")
        yield self.reorder(None)
        yield self.reorder(n // 3)
        for kind in ("random", "ascending"):
            yield self.scatter(kind)

    def forget(self) -> None:
        """Free what the keys take."""
        for array in (self._on_gpu, self._output):
            array.destroy()
        self._bench.forget()


@harness.command(__doc__, n="2^24", peers="cub", rounds=2, samples=7)
def main(bench: harness.Bench) -> Iterator[harness.Case]:
    """Yield the cases."""
    for n in bench.sizes:
        keys = Keys(bench, n)
        yield from keys.cases()
        keys.forget()


if __name__ == "__main__":
    main()
