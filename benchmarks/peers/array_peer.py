"""Sums and scans along an axis, searches, gathers, top-k, argmax and their like beside PyTorch and CuPy.

Usage: python benchmarks/peers/array_peer.py [--n 2^28] [--cases "axis;top k"] [--json FILE]
       python benchmarks/peers/array_peer.py --n 2^12 --peers none      (any GPU, also a software one)

harness.py says what is measured, and how. PyTorch has few kernels for u32, so it gets int32 (below 2³¹). Groups:

axis        sums of f32 in C order: a square, four columns, four rows; with an eighth of the items also rows whose
            length is no multiple of 4, and narrow and batched ones. Items are multiples of 1/256 whose sums are exact,
            so every side must give numpy's bits. GB/s counts the input alone.
axis scans  prefix sums of the same
reductions  max, argmax, minmax, sum, mean and var. ``plain``, where there is one, is the reduction without extras.
            "ascending" is the worst case of argmax: every tile of every invocation has a new maximum.
top k       the 100 largest. "ascending": they lie together, at the end. "all equal": of equal items the first ones are
            to be chosen. "adversarial": they lie at places that agree modulo 8,192 times 256: the delegates of as few
            parts as possible. ``plain`` is the maximum.
search      as many queries as keys: "random" ones, "sorted" ones, and "index": 0, 1, 2, … as an expression that is not
            stored, in keys from 0 to n, which is a row pointer; PyTorch stores them. ``binary`` is our search without
            samples of the keys.
gather      n random items of an array of f32, of 2^14 to 2^26 items: from some size on, of sectors from memory
find        the first item that is not 0: at the front, in the middle, nowhere. ``plain`` reads all: the reduction that
            finds the least index. PyTorch's argmax of bools finds the first, too.
both ends   the indices of the smallest and the largest item at once; ``plain`` is one of the two
nth         the median of u32, of uniform and of normal f32, and of equal items; ``plain`` is our sort, PyTorch's is
            kthvalue, which runs in one workgroup, and its sort; CuPy's a partition
ranges      all items copied in ranges of 8 to 2^20 items on average, to another order; ``plain`` copies as many bytes

Predictions for an H200 and what was found are in docs/contribute/performance-streams.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import harness
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.workloads import RANGE_DATA, ScatteredRanges

Outputs = Mapping[str, np.ndarray]
_GATHERED_BITS = (14, 16, 18, 20, 21, 22, 23, 24, 26)


def _is(expected: Callable[[], np.ndarray], name: str = "output") -> Callable[[Outputs], bool]:
    """Return a check of one of our outputs."""
    return lambda outputs: bool(np.array_equal(outputs[name].reshape(-1), expected().reshape(-1)))


def _peer(
    bench: harness.Bench, name: str, call: Callable[[harness.Library], Callable[[], Any]],
    expected: Callable[[], np.ndarray] | None = None, of: Callable[[Any], Any] = lambda result: result,
) -> Callable[[], harness.Side]:  # fmt: skip
    """Return what makes a library's side; `of` takes from a result what has to be as expected."""

    def make() -> harness.Side:
        library = bench.library(name)
        check = None if expected is None else lambda result: np.array_equal(library.numpy(of(result)), expected())
        return harness.Called(library, call(library), check)

    return make


# ---- along an axis


def shapes(items: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield shapes and axes."""
    side = 1 << (items.bit_length() - 1) // 2
    few = items // 8
    square, narrow = (side, items // side), [(items // 4, 4), (4, items // 4)]
    odd = [(few // (side - 1), side - 1), (few // 3, 3), (few // 100, 100)]
    for shape in (square, *narrow, *odd):
        yield shape, 1
        yield shape, 0
    yield (few // (1 << 14), 128, 128), 1


def along_axis(bench: harness.Bench, n: int, group: str) -> Iterator[harness.Case]:
    """Yield sums along an axis, or prefix sums."""
    scans = group == "axis scans"
    cls, sums, word = (gw.ScanAxis, np.cumsum, "cumsum") if scans else (gw.ReduceAxis, np.sum, "sum")

    @functools.cache
    def data() -> tuple[np.ndarray, gw.Array]:
        numbers = np.random.default_rng(0).integers(-256, 257, n, dtype=np.int16)
        items = numbers.astype(np.float32) / np.float32(256)
        return items, gw.asarray(items, bench.device)

    for shape, axis in shapes(n):
        size = int(np.prod(shape))
        if not size:
            continue  # too few items for it

        @functools.cache
        def expected(shape: tuple[int, ...] = shape, axis: int = axis, size: int = size) -> np.ndarray:
            return sums(data()[0][:size].reshape(shape), axis, dtype=np.float64).astype(np.float32)

        def ours(shape: tuple[int, ...] = shape, axis: int = axis, size: int = size, right: Any = expected) -> Any:
            primitive = cls(bench.device, "f32", shape=shape, axis=axis)
            return harness.Ours(primitive, {"input": data()[1][:size]}, _is(right))

        def call(
            library: harness.Library, shape: tuple[int, ...] = shape, axis: int = axis, size: int = size
        ) -> Callable[[], Any]:
            x = library.array(data()[0][:size]).reshape(shape)
            function = getattr(library.module, word)
            out = function(x, axis)
            return lambda: function(x, axis, out=out)

        name = f"{word} of {' × '.join(f'{length:,}' for length in shape)}, axis {axis}"
        sides = {harness.OURS: ours, **{peer: _peer(bench, peer, call, expected) for peer in ("torch", "cupy")}}
        yield harness.Case(name, size, sides, group, (8 if scans else 4) * size, {"shape": list(shape), "axis": axis})


# ---- reductions of several results


def reductions(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield argmax and its like."""
    device = bench.device
    data = {
        "u32": functools.cache(lambda: harness.in_parts(n, np.uint32, lambda r, k: r.integers(0, 1 << 31, k), 1)),
        "f32": functools.cache(lambda: harness.in_parts(n, np.float32, lambda r, k: r.random(k, np.float32), 2)),
        "ascending": functools.cache(lambda: np.arange(n, dtype=np.uint32).view(np.float32)),  # by their bits
        "zeros": functools.cache(lambda: np.zeros(n, np.float32)),
    }
    array = functools.cache(lambda kind: gw.asarray(data[kind](), device))

    def side(kind: str, make: Callable[[], gw.Primitive], check: Callable[[np.ndarray, Any], Any]) -> Any:
        def right(outputs: Outputs) -> bool:
            return bool(check(data[kind](), outputs["output"][0]))

        return lambda: harness.Ours(make(), {"input": array(kind)}, right)

    def plain(kind: str, op: Any, check: Callable[[np.ndarray, Any], Any]) -> Any:
        return side(kind, lambda: gw.Reduce(device, "u32" if kind == "u32" else "f32", op), check)

    def best(kind: str, op: Any) -> Callable[[], gw.Primitive]:
        value = gw.u32("input") if kind == "u32" else gw.f32("input")
        return lambda: gw.Reduce(device, gw.struct(value=value, index=gw.index), op)

    def close(word: str) -> Callable[[np.ndarray, Any], Any]:
        return lambda x, got: np.isclose(got, getattr(np, word)(x, dtype=np.float64), rtol=1e-4)

    x = gw.f32("input")
    moments = gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0))
    largest, total = (lambda x, got: got == x.max()), close("sum")
    rows: list[tuple[str, str, Any, Any, str, Any]] = [
        (f"{word} {kind}", kind, best(kind, op), lambda x, got, at=at: got["index"] == at(x), word, largest)
        for kind in ("u32", "f32", "ascending") for word, op, at in (("argmax", gw.ArgMax, np.argmax),)
    ]  # fmt: skip
    rows += [
        ("argmin f32", "f32", best("f32", gw.ArgMin), lambda x, got: got["index"] == np.argmin(x), "argmin", largest),
        (
            "minmax f32", "f32", lambda: gw.Reduce(device, gw.struct(min=x, max=x), gw.MinMax),
            lambda x, got: (got["min"], got["max"]) == (x.min(), x.max()), "aminmax", largest,
        ),
        ("any f32", "zeros", lambda: gw.Reduce(device, x != 0.0, gw.Or), lambda x, got: not got, "any", largest),
        (
            "mean f32", "f32", lambda: gw.Reduce(device, x, gw.Add, compensated=True, output=gw.result / float(n)),
            close("mean"), "mean", total,
        ),
        (
            "var f32", "f32",
            lambda: gw.Reduce(device, moments, gw.Moments, output=gw.result.m2 / gw.f32(gw.result.count)),
            close("var"), "var", total,
        ),
    ]  # fmt: skip
    for name, kind, make, check, word, base in rows:

        def call(library: harness.Library, kind: str = kind, word: str = word) -> Callable[[], Any]:
            return getattr(library.array(data[kind]()), word)

        sides = {
            harness.OURS: side(kind, make, check), "plain": plain(kind, gw.Add if base is total else gw.Max, base),
            "torch": _peer(bench, "torch", call),
        }  # fmt: skip
        yield harness.Case(name, n, sides, "reductions", 4 * n)


# ---- top k


def top_k_data(kind: str, n: int) -> np.ndarray:
    """Return items below 2³¹."""
    if kind == "uniform":
        return np.random.default_rng(n).integers(0, 1 << 31, n, dtype=np.uint32)
    if kind == "all equal":
        return np.full(n, 5, dtype=np.uint32)
    ascending = np.arange(n, dtype=np.uint32)
    return ascending if kind == "ascending" else np.where(ascending % (1 << 21) < 8, ascending, 3).astype(np.uint32)


def k_best(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest and their indices, of equal ones the first."""
    least = np.partition(x, x.size - k)[x.size - k]
    above = np.flatnonzero(x > least)
    places = np.concatenate([above, np.flatnonzero(x == least)[: k - above.size]])
    places = places[np.argsort(~x[places], kind="stable")]
    return x[places], places


def top_k(bench: harness.Bench, n: int, k: int = 100) -> Iterator[harness.Case]:
    """Yield top-k of several data."""
    for kind in ("uniform", "ascending", "all equal", "adversarial"):
        data = functools.cache(functools.partial(top_k_data, kind, n))
        array = functools.cache(lambda data=data: gw.asarray(data(), bench.device))
        right = functools.cache(lambda data=data: k_best(data(), k))

        def check(outputs: Outputs, right: Any = right) -> bool:
            return all(map(np.array_equal, (outputs["values"], outputs["indices"]), right()))

        sides = {
            harness.OURS: lambda a=array, c=check: harness.Ours(gw.TopK(bench.device, "u32", k), {"input": a()}, c),
            "plain": lambda a=array: harness.Ours(gw.Reduce(bench.device, "u32", gw.Max), {"input": a()}),
            "torch": _peer(
                bench, "torch",
                lambda library, data=data: functools.partial(library.torch.topk, library.array(data()), k),
                lambda right=right: right()[0].view(np.int32), lambda result: result[0],
            ),
        }  # fmt: skip
        yield harness.Case(f"the {k} largest, {kind} items", n, sides, "top k", 4 * n, {"k": k, "items": kind})


# ---- searches and gathers


class WithoutSamples(gw.Search):
    """A search that reads nothing but the keys."""

    def _levels(self, keys: int, queries: int, table_keys: int) -> int:
        return 0


def search_data(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and queries."""
    rng = np.random.default_rng(n)
    keys = np.sort(rng.integers(0, n if kind == "index" else 1 << 31, n).astype(np.uint32))
    if kind == "index":
        return keys, np.arange(n, dtype=np.uint32)
    queries = rng.integers(0, 1 << 31, n).astype(np.uint32)
    return keys, np.sort(queries) if kind == "sorted" else queries


def searches(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield searches of as many queries as keys."""
    for kind in ("random", "sorted", "index"):
        data = functools.cache(functools.partial(search_data, kind, n))
        right = functools.cache(lambda data=data: np.searchsorted(*data()))

        @functools.cache
        def arrays(data: Any = data, kind: str = kind) -> dict[str, gw.Array]:
            names = ("sorted",) if kind == "index" else ("sorted", "queries")
            return {name: gw.asarray(items, bench.device) for name, items in zip(names, data(), strict=False)}

        def ours(cls: type[gw.Search], kind: str = kind, arrays: Any = arrays, right: Any = right) -> harness.Side:
            options: dict[str, Any] = {"queries": gw.index} if kind == "index" else {}
            output = gw.empty(n, "u32", bench.device)
            return harness.Ours(cls(bench.device, **options), {**arrays(), "output": output}, _is(right))

        def call(library: harness.Library, data: Any = data) -> Callable[[], Any]:
            keys, queries = map(library.array, data())
            out = library.torch.empty(n, dtype=library.torch.int32, device="cuda")
            return lambda: library.torch.searchsorted(keys, queries, out_int32=True, out=out)

        sides = {
            harness.OURS: lambda ours=ours: ours(gw.Search), "binary": lambda ours=ours: ours(WithoutSamples),
            "torch": _peer(bench, "torch", call, right),
        }  # fmt: skip
        yield harness.Case(f"{kind} queries", n, sides, "search", facts={"queries": kind})


def gathers(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield gathers from arrays of many sizes."""
    for size in sorted({min(1 << bits, 4 * n) for bits in _GATHERED_BITS}):

        @functools.cache
        def data(size: int = size) -> tuple[np.ndarray, np.ndarray]:
            rng = np.random.default_rng(size)
            return rng.random(size, dtype=np.float32), rng.integers(0, size, n, dtype=np.uint32)

        def expected(data: Any = data) -> np.ndarray:
            vector, places = data()
            return vector[places]

        def ours(data: Any = data, expected: Any = expected) -> harness.Side:
            vector, places = (gw.asarray(items, bench.device) for items in data())
            return harness.Ours(gw.Map(bench.device, gw.gather(vector, places)), {}, _is(expected))

        def call(library: harness.Library, data: Any = data) -> Callable[[], Any]:
            vector, places = map(library.array, data())
            out = library.torch.empty(n, dtype=library.torch.float32, device="cuda")
            return lambda: library.torch.index_select(vector, 0, places, out=out)

        sides = {harness.OURS: ours, "torch": _peer(bench, "torch", call, expected)}
        yield harness.Case(f"from {size:,} items", n, sides, "gather", 8 * n, {"vector_items": size})


# ---- the first, both ends, the median, ranges


def firsts(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield searches for the first item that is not 0."""
    for name, place in (("at the front", min(5, n - 1)), ("in the middle", n // 2), ("nowhere", n)):

        @functools.cache
        def data(place: int = place) -> np.ndarray:
            return (np.arange(n) >= place).astype(np.uint32)

        array = functools.cache(lambda data=data: gw.asarray(data(), bench.device))
        least = gw.where(gw.u32("input") != 0, gw.index, np.uint32(n))
        right = functools.partial(np.array, [place])

        def call(library: harness.Library, data: Any = data) -> Callable[[], Any]:
            return library.array(data()).bool().argmax

        sides = {
            harness.OURS: lambda a=array, right=right: harness.Ours(
                gw.FindIf(bench.device, "u32"), {"input": a()}, _is(right)
            ),
            "plain": lambda a=array, least=least, right=right: harness.Ours(
                gw.Reduce(bench.device, least, gw.Min), {"input": a()}, _is(right)
            ),
            "torch": _peer(bench, "torch", call),
        }
        yield harness.Case(f"the first, {name}", n, sides, "find", 4 * n, {"place": place})


def both_ends(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield the indices of the smallest and the largest item."""
    data = functools.cache(lambda: harness.in_parts(n, np.float32, lambda r, k: r.random(k, np.float32), 2))
    array = functools.cache(lambda: gw.asarray(data(), bench.device))
    x = gw.f32("input")

    def check(outputs: Outputs) -> bool:
        found = outputs["output"][0]
        return bool((found["argmin"], found["argmax"]) == (data().argmin(), data().argmax()))

    both, one = gw.struct(min=x, argmin=gw.index, max=x, argmax=gw.index), gw.struct(value=x, index=gw.index)
    sides = {
        harness.OURS: lambda: harness.Ours(gw.Reduce(bench.device, both, gw.ArgMinMax), {"input": array()}, check),
        "plain": lambda: harness.Ours(gw.Reduce(bench.device, one, gw.ArgMax), {"input": array()}),
        "torch": _peer(bench, "torch", lambda library: library.array(data()).argmax),
    }
    yield harness.Case("argminmax f32", n, sides, "both ends", 4 * n)


def medians(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield medians, the lower one of two."""
    kinds: dict[str, tuple[type, Callable[[np.random.Generator, int], np.ndarray]]] = {
        "u32": (np.uint32, lambda r, k: r.integers(0, 1 << 31, k, dtype=np.uint32)),
        "uniform f32": (np.float32, lambda r, k: r.random(k, np.float32)),
        "normal f32": (np.float32, lambda r, k: r.standard_normal(k, np.float32)),
        "equal f32": (np.float32, lambda r, k: np.ones(k, np.float32)),
    }
    for name, (dtype, fill) in kinds.items():
        data = functools.cache(lambda dtype=dtype, fill=fill: harness.in_parts(n, dtype, fill, 5))
        array = functools.cache(lambda data=data: gw.asarray(data(), bench.device))
        right = functools.cache(lambda data=data: np.partition(data(), (n - 1) // 2)[(n - 1) // 2 :][:1])
        datatype = gw.DATATYPES["u32" if dtype is np.uint32 else "f32"]

        def ours(array: Any = array, right: Any = right, datatype: Any = datatype) -> harness.Side:
            places = gw.full(1, (n - 1) // 2, "u32", bench.device)
            primitive = gw.NthElement(bench.device, datatype)
            return harness.Ours(primitive, {"input": array(), "places": places}, _is(right, "values"))

        def call(library: harness.Library, data: Any = data) -> Callable[[], Any]:
            x = library.array(data())
            if library.name == "cupy":
                return functools.partial(library.module.partition, x, (n - 1) // 2)
            return functools.partial(library.torch.kthvalue, x, (n - 1) // 2 + 1)

        sides = {
            harness.OURS: ours,
            "plain": lambda array=array, datatype=datatype: harness.Ours(
                gw.Sort(bench.device, datatype), {"input": array()}
            ),
            "torch": _peer(
                bench, "torch", call, right,
                lambda found: found[0].reshape(1),
            ),
            "torch sort": _peer(bench, "torch", lambda library, data=data: library.array(data()).sort),
            "cupy": _peer(bench, "cupy", call),
        }  # fmt: skip
        yield harness.Case(f"median of {name}", n, sides, "nth", 4 * n)


def ranges(bench: harness.Bench, n: int) -> Iterator[harness.Case]:
    """Yield copies of ranges."""
    for mean in (8, 256, 1 << 13, 1 << 20):
        count = -(-n // mean)
        axes = {"n": n, "run": str(mean)}

        @functools.cache
        def data(count: int = count, axes: Any = axes) -> dict[str, np.ndarray]:
            rng = np.random.default_rng(6)
            own = {name: make(rng, count, np.dtype(np.uint32), axes) for name, make in RANGE_DATA.items()}
            return {"source": rng.integers(0, 1 << 32, n, dtype=np.uint32), **own}

        def ours(data: Any = data) -> harness.Side:
            primitive = ScatteredRanges(bench.device, "u32")
            right = functools.partial(primitive.reference, **data())
            given = {name: gw.asarray(items, bench.device) for name, items in data().items()}
            return harness.Ours(primitive, given, _is(right))

        def plain(data: Any = data) -> harness.Side:
            return harness.Ours(gw.Copy(bench.device, "u32"), {"input": gw.asarray(data()["source"], bench.device)})

        sides = {harness.OURS: ours, "plain": plain}
        yield harness.Case(f"ranges of {mean:,} items", n, sides, "ranges", 8 * n, {"mean": mean})


@harness.command(__doc__, n="2^24,2^28", peers="torch,cupy", rounds=3)
def main(bench: harness.Bench) -> Iterator[harness.Case]:
    """Yield the cases."""
    for n in bench.sizes:
        yield from along_axis(bench, n, "axis")
        yield from along_axis(bench, n, "axis scans")
        yield from reductions(bench, n)
        yield from top_k(bench, n) if n >= 100 else ()
        yield from searches(bench, n)
        yield from gathers(bench, n)
        yield from firsts(bench, n)
        yield from both_ends(bench, n)
        yield from medians(bench, n)
        yield from ranges(bench, n)


if __name__ == "__main__":
    main()
