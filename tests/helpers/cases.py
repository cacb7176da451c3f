"""Every primitive in every form, for tests that need no GPU: plans, texts, Tint."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import gridwise_py as gw
from gridwise_py.internals import OwnKernel, Triad
from gridwise_py.planning.lookback_state import STATES
from gridwise_py.planning.plan import Shader
from gridwise_py.primitives import REGISTRY
from gridwise_py.primitives.convert import Convert
from gridwise_py.primitives.doubles import Doubles
from gridwise_py.primitives.engines.elementwise import Elementwise
from gridwise_py.primitives.engines.operator import check_conversion
from gridwise_py.primitives.fill import Arange, Fill
from gridwise_py.primitives.reorder import Reorder
from gridwise_py.primitives.rolling import RollingWindows
from gridwise_py.primitives.strided import Strided
from gridwise_py.primitives.take import Take
from gridwise_py.runtime.lookback_selftest import LookbackProbe
from gridwise_py.runtime.operator_check import check_plan, unary_check_plan
from gridwise_py.tuning.matmul_shapes import SubgroupShape
from gridwise_py.tuning.rows import Shape
from gridwise_py.types.capabilities import SubgroupMatrices
from gridwise_py.types.shapes import Part
from gridwise_py.types.struct_operators import SPREADS
from helpers.sorting import DATATYPES as SORTED_DATATYPES
from helpers.strategies import make_primitive

BARE = gw.Capabilities()
FULL = gw.Capabilities(
    features=frozenset({"timestamp-query", "subgroup", "shader-int64", "shader-int64-atomic-all-ops", "shader-f64"}),
    limits={"max-storage-buffer-binding-size": 2**31 - 4, "max-buffer-size": 2**32},
    subgroup_size=32,
    tick_period_ns=1.0,
)
CPU = replace(FULL, adapter_type="CPU", subgroup_size=8)
#: A device of Dawn whose subgroups multiply matrices.
MATRICES = replace(
    FULL, features=FULL.features | set(SubgroupShape.FEATURES),
    limits={**FULL.limits, "max-compute-workgroup-storage-size": 49_152, "max-compute-invocations-per-workgroup": 1024},
    subgroup_matrices=tuple(SubgroupMatrices("f16", "f32", 16, n, 16) for n in (8, 16)),
)  # fmt: skip
#: Bindings that 100,000 items do not fit into: windows, and segments.
NARROW = replace(FULL, limits={**FULL.limits, "max-storage-buffer-binding-size": 150_000,
                               "max-storage-buffers-per-shader-stage": 64})  # fmt: skip


class TakeInParts(Take):
    """Takes small tables part by part, and few indices, too."""

    _tables_bytes, _part_bytes, _least_rounds, _shape_of_parts = (0, 1 << 30), 256, 0, Shape(64, 2)


PRODUCT = gw.BinOp(
    "product",
    identity=1,
    numpy=lambda a, b: ((a & 0xFFFF) * (b & 0xFFFF)) & 0xFFFF,
    wgsl="fn combine(a: T, b: T) -> T { return T(((u32(a) & 0xffffu) * (u32(b) & 0xffffu)) & 0xffffu); }",
    commutative=False,
    check=False,  # its numpy twin is for integers, the text for all
)
USER_ADD = gw.BinOp(
    "user add",
    identity=0,
    numpy=np.add,
    wgsl="fn twice(x: T) -> T { return x + x; }\nfn combine(a: T, b: T) -> T { return twice(a) - a + b; }",
)
OPERATORS = [gw.Add, gw.Min, gw.Max, gw.Multiply, PRODUCT, USER_ADD]
USER_NEXT = gw.UnaryOp(
    "user next",
    numpy=lambda x: x + 1,
    wgsl="const f4 = T(1);\nfn f(x: T) -> T { return x + f4; }\nfn apply(x: T) -> T { return f(x); }",
)
USER_TWICE = gw.UnaryOp("user twice", numpy=lambda x: x + x, expression="x + x", max_ulps=0)
#: Operators of primitives that take others than those of reduce and scan.
OTHER_OPERATORS = {"map": [*gw.UnaryOp.builtins.values(), USER_NEXT, USER_TWICE]}
_UNLIKE_KEYS = ("u64", "i64", "f64", "f16")
SORTS = ("sort", "sort_pairs", "argsort")
MERGES = ("merge", "merge_sort")
STREAMS = ("select", "partition", "unique", "run_length")
#: Those whose plans `segment_plans` and `array_plans` make.
APART = (
    "scan_by_key", "reduce_by_key", "segmented_scan", "segmented_reduce", "reduce_axis", "repeat", "reduce_by_index",
)  # fmt: skip
SUBGROUPS = ["native", "none", "emulated-4", "emulated-64"]


class Case(NamedTuple):
    """A primitive's class, the options that `make_primitive` takes, and capabilities."""

    name: str
    options: dict[str, Any]
    capabilities: gw.Capabilities

    @property
    def cls(self) -> type[gw.Primitive]:
        """The class."""
        return Triad if self.name == "triad" else REGISTRY[self.name]

    def _size(self, n: int) -> int:
        """The size at which the longest input has n items, or fewer: rows and columns, of matrices."""
        longest = max(self.cls.at_size(n)[1].values())
        return n if n <= 2 * longest <= 2 * n else math.isqrt(n)  # a merge has two halves

    def _planner(self, size: int) -> gw.Primitive:
        options = {**self.cls.at_size(size)[0], **self.options}
        if "k" in options and self.name == "top_k":
            options["k"] = min(options["k"], size)
        return make_primitive(self.cls, None, capabilities=self.capabilities, **options)

    def lengths(self, n: int) -> dict[str, int]:
        """Lengths of a layout for n items; matrices are the largest square ones that n items make."""
        signature = self._planner(self._size(n)).signature
        inputs = self.cls.at_size(self._size(n))[1]
        inputs |= {name: signature.output_length(name, inputs) for name in signature.inputs if name not in inputs}
        lengths = {**inputs, **{name: signature.output_length(name, inputs) for name in signature.outputs}}
        types = {name: signature.datatype(name) for name in lengths}
        return {name: length * (types[name].elements if types[name] else 1) for name, length in lengths.items()}

    def item_bytes(self, name: str) -> int:
        """Size of what layouts count of an argument."""
        return self._planner(1).signature.datatype(name).element_bytes

    def make(self, layout: gw.Layout) -> gw.Primitive:
        """Return a new instance, for planning; one of matrices is for those of the layout."""
        return self._planner(self._size(next(iter(layout.values())).length))

    def plan(self, layout: gw.Layout) -> gw.Plan:
        """Return the plan, made by a new instance."""
        return self.make(layout).plan(layout)

    def __str__(self) -> str:
        words = (str(getattr(v, "name", getattr(v, "__name__", v))) for v in self.options.values())
        options = "-".join(word.replace(" ", "_") for word in words)
        return f"{self.name}-{options}-{'cpu' if self.capabilities.is_cpu else 'gpu'}"


def cases(capabilities: gw.Capabilities = FULL) -> Iterator[Case]:
    """Every primitive × datatype × operator × subgroup mode × strategy × state."""
    if capabilities is FULL:
        yield Case("matmul", {"dtype": "f16"}, MATRICES)
    for datatype in gw.MatMul.datatypes:
        yield Case("matmul", {"dtype": datatype}, capabilities)
        for stages in (1, 2):
            shape = {"tile_n": 32, "tile_k": 8, "thread_n": 4, "stages": stages}
            yield Case("matmul", {"dtype": datatype, **shape}, capabilities)
    yield from _reproducible(capabilities)
    yield from _other_items(capabilities)
    for datatype in SORTED_DATATYPES:
        if datatype not in gw.DATATYPES:
            for name in SORTS:
                # The kernels of small keys differ from those of f16 in a few constants.
                yield from list(_sorts(name, datatype, capabilities))[:: 2 if datatype in _UNLIKE_KEYS else 7]
    yield Case("sort", {"dtype": "i8", "descending": True}, capabilities)  # by its counts
    yield from _streams(capabilities)
    for options in _HISTOGRAM_OPTIONS:
        yield Case("histogram", options, capabilities)
    for weights in ("u64", "u8"):  # whose runs are combined by a look-back: that of 32-bit words is enough
        options = {"dtype": "u32", "weights": weights, "strategy": "sort"}
        yield Case("histogram", options, replace(capabilities, features=capabilities.features - _WIDE_STATE))
    for datatype in gw.Search.datatypes:
        for side, sorter in itertools.product(("left", "right"), (False, True)):
            yield Case("search", {"dtype": datatype, "side": side, "sorter": sorter}, capabilities)
    for options in _MERGE_OPTIONS:
        yield Case("merge", options, capabilities)
    for options in (_MERGE_OPTIONS[0], *_MERGE_OPTIONS[-3:]):
        yield Case("merge_sort", options, capabilities)
    yield Case("merge", {"dtype": "u32", "value_dtype": "u32", "counted": True}, capabilities)
    for datatype in gw.TopK.datatypes:
        for options in ({"k": 100}, {"k": 1024, "sorted": False}, {"k": 2000, "mode": "smallest"}):
            yield Case("top_k", {"dtype": datatype, **options}, capabilities)
    for value_datatype in ("i32", "f64"):
        yield Case("sort_pairs", {"dtype": "u64", "value_dtype": value_datatype}, capabilities)
    for datatype in gw.DATATYPES:
        for name in REGISTRY:
            if name in ("matmul", "search", "top_k", *STREAMS, *MERGES, *APART):
                continue
            if name in SORTS:
                yield from _sorts(name, datatype, capabilities)
                continue
            if name not in ("reduce", "scan"):
                for op in OTHER_OPERATORS.get(name, [None]):
                    yield Case(name, {"dtype": datatype} | ({} if op is None else {"op": op}), capabilities)
                continue
            for op in OPERATORS:
                for mode in SUBGROUPS:
                    options: dict[str, Any] = {"dtype": datatype, "op": op, "subgroups": mode}
                    if name == "reduce":
                        for state in ("u64", "u32x2"):
                            yield Case(name, options | {"state": state}, capabilities)
                        continue
                    for kind in ("inclusive", "exclusive"):
                        scan = options | {"kind": kind}
                        yield Case(name, scan | {"strategy": "reduce_then_scan"}, capabilities)
                        for state in ("u64", "u32x2"):
                            yield Case(name, scan | {"strategy": "lookback", "state": state}, capabilities)
    yield from _from_initial(capabilities)
    yield Case("sort", {"dtype": "i16", "descending": True}, capabilities)  # by its counts, too


def _descending(a: Any, b: Any) -> Any:
    return b < a


def _nearest(a: Any, b: Any) -> Any:
    return (a.x < b.x) | ((a.x == b.x) & (a.n < b.n))


#: Options of merges that give another text.
_MERGE_OPTIONS: tuple[dict[str, Any], ...] = (
    {"dtype": "u32"}, {"dtype": "i32", "descending": True}, {"dtype": "f32", "vecs": 2}, {"dtype": "u8"},
    {"dtype": "f16"}, {"dtype": "u64"}, {"dtype": "f64", "value_dtype": "u64"}, {"dtype": "f32", "value_dtype": "u32"},
    {"dtype": "f32", "less": _descending},
    {"dtype": gw.Struct("Place", x="f32", n="i32", id="u32"), "value_dtype": "u32", "less": _nearest},
)  # fmt: skip

#: Options of each primitive on streams that give another text.
_STREAM_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "select": (
        {"dtype": "u32"}, {"dtype": "u64", "flag_dtype": "f32"}, {"dtype": "u8"}, {"dtype": "c64"},
        {"dtype": "u32", "flag_dtype": "u64"}, {"dtype": "f16", "flag_dtype": "u16", "size": 7},
        {"dtype": "u32", "size": 0},
    ),
    "partition": ({"dtype": "u32"}, {"dtype": "u32", "parts": 3}, {"dtype": "f64", "parts": 3, "flag_dtype": "u32"}),
    "unique": (
        {"dtype": "u32"}, {"dtype": "f32"}, {"dtype": "f64", "equal_nan": False}, {"dtype": "f16"}, {"dtype": "bool"},
        {"dtype": "u32", "value_dtype": "u64"},
    ),
    "run_length": (
        {"dtype": "u32"}, {"dtype": "i64", "outputs": ("lengths",)}, {"dtype": "u8", "outputs": ("values", "starts")},
    ),
}  # fmt: skip


_WIDE_STATE = {"shader-int64", "shader-int64-atomic-all-ops"}
#: Options of histograms that give another text.
_HISTOGRAM_OPTIONS: tuple[dict[str, Any], ...] = (
    {"dtype": "u32", "bins": 7, "range": (0, 100)}, {"dtype": "i32", "bins": 5000, "range": (-7, 100)},
    {"dtype": "f32", "edges": True}, {"dtype": "f64"}, {"dtype": "u64", "edges": True, "bins": 3000},
    {"dtype": "u8", "channels": 3}, {"dtype": "f16", "weights": "f32"}, {"dtype": "i64", "weights": "i32"},
    {"dtype": "u32", "bins": 9000, "range": (0, 9000)}, {"dtype": "u32", "bins": 1 << 17},
    {"dtype": "u32", "merge": "none"},
    {"dtype": "u32", "merge": "quad", "workgroup_size": 64, "vecs": 2},
)  # fmt: skip


def _streams(capabilities: gw.Capabilities) -> Iterator[Case]:
    for name, every in _STREAM_OPTIONS.items():
        for options in every:
            for strategy in ("lookback", "reduce_then_scan"):
                yield Case(name, options | {"strategy": strategy}, capabilities)
        for how in (
            {"stage": 0}, {"items": "late"}, {"stage": 0, "items": "late"}, {"order": "subgroup", "items": "held"},
            {"order": "subgroup", "items": "late"},
        ):  # fmt: skip
            yield Case(name, every[0] | {"strategy": "lookback", "vecs": 3, **how}, capabilities)
        for mode in SUBGROUPS:
            yield Case(name, every[1] | {"strategy": "lookback", "subgroups": mode}, capabilities)


def _reproducible(capabilities: gw.Capabilities) -> Iterator[Case]:
    for op in (gw.Add, gw.Multiply, USER_ADD):
        options = {"dtype": "f32", "op": op, "deterministic": True}
        for state in ("u64", "u32x2"):
            yield Case("reduce", options | {"state": state}, capabilities)
        for kind in ("inclusive", "exclusive"):
            yield Case("scan", options | {"kind": kind}, capabilities)
    compensated = {"dtype": "f32", "op": gw.Add, "compensated": True}
    yield Case("reduce", compensated, capabilities)
    for kind in ("inclusive", "exclusive"):
        yield Case("scan", compensated | {"kind": kind}, capabilities)


#: Items and results of other sizes than 4 bytes: every size of either, and every way from one to the other.
OTHER_ITEMS = (
    ("u8", "u8"), ("bool", "i64"), ("i8", "i32"), ("u16", "u64"), ("i16", "i16"), ("f16", "f32"), ("f16", "f16"),
    ("i32", "i64"), ("i64", "i64"), ("u64", "f64"), ("f64", "f64"), ("f32", "f64"), ("i64", "i8"), ("u8", "i16"),
)  # fmt: skip


def _other_items(capabilities: gw.Capabilities) -> Iterator[Case]:
    for number, (datatype, result) in enumerate(OTHER_ITEMS):
        for op in (gw.Add, gw.Max):
            mode = SUBGROUPS[number % len(SUBGROUPS)]
            options: dict[str, Any] = {"dtype": datatype, "result_dtype": result, "op": op, "subgroups": mode}
            for state in ("u64", "u32x2"):
                yield Case("reduce", options | {"state": state}, capabilities)
                yield Case("scan", options | {"strategy": "lookback", "state": state}, capabilities)
            yield Case("scan", options | {"kind": "exclusive", "strategy": "reduce_then_scan"}, capabilities)


def _from_initial(capabilities: gw.Capabilities) -> Iterator[Case]:
    """Scans that take the value that they start from."""
    taken: dict[str, Any] = {"initial": True}
    for datatype, op in (("u32", gw.Add), ("f32", gw.Min), ("u8", gw.Add), ("f64", gw.Max), ("i32", PRODUCT)):
        for how in ({"strategy": "lookback", "state": "u32x2"}, {"strategy": "reduce_then_scan"}):
            options = {"dtype": datatype, "op": op, "subgroups": "none", **how, **taken}
            yield Case("scan", options, capabilities)
    yield Case("scan", {"dtype": "f32", "op": gw.Add, "deterministic": True, **taken}, capabilities)
    yield Case("scan", {"dtype": "f32", "op": gw.Add, "compensated": True, **taken}, capabilities)


def _sorts(name: str, datatype: str, capabilities: gw.Capabilities) -> Iterator[Case]:
    few = {"dtype": datatype, "items": 2, "parts": 2}
    for strategy in ("onesweep", "reduce_then_scan"):
        for mode in SUBGROUPS:
            yield Case(name, few | {"subgroups": mode, "strategy": strategy}, capabilities)
        yield Case(name, few | {"descending": True, "parts": 1, "strategy": strategy}, capabilities)
        yield Case(name, {"dtype": datatype, "strategy": strategy}, capabilities)


def few_cases(capabilities: gw.Capabilities = FULL) -> list[Case]:
    """A part of `cases` with every option: those of u32 with add, matrices, and a stride through the others."""
    every = list(cases(capabilities))
    first = [c for c in every if c.options["dtype"] == "u32" and c.options.get("op", gw.Add) is gw.Add]
    first += [c for c in every if c.name == "matmul" or "deterministic" in c.options or "compensated" in c.options]
    first += [c for c in every if c.name == "sort" and "strategy" not in c.options]
    first += [c for c in every if "result_dtype" in c.options and c.options["op"] is gw.Add]
    return first + [c for c in every[::23] if c not in first]


def layouts(case: Case, n: int) -> Iterator[tuple[str, gw.Layout]]:
    """The ways in which arguments of n items can lie: apart, unaligned, in one buffer, in place."""
    lengths = case.lengths(n)
    names = list(lengths)
    sizes = {name: case.item_bytes(name) for name in names}
    yield "apart", gw.Layout.separate(sizes, **lengths)
    yield (
        "unaligned",
        gw.Layout(
            {
                k: gw.Operand(m, k, 1 + i, False, sizes[k] * (m + 8), sizes[k])
                for i, (k, m) in enumerate(lengths.items())
            }
        ),
    )
    # Whole rows of 16 items: whether items of one byte lie at whole vec4s does not depend on n.
    most, largest = max(n, *lengths.values()), max(sizes.values())
    apart = 16 * (most // 16 + 2) * largest
    room = len(names) * apart
    yield (
        "shared",
        gw.Layout(
            {
                k: gw.Operand(m, "_and_".join(names), i * apart // sizes[k], True, room, sizes[k])
                for i, (k, m) in enumerate(lengths.items())
            }
        ),
    )
    yield (
        "shared unaligned",
        gw.Layout(
            {
                k: gw.Operand(m, "_and_".join(names), 1 + i * (most + 3) * largest // sizes[k], False, room, sizes[k])
                for i, (k, m) in enumerate(lengths.items())
            }
        ),
    )
    first, output = names[0], names[-1]
    if case.name != "matmul" and case.options.get("strategy") != "lookback" and sizes[first] == sizes[output]:
        together = f"{first}_and_{output}"
        place = {k: gw.Operand(m, k, size_bytes=sizes[k] * most + 16, item_bytes=sizes[k]) for k, m in lengths.items()}
        size_bytes = sizes[first] * most + 16
        place |= {
            k: gw.Operand(lengths[k], together, size_bytes=size_bytes, item_bytes=sizes[k]) for k in (first, output)
        }
        yield "in place", gw.Layout(place)


def _in_chunks(case: Case, n: int) -> gw.Layout:
    """Each argument in two chunks, of which the second begins somewhere in its binding."""
    joined = {}
    for name, length in case.lengths(n).items():
        size = case.item_bytes(name)
        # Items of 1 byte are reached 4 at a time.
        group, offset = (4, 8) if size == 1 else (2, 6)
        first = length // 3 // group * group
        chunks = (
            gw.Operand(first, f"{name}_0", 0, False, size * (first + 4), size),
            gw.Operand(length - first, f"{name}_1", offset, False, size * (length - first + 8), size),
        )
        joined[name] = gw.Operand(length, "", 0, False, 0, size, chunks=chunks)
    return gw.Layout(joined)


@lru_cache(maxsize=2)
def texts(n: int = 100_000, *, every: bool = True) -> dict[str, tuple[str, Shader]]:
    """Every composed text of every case, or of a few: by its sha256, the name of a case that has it, and the shader.

    Of a few, each case lies in one way of `layouts` on each adapter.
    """
    found: dict[str, tuple[str, Shader]] = {}
    for turn, capabilities in enumerate((FULL, CPU)):
        for number, case in enumerate(cases(capabilities) if every else few_cases(capabilities), turn):
            ways = list(layouts(case, n))
            for how, layout in ways if every else [ways[number % len(ways)]]:
                for key, shader in case.plan(layout).shaders.items():
                    found.setdefault(key, (f"{case} {how}", shader))
        for state in STATES:
            for tickets in (False, True):
                probe = LookbackProbe.plan(capabilities, state, tickets=tickets)
                found |= {key: (f"lookback_probe-{state}-{tickets}", shader) for key, shader in probe.shaders.items()}
    for case in few_cases(NARROW):
        reproducible = "deterministic" in case.options or "compensated" in case.options
        sums = case.options["dtype"] == "u32" and case.options.get("op", gw.Add) is gw.Add
        if sums or reproducible or case.name == "matmul":
            for how, layout in list(layouts(case, n))[::4]:
                for key, shader in case.plan(layout).shaders.items():
                    found.setdefault(key, (f"{case} {how} in windows", shader))
        if case.name in SORTS or case.name == "matmul":
            for key, shader in case.plan(_in_chunks(case, n)).shaders.items():
                found.setdefault(key, (f"{case} in chunks", shader))
    for name in (name for name, cls in REGISTRY.items() if issubclass(cls, Elementwise)):
        for datatype in gw.DATATYPES:
            case = Case(name, {"dtype": datatype}, FULL)
            for how, layout in layouts(case, 1 << 30):  # regions that take turns
                for key, shader in case.plan(layout).shaders.items():
                    found.setdefault(key, (f"{case} {how}, large", shader))
    own = (
        *instrument_plans(n),
        *array_plans(n),
        *counted_plans(n, every=every),
        *segment_plans(n),
        *struct_plans(n),
        *pair_plans(n),
        *top_k_plans(),
        *merge_plans(n),
        *group_plans(n),
        *index_plans(n),
    )
    for name, plan in own:
        for key, shader in plan.shaders.items():
            found.setdefault(key, (name, shader))
    return found


def _converts(items: str, results: str) -> bool:
    try:
        check_conversion(gw.STORAGE_DATATYPES[items], gw.STORAGE_DATATYPES[results])
    except gw.DatatypeError:
        return False
    return True


def counted_plans(n: int, *, every: bool = True) -> Iterator[tuple[str, gw.Plan]]:
    """Every primitive of which only so many items count as the GPU says, with the state words that it has."""
    for case in cases() if every else few_cases():
        sums = case.options.get("op", gw.Add) is gw.Add and case.options["dtype"] in ("u32", "f32")
        if case.cls.takes_count and (sums or "result_dtype" in case.options):
            lengths = case.lengths(n)
            layout = gw.Layout.separate({name: case.item_bytes(name) for name in lengths}, **lengths, n=1)
            yield f"{case} counted", case.plan(layout)


def array_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Casts, fills, gathers and broadcast sums, of views that begin with a word and within one."""
    sizes = {name: datatype.itemsize_bytes for name, datatype in gw.STORAGE_DATATYPES.items()}

    def layout(offset: int, **arguments: tuple[str, int]) -> gw.Layout:
        return gw.Layout(
            {
                name: gw.Operand(
                    length, name, offset, offset % 4 == 0, (length + offset + 16) * sizes[datatype], sizes[datatype]
                )
                for name, (datatype, length) in arguments.items()
            }
        )

    names, modes = list(sizes), itertools.cycle(SUBGROUPS)
    for form, more in (
        ("distances", ("origin",)), ("quotients", ("counts",)), ("moments", ()),
    ):  # fmt: skip
        flags = {"takes_root": not more, "skips_nan": form == "distances"}
        doubles = Doubles(None, form, more=more, **flags, capabilities=FULL)
        placed = layout(0, items=("f64", n), **{name: ("u32" if name == "counts" else "f64", 1) for name in more},
                        output=("f64", n // 2 if form == "moments" else n))  # fmt: skip
        words = {} if form == "distances" else {name: (0, 0) for name in ("number", "correction", "least")}
        yield f"doubles-{form}", doubles._plan_with(placed, words)
    for name, size, segmented in (("f32", 5, False), ("f32", 150, True), ("f64", 20, False)):
        for of in ("sum", "mean", "min", "max", "count", "var", "std"):
            options = {"rows": 1 if segmented else 4, "length": n if segmented else n // 4, "window": size}
            rolling = RollingWindows(None, name, of, least=2, segmented=segmented, capabilities=FULL, **options)
            starts = {"starts": ("u32", n)} if segmented else {}
            placed = layout(0, input=(name, n), **starts, output=(name, n))
            yield f"rolling-{name}-{of}-{size}-{segmented}", rolling.plan(placed)
    for offset in (0, 1):
        for name, other in zip(names, [*names[5:], *names[:5]], strict=True):
            convert = Convert(None, name, other, capabilities=FULL)
            yield f"convert-{name}-{other}", convert.plan(layout(offset, input=(name, n), output=(other, n)))
            alone = layout(offset, output=(name, n))
            yield f"fill-{name}", Fill(None, name, capabilities=FULL)._plan_with(alone, {"value": (1, 0)})
            words = {"start": (0, 0), "step": (1, 0)}
            yield f"arange-{name}", Arange(None, name, capabilities=FULL)._plan_with(alone, words)
            index = other if gw.STORAGE_DATATYPES[other].dtype.kind in "iu" else "i64"
            for clip, inner in ((False, 1), (True, 1), (False, 4), (True, 4)):
                sizes_of = {"outer": 1, "length": n // inner, "count": n // inner, "inner": inner}
                take = Take(None, name, index, clip=clip, capabilities=FULL, **sizes_of)
                placed = layout(offset, input=(name, n), indices=(index, n // inner), output=(name, n))
                yield f"take-{name}-{index}-{clip}-{inner}", take.plan(placed)
            in_parts = TakeInParts(
                None, name, index, outer=1, length=n, count=n, inner=1, clip=False, capabilities=FULL
            )
            placed = layout(offset, input=(name, n), indices=(index, n), output=(name, n))
            yield f"take-parts-{name}-{index}", in_parts.plan(placed)
            for part in (Part(n - 1, (n // 4, 2), (-3, 1)), Part(1, (n // 2,), (2,))):
                strided = Strided(None, name, part=part, capabilities=FULL)
                placed = layout(offset, input=(name, n), output=(name, strided.size))
                yield f"strided-{name}-{len(part.shape)}", strided.plan(placed)
            if name in gw.types.datatype.VALUE_DATATYPES:
                numbers = Doubles(None, "numbers", name, more=("origin", "mask", "limit"), capabilities=FULL)
                placed = layout(offset, items=(name, n), origin=(name, 1), mask=("bool", n), limit=("u32", 1),
                                output=("f64", n))  # fmt: skip
                yield f"doubles-numbers-{name}", numbers.plan(placed)
            scatter = gw.Scatter(None, name, index, capabilities=FULL)
            placed = layout(offset, items=(name, n), indices=(index, n), output=(name, n))
            yield f"scatter-{name}-{index}", scatter.plan(placed)
            ranges = {each: ("u32", n // 8) for each in ("source_offsets", "destination_offsets", "lengths")}
            placed = layout(offset, source=(name, n), **ranges, output=(name, n))
            # Of a scan, whose look-back has words of 64 bits, or two of 32.
            narrow = replace(FULL, features=FULL.features - {"shader-int64", "shader-int64-atomic-all-ops"})
            for state, capabilities in (("u64", FULL), ("u32x2", narrow)):
                yield f"ranges-{state}-{name}", gw.CopyRanges(None, name, capabilities=capabilities).plan(placed)
            both = layout(offset, input=(name, n), output=(name, n))
            for shift, inner in ((None, 1), (3, 1), (None, 4), (3, 4)):
                reorder = Reorder(None, name, outer=1, length=n // inner, inner=inner, shift=shift, capabilities=FULL)
                yield f"reorder-{name}-{shift}-{inner}", reorder.plan(both)
            for columns in (1, 4, n // 4, n):
                transpose = gw.Transpose(None, name, rows=n // columns, columns=columns, capabilities=FULL)
                yield f"transpose-{name}-{columns}", transpose.plan(both)
            shapes_and_axes = (
                ((n // 4, 4), 0),
                ((n // 4, 4), 1),
                ((4, n // 4), 1),
                ((100, n // 100), 0),
                ((3, 7, 5), 1),
            )
            for shape, axis in shapes_and_axes:
                for result, op in ((name, gw.Add), (name, gw.Max), (other, gw.Add)):
                    if not _converts(name, result):
                        continue
                    mode = next(modes)
                    reduction = gw.ReduceAxis(
                        None, name, op, shape=shape, axis=axis, result_dtype=result, capabilities=FULL,
                        tuning=gw.AxisTuning(subgroups=mode),
                    )  # fmt: skip
                    outputs = math.prod(reduction.output_shape)
                    placed = layout(offset, input=(name, math.prod(shape)), output=(result, outputs))
                    yield f"reduce_axis-{name}-{result}-{op.name}-{shape}-{axis}-{mode}", reduction.plan(placed)
                    if op is gw.Max:
                        continue
                    scan = gw.ScanAxis(
                        None, name, op, shape=shape, axis=axis, include_initial=axis == 0, result_dtype=result,
                        tuning=gw.AxisTuning(subgroups=mode, max_blocks=64), capabilities=FULL,
                    )  # fmt: skip
                    outputs = math.prod(scan.output_shape)
                    placed = layout(offset, input=(name, math.prod(shape)), output=(result, outputs))
                    yield f"scan_axis-{name}-{result}-{shape}-{axis}-{mode}", scan.plan(placed)


def struct_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Reductions to structs, of which an invocation makes one accumulator of a tile, and others."""
    moments = gw.Struct("Moments", count="u32", mean="f32", m2="f32")
    made: list[tuple[Any, gw.BinOp]] = [(moments, gw.Moments), (moments, gw.Add), (moments, gw.Last), ("i32", gw.Xor)]
    for x in (gw.u32("input"), gw.i32("input"), gw.f32("input")):
        made += [(gw.struct(value=x, index=gw.index), op) for op in (gw.ArgMin, gw.ArgMax)]
        made += [(gw.struct(min=x, max=x), gw.MinMax), (gw.struct(is_item=gw.u32(x > 1), value=x), gw.First)]
    x = gw.f32("input")
    made += [(gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0)), gw.Moments), (x != 0, gw.And)]
    for number, (items, op) in enumerate(made):
        for capabilities, state in ((FULL, "u64"), (FULL, "u32x2"), (NARROW, "u32x2")):
            for options in ({}, {"deterministic": True}) if op is gw.Moments else ({},):
                mode = None if options else SUBGROUPS[number % len(SUBGROUPS)]
                tuning = gw.ReduceTuning(subgroups=mode, state=state)
                reduction = gw.Reduce(None, items, op, capabilities=capabilities, tuning=tuning, **options)
                words = reduction.datatype.elements if isinstance(items, gw.Struct) else 1
                lengths = {"input": words * n, "output": reduction.output_datatype.elements}
                for counted in ({}, {"n": 1}) if capabilities is FULL else ({},):
                    layout = gw.Layout.separate(dict.fromkeys(lengths, 4), **lengths, **counted)
                    form = state if capabilities is FULL else "windows"
                    yield f"reduce-{op.name}-{number}-{mode}-{form}-", reduction.plan(layout)
    for op in SPREADS.values():
        low, high = gw.u32("input", components=2)
        items = gw.struct(a=low, b=high, c=gw.gather(low, 0), d=gw.gather(high, 0))
        for options in ({}, {"deterministic": True}):
            reduction = gw.Reduce(None, items, op, capabilities=FULL, **options)
            lengths = {"input": 2 * n, "output": 4}
            yield (
                f"reduce-{op.name}-{bool(options)}",
                reduction.plan(gw.Layout.separate(dict.fromkeys(lengths, 4), **lengths)),
            )


def pair_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Expressions of integers of 8 bytes as pairs of words: every function that they call."""
    x, y, f = gw.i64("x"), gw.u64("y"), gw.leaf("f", "f64")
    whole = ((x // gw.i64(y) + x**3) % 7 << 2) ^ abs(-x) >> 1 | gw.sign(x) - gw.minimum(x, gw.i64(y))
    unsigned = (y // gw.u64(x) + y % 9) ** y + gw.u64(gw.f32(y) + gw.f32(x) + gw.f32(f)) + gw.u64(gw.i32(x)) >> gw.u64(
        3
    )
    both = gw.where((x < gw.i64(y)) & (y >= 5) & ~gw.isnan(f), whole, gw.i64(unsigned))
    bare = replace(FULL, features=frozenset({"subgroup"}))
    sizes = {"x": 8, "y": 8, "f": 8, "output": 8}
    for number, primitive in enumerate((gw.Map(None, both, capabilities=bare), gw.Scan(None, both, capabilities=bare))):
        yield f"pairs-{number}", primitive.plan(gw.Layout.separate(sizes, **dict.fromkeys(sizes, n)))


def index_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Items of each index, by atomics, by compare-and-swap and by sorting; and pairs of items in bins."""
    lengths = {"indices": n, "items": n, "output": 300}
    for index, datatype, op in (
        ("u32", "f32", gw.Add), ("i64", "i32", gw.Max), ("u8", "f32", gw.Min), ("u32", "u32", USER_ADD),
    ):  # fmt: skip
        primitive = gw.ReduceByIndex(None, index, datatype, op, size=300, capabilities=FULL)
        sizes = {name: primitive.signature.datatype(name).itemsize_bytes for name in lengths}
        yield f"reduce_by_index-{index}-{datatype}-{op.name}", primitive.plan(gw.Layout.separate(sizes, **lengths))
    narrow = replace(FULL, features=FULL.features - {"shader-int64", "shader-int64-atomic-all-ops"})
    for state, capabilities in (("u64", FULL), ("u32x2", narrow)):
        by_sorting = gw.ReduceByIndex(None, "u32", "u32", gw.Min, size=300, strategy="sort", capabilities=capabilities)
        yield f"reduce_by_index-{state}-sort", by_sorting.plan(gw.Layout.separate(**lengths))
    lengths = {"x": n, "y": n, "output": 256}
    yield "histogram2d", gw.Histogram2D.plan_for(capabilities=FULL, lengths=lengths)


def group_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Aggregates of rows: of what is sorted along, and of gathered rows; keys of one word and of two."""
    k, x, y, z = gw.u32("k"), gw.f32("x"), gw.i32("y"), gw.f32("z")
    few = {"total": (x, gw.Add), "mean": (x, "mean"), "rows": gw.count}
    many = {"a": (x, "mean"), "b": (y, gw.Max), "c": (z, "std"), "d": (gw.index, gw.Min)}
    cases = {
        "plain": (k, {"total": (x, gw.Add)}), "packed": (k, few), "floats": (z, few), "gathered": (k, many),
        "codes": ((k, z), few), "two words": (k, {"a": (x, gw.Add), "b": (y, gw.Min)}),
        "wide": ("f64", {"a": ("i64", gw.Add), "b": (x, "last")}),
    }  # fmt: skip
    for (name, (keys, aggregates)), mode in itertools.product(cases.items(), ("native", "none")):
        tuning = gw.ScanTuning(workgroup_size=128, vecs=3, subgroups=mode, state="u32x2")
        groups = gw.GroupBy(None, keys, aggregates, tuning=tuning, capabilities=FULL)
        signature = groups.signature
        inputs = dict.fromkeys(signature.inputs, n)
        lengths = {**inputs, **{each: signature.output_length(each, inputs) for each in signature.outputs}}
        sizes = {each: signature.datatype(each).itemsize_bytes for each in lengths}
        for counted in ({}, {"n": 1}):
            form = "counted" if counted else "whole"
            yield f"GroupBy-{name}-{mode}-{form}-", groups.plan(gw.Layout.separate(sizes, **lengths, **counted))
    # Rows that are combined in tables, with a pass of the sort before and without.
    for bits, counted in itertools.product((6, 18), ({}, {"n": 1})):
        aggregates = {"low": (y, gw.Min), "rows": gw.count}
        groups = gw.GroupBy(None, k, aggregates, key_bits=bits, capabilities=FULL)
        inputs = dict.fromkeys(groups.signature.inputs, 1 << 22)
        lengths = {**inputs, **{e: groups.signature.output_length(e, inputs) for e in groups.signature.outputs}}
        plan = groups.plan(gw.Layout.separate(**lengths, **counted))
        assert plan.parameters["by"] == "tables"
        yield f"GroupBy-tables-{bits}-{'counted' if counted else 'whole'}-", plan


def segment_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Segments by keys and by offsets, and repeated values: whole, in windows, and as many as the GPU says."""
    for cls in (gw.ReduceByKey, gw.ScanByKey, gw.SegmentedReduce, gw.SegmentedScan):
        by_key = cls in (gw.ReduceByKey, gw.ScanByKey)
        inputs = {"keys": n, "items": n} if by_key else {"items": n, "offsets": n // 8}
        for mode, state, op in itertools.product(SUBGROUPS, STATES, (gw.Add, PRODUCT)):
            tuning = gw.ScanTuning(workgroup_size=128, vecs=3, state=state, subgroups=mode)
            for key, datatype in (("u32", "u32"), ("f64", "f32"), ("f32", "i64")):
                if datatype != "u32" and (op is PRODUCT or mode not in ("native", "none")):
                    continue
                dtypes = {"dtype": key, "value_dtype": datatype} if by_key else {"dtype": datatype}
                for how in ("lookback", "counted", "windows", "reduce_then_scan"):
                    if how == "reduce_then_scan" and state != STATES[0]:
                        continue
                    capabilities = NARROW if how == "windows" else FULL
                    strategy = "reduce_then_scan" if how == "reduce_then_scan" else "lookback"
                    primitive = cls(
                        None, **dtypes, op=op, strategy=strategy, tuning=tuning, capabilities=capabilities
                    )  # fmt: skip
                    signature = primitive.signature
                    lengths = {**inputs, **{name: signature.output_length(name, inputs) for name in signature.outputs}}
                    sizes = {name: signature.datatype(name).itemsize_bytes for name in lengths}
                    layout = gw.Layout.separate(sizes, **lengths, **({"n": 1} if how == "counted" else {}))
                    form = "blocks" if how == "reduce_then_scan" else f"{how}-{state}"
                    name = f"{type(primitive).__name__}-{datatype}-{key}-{op.name}-{mode}-{form}-"
                    yield name, primitive.plan(layout)
    # Segments by teams have another text than many short ones.
    for mode, state in itertools.product(SUBGROUPS, STATES):
        tuning = gw.ScanTuning(workgroup_size=128, vecs=3, state=state, subgroups=mode)
        reduce = gw.SegmentedReduce(None, "u32", tuning=tuning, capabilities=FULL)
        layout = gw.Layout.separate(items=n, offsets=n // 100 + 1, output=n // 100)
        yield f"SegmentedReduce-long-{mode}-{state}-", reduce.plan(layout)
    yield from _segmented_sorts(n)
    for by, values in itertools.product(("counts", "offsets"), ("u32", "f64", None)):
        repeat = gw.Repeat(None, values, size=n, by=by, capabilities=replace(FULL, features=frozenset({"subgroup"})))
        inputs = {"values": 99} if values else {}
        inputs[by] = 99 if by == "counts" else 100
        sizes = {"values": 8, "output": 8} if values == "f64" else {}
        yield f"repeat-{by}-{values}", repeat.plan(gw.Layout.separate(sizes, **inputs, output=n, count=1))


def _segmented_sorts(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Sorts of segments by offsets and of one length, short and long, in every mode."""
    capabilities = replace(FULL, features=frozenset({"subgroup"}))  # a scan has 32-bit words then
    for mode, (key, value) in itertools.product(
        SUBGROUPS, (("u32", None), ("f64", "u32"), ("f32", "u64"), ("i8", "f32"))
    ):
        few = gw.SegmentedSortTuning(workgroup_size=256, items=3, subgroups=mode)
        for length, counted in itertools.product((None, 100, 5000, 2 * n), (False, True)):
            if mode != "none" and (value is None) == counted:
                continue
            sort = gw.SegmentedSort(
                None, key, value, length=length, descending=counted, tuning=few, capabilities=capabilities
            )  # fmt: skip
            given = ["keys", *(["values"] if value else []), *(["offsets"] if length is None else [])]
            lengths = dict.fromkeys([*given, *sort.signature.outputs], n)
            sizes = {name: sort.signature.datatype(name).itemsize_bytes for name in lengths}
            layout = gw.Layout.separate(sizes, **lengths, **({"n": 1} if counted else {}))
            yield f"segmented_sort-{key}-{value}-{mode}-{length}-{counted}", sort.plan(layout)


def merge_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """Merges in registers, whole and of as many keys as the GPU says."""
    for datatype, counted in itertools.product(("u32", "i32", "u8"), (False, True)):
        merge = gw.Merge(None, datatype, descending=counted, counted=counted, capabilities=FULL)
        inputs = {"a": n, "b": n}
        lengths = {**inputs, **{each: merge.signature.output_length(each, inputs) for each in merge.signature.outputs}}
        sizes = {each: merge.signature.datatype(each).itemsize_bytes for each in lengths}
        counts = {"a_count": 1, "b_count": 1} if counted else {}
        yield f"merge-{datatype}-network-{counted}", merge.plan(gw.Layout.separate(sizes, **lengths, **counts))


def top_k_plans() -> Iterator[tuple[str, gw.Plan]]:
    """Delegates of delegates, rows, and expressions."""
    n = 1 << 28
    for datatype in ("u32", "f32", "u64", "f16"):
        lengths = {"input": n, "values": 1000, "indices": 1000}
        size = gw.STORAGE_DATATYPES[datatype].itemsize_bytes
        sizes = {"input": size, "values": size}
        for counted in ({}, {"n": 1}):
            layout = gw.Layout.separate(sizes, **lengths, **counted)
            yield f"top_k-{datatype}-{list(counted)}", gw.TopK(None, datatype, 1000, capabilities=FULL).plan(layout)
            layout = gw.Layout.separate(sizes, input=n, values=100, indices=100, **counted)
            yield f"top_k-{datatype}-few-{list(counted)}", gw.TopK(None, datatype, 100, capabilities=FULL).plan(layout)
        rows = gw.TopK(None, datatype, 50, row_length=1 << 14, capabilities=FULL)
        found = (n >> 14) * 50
        yield f"top_k-{datatype}-rows", rows.plan(gw.Layout.separate(sizes, input=n, values=found, indices=found))
        segments = gw.SegmentedTopK(None, datatype, 50, capabilities=FULL)
        lengths = {"input": n, "offsets": 1001, "values": 50_000, "indices": 50_000, "n": 1}
        yield f"segmented_top_k-{datatype}", segments.plan(gw.Layout.separate(sizes, **lengths))
        ragged = gw.SegmentedTopK(None, datatype, None, size=50_000, capabilities=FULL)
        lengths |= {"ks": 1000, "starts": 1001}
        yield f"segmented_top_k-{datatype}-ragged", ragged.plan(gw.Layout.separate(sizes, **lengths))
    computed = gw.TopK(None, gw.f32("x") * 2, 1000, capabilities=FULL)
    yield "top_k-expression", computed.plan(gw.Layout.separate(x=n, values=1000, indices=1000))


def instrument_plans(n: int) -> Iterator[tuple[str, gw.Plan]]:
    """The instrument's own kernels, and the checks of a user's operators."""
    for datatype in gw.DATATYPES.values():
        for op in (USER_NEXT, USER_TWICE):
            yield f"unary_operator_check-{op.name}-{datatype}", unary_check_plan(op, datatype, FULL, 16)
        for op in (USER_ADD, gw.Min):
            yield f"operator_check-{op.name}-{datatype}", check_plan(op, datatype, FULL, 16)
    for name in ("canary", "flush"):
        yield name, OwnKernel(name, 4 * n).plan()
    # In f16, f64 and u64, which Tint lacks, lavapipe compiles them (test_calibration.py).
    for datatype in ("f32", "i32"):
        yield f"fma-{datatype}", OwnKernel("fma", 4 * n, datatype=datatype).plan()
    yield "atomics-u32", OwnKernel("atomics", 4 * n, datatype="u32").plan()
    yield "resident", OwnKernel("resident", 4 * n).plan()
    for datatype in gw.DATATYPES:
        case = Case("triad", {"dtype": datatype}, FULL)
        for how, layout in layouts(case, n):
            yield f"{case} {how}", case.plan(layout)
