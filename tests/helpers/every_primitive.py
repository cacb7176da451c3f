"""One generator of configurations and calls for all primitives, from their signatures alone.

A *configuration* is all that a kernel is compiled for: a primitive and a value of each of its axes, such as datatype,
operator, strategy, subgroups, and how the arguments lie. `covering` chooses few of them, so that every two values meet.
What a kernel is not compiled for costs next to nothing: a `Call` runs a configuration at one length, in views between
items that must stay as they are.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.workloads import USUAL_AXES, WORKLOADS
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.planning.signature import SameAs
from gridwise_py.primitives import REGISTRY
from gridwise_py.primitives.engines.operator import OperatorPrimitive
from gridwise_py.runtime.context import context_of
from helpers.matmul import SHAPES as MATMUL_SHAPES
from helpers.strategies import AFFINE, KINDS, STRATEGIES, make_primitive, strategy_options, tuning_of

Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = frozenset[tuple[str, Any]]

#: Small shapes, for many workgroups of few items: of each tuning those fields that it has.
_SMALL = {"workgroup_size": 64, "vecs": 1, "max_blocks": 8}
_OTHER_SHAPES = {
    "parts": {"workgroup_size": 256, "items": 2, "parts": 1},
    "window": {"workgroup_size": 256, "items": 3},
    "merge": {"workgroup_size": 64, "vecs": 2},
    "tile_m": MATMUL_SHAPES["one stage"][0],
}
#: Around whole vec4, subgroups, workgroups, tiles of the small shapes, and blocks of them.
LENGTHS = (0, 1, 3, 4, 5, 17, 255, 256, 257, 513, 1_025, 4_099, 17_003)
#: Where a binding holds little more than 1,024 items, and where arguments are cut: each number of bindings has a text.
PARTED_LENGTHS = {"windows": (1_100, 2_047), "chunks": (1_100,)}
#: Those whose outputs, or 8 KiB of counters, lie in one binding.
_ONE_BINDING = ("repeat", "nth_element")
#: Tunings of primitives that reach their items by the same code; those of one kernel, which has the forms, too.
_OF_ONE_CODE = (gw.ScanTuning, gw.SortTuning, gw.StreamTuning)
OF_ONE_KERNEL = (gw.SortTuning, gw.StreamTuning)
_MOST_MATRIX_ITEMS = 1 << 14
#: Datatypes of results by those of items: as numpy widens them for sums, and as a caller may ask.
_RESULTS = {
    "wider": {
        "bool": "i64", "u8": "u64", "i8": "i64", "u16": "u64", "i16": "i64", "u32": "u64", "i32": "i64", "f16": "f32",
        "f32": "f64",
    },
    "other": {"u8": "i16", "u32": "u8", "i32": "u64", "i64": "i16"},
}  # fmt: skip
TRIANGLE = gw.Struct("Triangle", a="u32", b="u32", c="u32")
#: Not commutative: of numbers, and of upper triangular matrices with ones in the diagonal, of an odd number of words.
OWN_OPERATORS = {
    "affine": AFFINE,
    "triangular": gw.BinOp(
        "triangular", identity=(0, 0, 0), commutative=False,
        numpy=lambda x, y: TRIANGLE.array(a=x["a"] + y["a"], b=x["b"] + y["b"], c=x["c"] + y["c"] + x["a"] * y["b"]),
        wgsl="fn combine(x: T, y: T) -> T { return T(x.a + y.a, x.b + y.b, x.c + y.c + x.a * y.b); }",
    ),
}  # fmt: skip
_SENTINEL = 0x5A
_OFFSETS = {"aligned": (0, 16, 64), "unaligned": (1, 2, 3, 77)}


# ---- configurations


def axes(name: str) -> dict[str, tuple[Any, ...]]:
    """Return the axes of a primitive with their values, as its constructor and its arguments have them."""
    cls, known = REGISTRY[name], inspect.signature(REGISTRY[name].__init__).parameters
    tuned = _tuned(cls)
    found: dict[str, tuple[Any, ...]] = {"datatype": tuple(cls.datatypes)}
    if "op" in WORKLOADS[name].axes:
        own = ("affine",) * issubclass(cls, OperatorPrimitive) + ("triangular",) * (name in ("reduce", "scan"))
        found["op"] = ("add", "min", "max", "multiply", *own)
    if "kind" in known:
        found["kind"] = KINDS
    if "descending" in known:
        found["descending"] = (False, True)
    if "parts" in tuned:
        found["strategy"] = ("onesweep", "reduce_then_scan")
    elif "strategy" in known and "tickets" in tuned:
        found["strategy"] = STRATEGIES if "state" in tuned else ("reduce_then_scan", "lookback", "lookback-tickets")
    elif "state" in tuned:
        found["state"] = ("u64", "u32x2")
    if "subgroups" in tuned:
        found["subgroups"] = ("native", "none", "emulated-16")
    if "spin_limit" in tuned:
        found["stall_every"] = (0, 1, 3)
    if "result_dtype" in known:
        found["result"] = ("as items", *_RESULTS)
    form = ["whole"] + ["windows"] * (name not in _ONE_BINDING)
    form += ["in place"] * any(argument.overlap != "never" for argument in cls.arguments)
    form += ["chunks"] * any(argument.chunked for argument in cls.arguments if not argument.is_output)
    form += ["counted"] * cls.takes_count
    return found | {"form": tuple(form), "place": ("aligned", "unaligned", "mixed", "one buffer")}


def _tuned(cls: type[gw.Primitive]) -> set[str]:
    """Return the names of what its tuning has."""
    tuning = tuning_of(cls)
    return set() if tuning is None else {field.name for field in fields(tuning)}


def is_allowed(row: Row) -> bool:
    """Whether values go together, as far as they are there."""
    results = _RESULTS.get(row.get("result", ""))
    if row.get("op") in OWN_OPERATORS and (row.get("datatype", "u32") != "u32" or results):
        return False
    if results and (row.get("form") == "in place" or row.get("datatype", "u8") not in results):
        return False
    is_stalled = bool(row.get("stall_every")) and "parts" not in _tuned(REGISTRY[row["name"]])
    if is_stalled and row.get("strategy") == "reduce_then_scan":
        return False  # whose workgroups do not wait
    if is_stalled and row.get("form") == "in place" and row["name"] != "reduce":
        return False
    if row.get("form") == "in place":
        return "lookback" not in row.get("strategy", "") and row.get("place") != "one buffer"
    return (row.get("form"), row.get("place")) != ("chunks", "one buffer")


def _kind(datatype: str) -> str:
    """What of a datatype a kernel's text depends on most."""
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    return f"{'float' if dtype.kind == 'f' else 'integer'} of {dtype.itemsize}"


def _pairs(row: Row, *, of_each: bool) -> Iterator[Pair]:
    """Every two values of a row; of a datatype what the other one has to do with: `of_each`: all, in its primitive."""
    own = {key: value for key, value in row.items() if key != "name"}
    name = ("name", row["name"])
    if "datatype" in own and not of_each:
        own["datatype"] = gw.STORAGE_DATATYPES[row["datatype"]].itemsize_bytes
        yield frozenset({("datatype", row["datatype"])})
        if "result" in own and own["result"] in _RESULTS:
            yield frozenset({("datatype", row["datatype"]), ("result", own["result"])})
        if "op" in own:
            yield frozenset({("kind of items", _kind(row["datatype"])), ("op", row["op"])})
    # Primitives of one tuning share the text that their strategies and subgroups change.
    cls = tuning_of(REGISTRY[row["name"]])
    family = ("family", cls)
    apart = () if cls in OF_ONE_KERNEL else ("form", "place") if cls in _OF_ONE_CODE else ("datatype", "form", "place")
    yield frozenset({name})
    if row.get("op") == "triangular":
        yield from (
            frozenset({name, ("op", row["op"]), (axis, own[axis])}) for axis in ("form", "strategy") if axis in own
        )
    for item in own.items():
        yield frozenset({name if of_each or item[0] in apart else family, item})
    yield from (frozenset((*pair, name) if of_each else pair) for pair in itertools.combinations(own.items(), 2))


@cache
def covering(*, of_each: bool = False) -> tuple[Row, ...]:
    """Return few configurations in which every two values meet that go together; `of_each`: in each primitive."""
    spaces = {name: axes(name) for name in REGISTRY}
    usual = [{"name": name, "form": "whole", "place": "aligned"} for name in spaces]
    starts = usual + [
        {"name": name, a: x, b: y}
        for name, space in spaces.items()
        for a, b in itertools.combinations(space, 2)
        for x in space[a]
        for y in space[b]
    ]
    starts = [start for start in starts if is_allowed(start)]
    missing = set(itertools.chain.from_iterable(_pairs(start, of_each=of_each) for start in starts))
    used: Counter[tuple[str, Any]] = Counter()
    rows: list[Row] = []
    # Round and round the primitives, so that what each of them has is not tried with the first one alone.
    turns = {name: iter([start for start in starts if start["name"] == name]) for name in spaces}
    while turns:
        for name in list(turns):
            start = next((s for s in turns[name] if not missing.isdisjoint(_pairs(s, of_each=of_each))), None)
            if start is None:
                del turns[name]
                continue
            row = start
            for key, values in spaces[name].items():
                fitting = [row | {key: value} for value in values if is_allowed(row | {key: value})]
                if key not in row:
                    row = max(fitting, key=lambda r: (_count(r, missing, of_each), -used[key, r[key]]))
            alike = [row | {"datatype": datatype} for datatype in spaces[name]["datatype"]]
            alike = [r for r in alike if is_allowed(r) and _kind(r["datatype"]) == _kind(row["datatype"])]
            row = row if of_each else min(alike, key=lambda r: used["datatype", r["datatype"]])
            missing.difference_update(_pairs(row, of_each=of_each))
            used.update(row.items())
            rows.append(row)
    return tuple(rows)


@cache
def each_once() -> tuple[Row, ...]:
    """Return of the configurations of `covering` one for each primitive, which any device has, with many values."""
    rows = [row for row in covering() if row["datatype"] != "f64" and "u64" not in row.get("strategy", "")]
    missing, chosen = set().union(*map(_values, rows)), []
    for name in dict.fromkeys(row["name"] for row in rows):
        best = max((row for row in rows if row["name"] == name), key=lambda row: len(_values(row) & missing))
        missing -= _values(best)
        chosen.append(best)
    return tuple(chosen)


def _values(row: Row) -> set[Pair]:
    cls = tuning_of(REGISTRY[row["name"]])
    own = {key: value for key, value in row.items() if key not in ("name", "datatype")}
    kind = frozenset({("kind of items", _kind(row["datatype"]))})
    return {frozenset({("name", row["name"])}), kind, *(frozenset({("family", cls), item}) for item in own.items())}


def _count(row: Row, missing: set[Pair], of_each: bool) -> int:
    """Return how much a row brings; what its primitive has not had yet comes first."""
    rare = ("name", "family")
    return sum(
        9 if any(key in rare for key, _ in pair) else 1 for pair in _pairs(row, of_each=of_each) if pair in missing
    )


def is_possible(device: Any, row: Row) -> bool:
    """Whether a device, or one of some capabilities, has what a configuration needs."""
    need = {"subgroup"} if row.get("subgroups") == "native" else set()
    if "u64" in row.get("strategy", row.get("state", "")):
        need |= {"shader-int64", "shader-int64-atomic-all-ops"}
    has_float64 = False if isinstance(device, gw.Capabilities) else context_of(device).has_float64
    computed = _RESULTS.get(row.get("result", ""), {}).get(row["datatype"], row["datatype"])
    return need <= set(device.features) and (computed != "f64" or has_float64)


# ---- calls


@contextmanager
def fewer_bindings(device: Any) -> Iterator[None]:
    """Windows and chunks want up to 16 bindings; a device that has fewer says so, as SwiftShader's does."""
    try:
        yield
    except gw.LimitError as error:
        wanted = re.search(r"needs (\d+) storage bindings", str(error))
        if wanted is None or int(wanted[1]) > 16 or device.limits["max-storage-buffers-per-shader-stage"] >= 16:
            raise


def lengths(row: Row) -> tuple[int, ...]:
    """Return the lengths at which a configuration runs; arrays in several bindings are for some."""
    return PARTED_LENGTHS.get(row["form"], LENGTHS)


class Call:
    """A configuration at a size, with random inputs; for plans alone with capabilities in place of a device."""

    def __init__(self, device: Any, row: Row, n: int, seed: int = 0, capabilities: gw.Capabilities | None = None):
        self.device, self.row, self._capabilities = device, row, capabilities
        cls = REGISTRY[row["name"]]
        most = max(n + 1, _MOST_MATRIX_ITEMS if row["form"] == "whole" else 0)
        while max(cls.at_size(n)[1].values()) > most:  # n x n matrices
            n //= 4
        op = row.get("op", "add")
        given = {"op": "add" if op in OWN_OPERATORS else op, "segment": "100", "bins": "100", "k": "4"}
        self.case = Case.build(row["name"], n, row["datatype"], **{**USUAL_AXES, **given})
        options = {**self.case.options, **self._options(cls)}
        self._drawn = self.primitive = make_primitive(cls, device, **options)
        if op == "triangular":  # workloads draw no structs
            self.primitive = make_primitive(cls, device, **{**options, "dtype": TRIANGLE, "op": OWN_OPERATORS[op]})
        self.signature = self.primitive.signature
        self.inputs = self._items(seed)
        self.lengths = {name: items.size for name, items in self.inputs.items()}
        for name in self.signature.outputs:
            self.lengths[name] = self.signature.output_length(name, self.lengths)

    def _options(self, cls: type[gw.Primitive]) -> dict[str, Any]:
        row, tuned = self.row, _tuned(cls)
        shape = next((shape for field, shape in _OTHER_SHAPES.items() if field in tuned), _SMALL)
        shape = shape | ({"vecs": 4} if cls is gw.Transpose else {})  # of whole tiles of 1,024
        options = {key: value for key, value in shape.items() if key in tuned}
        options |= {key: row[key] for key in ("kind", "descending", "state", "subgroups") if key in row}
        if row.get("result") in _RESULTS:
            options["result_dtype"] = _RESULTS[row["result"]][row["datatype"]]
        if row.get("stall_every"):
            options |= {"stall_every": row["stall_every"], "spin_limit": 2}
        if row.get("stall_every") == 1 and "state" in tuned:
            options["epoch_bits"] = 1  # so that words of two dispatches ago look new
        if row.get("op") == "affine":
            options["op"] = AFFINE
        if "strategy" in row:
            chosen = strategy_options(row["strategy"])
            options |= {key: value for key, value in chosen.items() if key == "strategy" or key in tuned}
        if self._capabilities is not None:
            options["capabilities"] = self._capabilities
        elif row.get("form") == "windows":
            own, widest = gw.capabilities(self.device), gw.STORAGE_DATATYPES[row["datatype"]].itemsize_bytes
            widest = TRIANGLE.dtype.itemsize if row.get("op") == "triangular" else widest
            limit = 1024 * max(widest, 4) + 272
            narrow = {"max-storage-buffer-binding-size": limit, "min-storage-buffer-offset-alignment": 256}
            options["capabilities"] = replace(own, limits={**own.limits, **narrow})
        return options

    def _items(self, seed: int) -> dict[str, np.ndarray]:
        found = self.case.inputs(self._drawn, seed)
        for name, items in found.items():
            rule = self.signature.arguments[name]
            if self.row.get("op") == "affine" and not rule.is_apart:
                items |= np.uint32(1 << 16)  # the product of odd factors does not become 0
            if self.dtype(name) == TRIANGLE.dtype:
                words = np.random.default_rng([seed, items.size]).integers(0, 1 << 32, 3 * items.size, np.uint32)
                found[name] = words.view(TRIANGLE.dtype)
            if self.row.get("descending") and rule.ascending:
                found[name] = items[::-1].copy()
        return found

    def dtype(self, name: str) -> np.dtype:
        """The dtype of an argument's items."""
        return self.signature.datatype(name).dtype

    def upload(self) -> dict[str, gw.Array]:
        """Return the inputs in buffers of their own."""
        return {name: gw.asarray(items, self.device) for name, items in self.inputs.items()}

    def place(self) -> dict[str, gw.Array]:
        """Return all arguments as its configuration says that they lie."""
        return dict(_Memory(self, 0, {}).views)

    def with_count(self, count: int | None) -> dict[str, np.ndarray]:
        """Return the inputs, with the number of items that count, if there is one."""
        return self.inputs if count is None else self.inputs | {"n": np.array([count], np.uint32)}

    def check(self, outputs: dict[str, Any], count: int | None = None) -> None:
        """Compare outputs with the primitive's twin in numpy."""
        got = {name: each if isinstance(each, np.ndarray) else each.to_numpy() for name, each in outputs.items()}
        found = mismatch(self.primitive, self.with_count(count), got)
        assert found is None, f"{self.row}, {self.lengths}, n={count}: {found}"

    # ---- as its configuration says

    def run(self, turn: int = 0) -> None:
        """Run it, with other items, too; compare, and see that nothing else was written. Offsets depend on the turn."""
        form = self.row["form"]
        is_reduction = self.row["name"] == "reduce" and not self.primitive.op.empty  # of no items: has no result
        if is_reduction and not self.case.n:
            with pytest.raises(gw.EmptyReductionError):
                self.primitive.execute(**self.upload())
            return
        if form == "in place":
            for output, argument in itertools.product(self.signature.outputs, self.signature.inputs):
                if self.lengths[output] <= self.lengths[argument]:
                    self._run(turn, trials=1, on={output: argument})
            return
        # Fewer than k items have no k largest ones.
        least = self.case.options.get("k", int(is_reduction))
        counts = [count for count in (self.case.n // 2 + 1, self.case.n + 7, 0) if count >= least]
        for count in counts if form == "counted" else [None]:
            self._run(turn, trials=2, count=count)

    def _run(self, turn: int, trials: int, on: Mapping[str, str] = MappingProxyType({}), count: int | None = None):
        memory = _Memory(self, turn, on)
        views = dict(memory.views)
        if self.row["form"] == "chunks":
            views = {name: self._cut(view) if self._is_chunked(name) else view for name, view in views.items()}
            if self.row["place"] == "mixed":
                views = {name: view for name, view in views.items() if name in self.inputs}
        if count is not None:
            numbers = gw.asarray(np.array([1, count, 2], np.uint32), self.device)
            views["n"] = numbers[1:2]
        run = self.primitive.execute(**views, trials=trials)
        if self.row["form"] == "chunks":  # what goes in decides, not how long it happens to be
            chunked = {name: isinstance(array, gw.ChunkedArray) for name, array in run.outputs.items()}
            assert chunked == {name: self._is_chunked(name) for name in run.outputs}, self.row
        self.check(run.outputs, count)
        memory.check(count)
        for kernel in run.plan.kernels:
            assert not aliases(run.plan, kernel), f"{self.row}, {self.lengths}: WebGPU refuses {kernel.bindings}"
        if self.case.n > 1_000 and not on:
            self.inputs = self._items(seed=1)
            for name, items in self.inputs.items():
                memory.views[name].copy_from(items)
            self.check(self.primitive.execute(**views).outputs, count)

    def _is_chunked(self, name: str) -> bool:
        return self.signature.arguments[name].chunked

    def _cut(self, view: gw.Array) -> gw.ChunkedArray:
        """Two chunks of one buffer: whole words, which two items of 16 bits share."""
        cut = view.size // 3 // 4 * 4
        return gw.ChunkedArray([view[:cut], view[cut:]])


def aliases(plan: gw.Plan, kernel: Any) -> bool:
    """Whether two bindings of a kernel are what WebGPU refuses, and wgpu does not: of one buffer, and one is written.

    A buffer is read or written in all bindings of a dispatch, and ranges that are written share no byte.
    """
    sizes = {spec.name: spec.size_bytes for spec in plan.buffers}
    for one, other in itertools.combinations(kernel.bindings, 2):
        if one.buffer == other.buffer and "read_write" in (one.access, other.access):
            first, second = sorted((one, other), key=lambda binding: binding.offset_bytes)
            size_bytes = sizes[first.buffer] if first.size_bytes is None else first.size_bytes
            if one.access != other.access or second.offset_bytes < first.offset_bytes + size_bytes:
                return True
    return False


class _Memory:
    """The arguments of a call as views of buffers that are full of sentinels."""

    def __init__(self, call: Call, turn: int, on: Mapping[str, str]):
        self.call, place = call, call.row["place"]
        ends: Counter[str] = Counter()
        self.slices: dict[str, tuple[str, slice]] = {}
        firsts = {}
        for number, (name, length) in enumerate(call.lengths.items()):
            buffer, size = "all" if place == "one buffer" else on.get(name, name), call.dtype(name).itemsize
            offset = self._offset(turn + number, number, place, size)
            firsts[name] = firsts[on[name]] if name in on else -(-ends[buffer] // 64) * 64 // size + offset
            begin = firsts[name] * size
            self.slices[name] = buffer, slice(begin, begin + length * size)
            ends[buffer] = max(ends[buffer], begin + (length + 5) * size)
        self.before = {buffer: np.full(-(-end // 16) * 16, _SENTINEL, np.uint8) for buffer, end in ends.items()}
        for name, items in call.inputs.items():
            buffer, where = self.slices[name]
            self.before[buffer][where] = items.view(np.uint8)
        self.buffers = {buffer: gw.asarray(items, call.device) for buffer, items in self.before.items()}
        self.views = {
            name: gw.Array(self.buffers[buffer].buffer, call.signature.datatype(name), call.lengths[name], firsts[name])
            for name, (buffer, _) in self.slices.items()
        }

    def _offset(self, turn: int, number: int, place: str, size: int) -> int:
        kind = {"mixed": ("aligned", "unaligned")[number % 2], "one buffer": "unaligned"}.get(place, place)
        if self.call.row["form"] == "chunks" and size < 4:
            kind = "aligned"
        return _OFFSETS[kind][turn % len(_OFFSETS[kind])]

    def check(self, count: int | None) -> None:
        """Fail if something was written that is no item of an output."""
        outside = {buffer: np.ones(items.size, bool) for buffer, items in self.before.items()}
        for name in self.call.signature.outputs:
            buffer, where = self.slices[name]
            rule, size = self.call.signature.arguments[name].length, self.call.dtype(name).itemsize
            if count is not None and isinstance(rule, SameAs):  # items behind the count stay
                where = slice(where.start, min(where.stop, where.start + count * size))
            outside[buffer][where] = False
        for buffer, items in self.before.items():
            changed = outside[buffer] & (self.buffers[buffer].to_numpy() != items)
            assert not changed.any(), f"{self.call.row}, {self.call.lengths}: byte {changed.argmax()} of {buffer}"
