"""Copies, sums, scans and sorts beside CUB, PyTorch and CuPy: the same bytes of the same data.

Usage: python benchmarks/peers/compare_peer.py [--n 2^20,2^24,2^26,2^28] [--cases "sort;sort_pairs"] [--json FILE]
       python benchmarks/peers/compare_peer.py --n 2^12 --peers none      (any GPU, also a software one)

harness.py says what is measured, and how. Groups: arrays (copy, vector_add, reduce, scan, scan_exclusive), sorts (sort,
sort_pairs), host (a sort from numpy to numpy), forms (our own scans and sorts of other kinds, datatypes and data, all
relative to the first of them), products (of matrices of n × n, at most 2^14; GRIDWISE_ENGINE=dawn has tensor cores for
f16, PyTorch's f32 are not rounded to TF32). The site's tables are made from the files (docs/_ext/benchmark_pages.py),
and so are pictures (peers_picture.py, first_picture.py).

CUB's vector add is cub::DeviceFor::Bulk, its copy cudaMemcpyAsync. Sums of floats, whose bits depend on the order of
additions, are compared by a further call on whole numbers, of which every order gives the same sums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import harness
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case as Usual
from gridwise_py.bench.cases.distributions import DISTRIBUTIONS, UNIFORM, random_items
from gridwise_py.bench.checks.check import differences, mismatch
from gridwise_py.cli.options import AxisList

ARRAYS = ("copy", "vector_add", "reduce", "scan", "scan_exclusive")
SORTS = ("sort", "sort_pairs")
#: Whole numbers up to here are floats of 32 bits.
_EXACT = 1 << 24
#: Up to here a sort from numpy to numpy is timed, too.
_MOST_ON_HOST = 1 << 24
_MOST_ROWS = 1 << 14

# Of scans datatype, operator and kind; of sorts datatype, options and data.
FORMS: dict[str, dict[str, tuple[Any, ...]]] = {
    "scan": {
        "u32 add": ("u32", "add", "inclusive"),
        "u32 add, exclusive": ("u32", "add", "exclusive"),
        "i32 add": ("i32", "add", "inclusive"),
        "f32 add": ("f32", "add", "inclusive"),
        "u32 min": ("u32", "min", "inclusive"),
        "u32 max": ("u32", "max", "inclusive"),
        "u32 multiply": ("u32", "multiply", "inclusive"),
        "f32 min": ("f32", "min", "inclusive"),
    },
    "sort": {
        "u32": ("u32", {}, UNIFORM),
        "u32, descending": ("u32", {"descending": True}, UNIFORM),
        "i32": ("i32", {}, UNIFORM),
        "f32": ("f32", {}, UNIFORM),
        "f32, descending": ("f32", {"descending": True}, UNIFORM),
        "u32, reduce then scan": ("u32", {"strategy": "reduce_then_scan"}, UNIFORM),
        "u32, 16 bits": ("u32", {"end_bit": 16}, UNIFORM),
        "u64": ("u64", {}, UNIFORM),
        "f64": ("f64", {}, UNIFORM),
        "positions of u32": ("u32", None, UNIFORM),
        **{f"u32, {name}": ("u32", {}, name) for name in DISTRIBUTIONS if name not in (UNIFORM, "specials")},
        "f32, specials": ("f32", {}, "specials"),
        "f32, zipf": ("f32", {}, "zipf"),
    },
}


def exact_items(n: int) -> np.ndarray:
    """Return whole numbers as f32, of which every order of additions gives the same sums, to the bit.

    The sum of their magnitudes is at most 2²⁴. So the sum of any of them is a whole number of at most 2²⁴, which is a
    float: no addition rounds, and a right result needs no tolerance. Of other items it would need about h·2⁻²⁴·Σ|x|,
    where the depth h of the additions grows with the number of tiles in a chain. At 2²⁸ items that is more than the
    sum of a tile, and a scan that leaves out a tile would pass.
    """
    rng = np.random.default_rng(n)
    if n <= _EXACT:
        most = _EXACT // max(n, 1)
        return rng.integers(-most, most, n, endpoint=True).astype(np.float32)
    each = -(-n // _EXACT)  # one of so many consecutive items is not 0
    items = np.zeros(n, np.float32)
    places = np.arange(0, n - each + 1, each)
    items[places + rng.integers(0, each, places.size)] = rng.choice(np.array([-1, 1], np.float32), places.size)
    return items


class Work:
    """What all sides do.

    Parameters
    ----------
    device : wgpu.GPUDevice
    spec, datatype, distribution : str
    n : int
    """

    def __init__(self, device: Any, spec: str, n: int, datatype: str, distribution: str):
        self.spec, self.datatype, self.n = spec, datatype, n
        name = spec.removesuffix("_exclusive")
        self._device, self._case = device, Usual.build(name, n, datatype, "add", distribution)
        self._sums_of_floats = datatype in ("f32", "f64") and name in ("scan", "reduce")

    @functools.cached_property
    def primitive(self) -> Any:
        """Ours."""
        if self.spec == "scan_exclusive":
            return gw.Scan(self._device, self.datatype, kind="exclusive")
        return self._case.make(self._device)

    @functools.cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """The data."""
        return self._case.inputs(self.primitive, seed=0)

    @functools.cached_property
    def expected(self) -> tuple[np.ndarray, ...]:
        """What must come out; of sums of floats for `checked`."""
        found = self.primitive.reference(**self.checked)
        return found if isinstance(found, tuple) else (found,)

    @functools.cached_property
    def checked(self) -> dict[str, np.ndarray]:
        """The data that every side must have the exact results of."""
        if not self._sums_of_floats:
            return self.inputs
        return {"input": exact_items(self.n).astype(self.inputs["input"].dtype)}

    def wrong(self, outputs: Mapping[str, np.ndarray]) -> str | None:
        """Return what is wrong with our results."""
        if not self._sums_of_floats:
            found = differences(self.primitive, self.inputs, dict(outputs), self.expected)
            return None if found is None else str(found)
        found = mismatch(self.primitive, self.inputs, dict(outputs))
        if found is not None:
            return str(found)
        run = self.primitive.execute(**{name: gw.asarray(items, self._device) for name, items in self.checked.items()})
        got, words = run.output.to_numpy(), np.dtype(f"u{self.expected[0].itemsize}")
        where = np.flatnonzero(got.view(words) != self.expected[0].view(words))
        self.primitive.execute(**{name: gw.asarray(items, self._device) for name, items in self.inputs.items()})
        if not where.size:
            return None
        i = where[0]
        return f"of whole numbers, item {i} is {got[i]}, expected {self.expected[0][i]} ({where.size:,} differ)"

    def ours(self) -> harness.Ours:
        """Return our side."""
        arrays = {name: gw.asarray(items, self._device) for name, items in self.inputs.items()}
        return harness.Ours(self.primitive, arrays, self.wrong)

    def cub(self, server: harness.CubServer) -> harness.Cub:
        """Return CUB's side, whose results were compared."""
        command = ("case", self.spec, self.datatype, self.n, *(f"{name}={name}" for name in self.inputs))
        right = [harness.checksum(items) for items in self.expected]
        side = harness.Cub(server, command, self.checked, right)
        if self._sums_of_floats:
            is_right = side.correct
            side = harness.Cub(server, command, self.inputs)
            side.correct = is_right
        return side

    def called(self, library: harness.Library) -> harness.Called:
        """Return PyTorch's or CuPy's side; raise NotImplementedError where it has none."""
        arrays = [library.array(items) for items in self.inputs.values()]
        calls = _torch_calls if library.name == "torch" else _cupy_calls
        found = calls(library.module, arrays)
        if self.spec not in found:
            raise NotImplementedError(f"{library.name} has no {self.spec.replace('_', ' ')}")

        def check(result: Any) -> bool:
            got = np.atleast_1d(library.numpy(result[0] if isinstance(result, tuple) else result))
            if self._sums_of_floats:
                return mismatch(self.primitive, self.inputs, {"output": got}) is None
            return bool(np.array_equal(got.view(self.expected[0].dtype), self.expected[0]))

        return harness.Called(library, found[self.spec], None if self.spec.startswith("sort") else check)


def _torch_calls(torch: Any, arrays: list[Any]) -> dict[str, Callable[[], Any]]:
    x = arrays[0]
    out, one = torch.empty_like(x), torch.empty((), dtype=x.dtype, device="cuda")
    places = (torch.empty_like(x), torch.empty_like(x, dtype=torch.int64))  # torch.sort gives the positions as well
    return {
        "copy": lambda: out.copy_(x),
        "vector_add": lambda: torch.add(x, arrays[-1], out=out),
        "reduce": lambda: torch.sum(x, dim=0, dtype=x.dtype, out=one),
        "scan": lambda: torch.cumsum(x, 0, dtype=out.dtype, out=out),
        "sort": lambda: torch.sort(x, stable=True, out=places),
    }


def _cupy_calls(cupy: Any, arrays: list[Any]) -> dict[str, Callable[[], Any]]:
    x = arrays[0]
    out, one = cupy.empty_like(x), cupy.empty((), dtype=x.dtype)

    def copy() -> Any:
        cupy.copyto(out, x)
        return out

    return {
        "copy": copy,
        "vector_add": lambda: cupy.add(x, arrays[-1], out=out),
        "reduce": lambda: cupy.sum(x, dtype=out.dtype, out=one),
        "scan": lambda: cupy.cumsum(x, dtype=out.dtype, out=out),
        "sort": lambda: cupy.sort(x),
    }


def case_of(bench: harness.Bench, spec: str, n: int, datatype: str, distribution: str) -> harness.Case:
    """Return a case of all sides."""
    work = Work(bench.device, spec, n, datatype, distribution)
    is_sort = spec in SORTS
    facts = {"primitive": spec, "datatype": datatype, **({"distribution": distribution} if is_sort else {})}

    def moved(sides: Mapping[str, harness.Side]) -> float | None:
        ours = sides.get(harness.OURS)
        return ours.run.plan.work.moved_bytes if isinstance(ours, harness.Ours) else None

    return harness.Case(
        ", ".join([spec, *([distribution] if distribution != UNIFORM else []), datatype]), n,
        {
            harness.OURS: work.ours,
            "cub": lambda: work.cub(bench.cub),
            "torch": lambda: work.called(bench.library("torch")),
            "cupy": lambda: work.called(bench.library("cupy")),
        },
        "sorts" if is_sort else "arrays", moved, facts,
    )  # fmt: skip


def on_host(bench: harness.Bench, n: int, datatype: str) -> harness.Case:
    """Return what a caller with numpy arrays waits for a sort: on the GPU, up and down, and numpy's stable sort."""
    keys = functools.cache(
        lambda: random_items(UNIFORM, np.random.default_rng(n), n, np.dtype(gw.DATATYPES[datatype].dtype))
    )
    return harness.Case(
        f"from numpy to numpy: sort, {datatype}", n,
        {
            harness.OURS: lambda: harness.Walls(
                lambda: gw.sort(gw.asarray(keys(), bench.device)).to_numpy(),
                check=lambda got: np.array_equal(got, np.sort(keys())),
            ),
            "numpy": lambda: harness.Walls(lambda: np.sort(keys(), kind="stable")),
        },
        "host", facts={"of": "sort", "datatype": datatype},
    )  # fmt: skip


def form_of(
    bench: harness.Bench, which: str, n: int, data: Callable[[str, str], Any], form: tuple[Any, ...]
) -> harness.Ours:
    """Return a scan or a sort of another form."""
    if which == "scan":
        datatype, op, kind = form
        primitive, distribution = gw.Scan(bench.device, datatype, op, kind=kind), UNIFORM
    else:
        datatype, options, distribution = form
        cls = gw.ArgSort if options is None else gw.Sort
        primitive = cls(bench.device, datatype, **(options or {}))
    items, array = data(datatype, distribution)

    def check(outputs: Mapping[str, np.ndarray]) -> str | None:
        found = mismatch(primitive, {"input": items}, dict(outputs))
        return None if found is None else str(found)

    return harness.Ours(primitive, {"input": array}, check)


def forms(bench: harness.Bench, which: str, n: int) -> harness.Case:
    """Return the case of all forms of a primitive, in turns."""

    @functools.cache
    def data(datatype: str, distribution: str) -> tuple[np.ndarray, gw.Array]:
        items = random_items(distribution, np.random.default_rng(n), n, gw.STORAGE_DATATYPES[datatype].dtype)
        return items, gw.asarray(items, bench.device)

    sides = {name: functools.partial(form_of, bench, which, n, data, form) for name, form in FORMS[which].items()}
    return harness.Case(f"forms of {which}", n, sides, "forms", facts={"of": which})


def product_of(bench: harness.Bench, n: int, datatype: str) -> harness.Case:
    """Return a product of two matrices of n × n."""

    @functools.cache
    def matrices() -> list[np.ndarray]:
        rng = np.random.default_rng(n)
        return [rng.uniform(-1, 1, n * n).astype(datatype.replace("f", "float")) for _ in range(2)]

    def is_right(got: np.ndarray) -> bool:
        # Some rows, which show every tile's columns.
        a, b = (items.reshape(n, n).astype(np.float64) for items in matrices())
        rows = slice(None, None, max(1, n // 61))
        # As of sums in checks, not the most that n roundings can do: at 2^14 that is more than a step of tiles adds.
        # Of f16 two roundings: PyTorch may add parts in f16.
        bound = 32 * 2.0**-23 * (np.abs(a[rows]) @ np.abs(b)) + (2.0**-9 if datatype == "f16" else 0) * n**0.5
        return bool((np.abs(got.reshape(n, n)[rows].astype(np.float64) - a[rows] @ b) <= bound).all())

    def ours() -> harness.Ours:
        arrays = {name: gw.asarray(items, bench.device) for name, items in zip("ab", matrices(), strict=True)}
        primitive = gw.MatMul(bench.device, datatype, m=n, n=n, k=n)
        return harness.Ours(primitive, arrays, lambda outputs: is_right(outputs["output"]))

    def called(name: str) -> harness.Called:
        library = bench.library(name)
        x, y = (library.array(items.reshape(n, n)) for items in matrices())
        out = library.module.empty_like(x)
        return harness.Called(
            library, lambda: library.module.matmul(x, y, out=out), lambda result: is_right(library.numpy(result))
        )

    return harness.Case(
        f"product of n × n, {datatype}", n,
        {harness.OURS: ours, "torch": lambda: called("torch"), "cupy": lambda: called("cupy")},
        "products", facts={"primitive": "matmul", "datatype": datatype, "operations": 2 * n**3},
    )  # fmt: skip


@harness.command(
    __doc__, n="2^20,2^24,2^26,2^28", peers="cub,torch,cupy", rounds=3, samples=10, cases="arrays",
    more=[
        click.option("--datatypes", type=AxisList("datatype"), default="u32,f32", show_default=True),
        click.option("--distributions", type=AxisList("distribution"), default=UNIFORM, help="Of sorts."),
    ],
)  # fmt: skip
def main(bench: harness.Bench, datatypes: list[str], distributions: list[str]) -> Iterator[harness.Case]:
    """Yield the cases."""
    for n in bench.sizes:
        for spec in (*ARRAYS, *SORTS):
            for datatype in datatypes:
                for distribution in distributions if spec in SORTS else [UNIFORM]:
                    yield case_of(bench, spec, n, datatype, distribution)
        for datatype in datatypes if n <= _MOST_ON_HOST else ():
            yield on_host(bench, n, datatype)
        for which in FORMS:
            yield forms(bench, which, n)
        for datatype in ("f16", "f32") if n <= _MOST_ROWS else ():
            yield product_of(bench, n, datatype)
        bench.forget()


if __name__ == "__main__":
    main()
