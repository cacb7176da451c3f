"""Every primitive's plan, run from its JSON in Chromium: Tint instead of naga, SwiftShader instead of lavapipe.

Subgroups are of 4 there, workgroup memory is zeroed, limits are WebGPU's lowest. The host is a page that knows nothing
but the plan's JSON. Each plan is done twice on the same buffers, and compared with numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.distributions import UNIFORM, random_input
from gridwise_py.primitives import REGISTRY
from helpers.cases import STREAMS, Case, cases
from helpers.chromium import find_chromium
from helpers.matmul import SHAPES as MATMUL_SHAPES
from helpers.replay import SWIFTSHADER, Job, replay
from helpers.sorting import DATATYPES as SORTED_DATATYPES
from helpers.sorting import KINDS as SORTS
from helpers.sorting import keys_of, order_of
from helpers.strategies import (
    DATATYPES,
    KINDS,
    MODES,
    OPERATORS,
    SHAPES,
    STRATEGIES,
    assert_same,
    exact_items,
    make_primitive,
    operator,
    pairwise,
    reduce_reference,
    scan_reference,
    strategy_options,
)

#: What SwiftShader cannot do: state words of 64 bits. Nothing else is left out.
EXEMPT = "u64"


class Expected(NamedTuple):
    """A job, of which primitive, what it is about, and the items that it must leave, by output."""

    primitive: type[gw.Primitive]
    note: str
    job: Job
    wanted: dict[str, np.ndarray]


def _expected(note: str, primitive: gw.Primitive, inputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]):
    # Of structs the words count.
    words = {name: items.view(np.uint32) if items.dtype.names else items for name, items in (inputs | wanted).items()}
    lengths = {name: items.size for name, items in words.items()}
    sizes = {name: items.itemsize for name, items in words.items()}
    plan = primitive.plan(gw.Layout.separate(sizes, **lengths))
    job = Job(gw.Plan.from_json(plan.to_json()), inputs, {name: items.dtype for name, items in wanted.items()})
    return Expected(type(primitive), f"{plan.primitive} {note} {dict(plan.parameters)}", job, wanted)


def _shaped(shape: str, mode: str) -> dict:
    options = SHAPES[shape]
    return options | {"subgroups": "emulated-8" if mode == "emulated" else mode}


def _edges(tile: int) -> tuple[int, ...]:
    """Around one item, a subgroup, a vec4, a tile, and more tiles than there are workgroups for (64 on a CPU)."""
    return (0, 1, 3, 4, 5, 17, tile - 1, tile, tile + 1, 5 * tile + 3, 65 * tile + 2)


def _tile(primitive: gw.Primitive) -> int:
    parameters = primitive.plan(gw.Layout.separate(input=1, output=1)).parameters
    return 4 * parameters["workgroup_size"] * parameters["vecs"]


SCANS = pairwise({
    "op": OPERATORS, "datatype": DATATYPES, "mode": MODES, "strategy": [s for s in STRATEGIES if EXEMPT not in s],
    "kind": KINDS, "shape": [*SHAPES],
})  # fmt: skip
REDUCTIONS = pairwise({"op": OPERATORS, "datatype": DATATYPES, "mode": MODES, "shape": [*SHAPES]})


def scans() -> Iterator[Expected]:
    """Scans by every strategy but the exempt one."""
    for case in SCANS:
        op, datatype, kind = case["op"], case["datatype"], case["kind"]
        scan = make_primitive(gw.Scan,
            None, datatype, operator(op, datatype), kind, capabilities=SWIFTSHADER,
            **_shaped(case["shape"], case["mode"]), **strategy_options(case["strategy"]),
        )  # fmt: skip
        for n in _edges(_tile(scan)):
            x = exact_items(op, datatype, n)
            yield _expected(f"n={n}", scan, {"input": x}, {"output": scan_reference(op, x, kind)})


def reductions() -> Iterator[Expected]:
    """Reductions."""
    for case in REDUCTIONS:
        op, datatype = case["op"], case["datatype"]
        reduce = make_primitive(gw.Reduce,
            None, datatype, operator(op, datatype), capabilities=SWIFTSHADER,
            **_shaped(case["shape"], case["mode"]),
        )  # fmt: skip
        for n in _edges(_tile(reduce)):
            if n or reduce.op.empty:
                x = exact_items(op, datatype, n)
                yield _expected(f"n={n}", reduce, {"input": x}, {"output": reduce_reference(op, x)})


def stalled() -> Iterator[Expected]:
    """Look-back where every second tile never posts: those after it must help themselves."""
    for mode in MODES:
        options = _shaped("middle", mode) | {"stall_every": 2, "spin_limit": 4}
        scan = make_primitive(
            gw.Scan, None, "u32", capabilities=SWIFTSHADER, **options, **strategy_options("lookback-u32x2-tickets")
        )
        x = exact_items("add", "u32", 40 * _tile(scan) + 3)
        yield _expected("stalled", scan, {"input": x}, {"output": scan_reference("add", x)})


def sorts() -> Iterator[Expected]:
    """Sorts of every datatype of keys."""
    factors = {
        "kind": tuple(SORTS),
        "datatype": SORTED_DATATYPES,
        "strategy": ("onesweep", "reduce_then_scan"),
        "mode": MODES,
        "descending": (False, True),
        "items": (2, None),
    }
    for case in pairwise(factors):
        cls, values = SORTS[case["kind"]]
        mode = case["mode"]
        shape = {} if case["items"] is None else {"workgroup_size": 256, "items": 2, "parts": 1}
        sort = make_primitive(cls,
            None, case["datatype"], *([] if values is None else [values]), capabilities=SWIFTSHADER,
            strategy=case["strategy"], descending=case["descending"],
            subgroups="emulated-32" if mode == "emulated" else mode, **shape,
        )  # fmt: skip
        for n in (0, 1, 5, 511, 512, 513, 2600) if shape else (5, 4097):
            keys = keys_of(case["datatype"], n)
            order = order_of(keys, case["descending"])
            if case["kind"] == "argsort":
                inputs, wanted = {"input": keys}, {"output": order.astype(np.uint32)}
            elif values is None:
                inputs, wanted = {"input": keys}, {"output": keys[order]}
            else:
                carried = keys_of(values, n, seed=1)
                inputs = {"keys": keys, "values": carried}
                wanted = {"output_keys": keys[order], "output_values": carried[order]}
            yield _expected(f"{case} n={n}", sort, inputs, wanted)


def products() -> Iterator[Expected]:
    """Matrix products of small integers, exact in any order."""
    for datatype in gw.MatMul.datatypes:
        for name, (options, (tile_m, tile_n, tile_k)) in MATMUL_SHAPES.items():
            for m, n, k in (
                (1, 1, 1), (3, 5, 2), (4, 4, 4), (3, 5, 0), (tile_m, tile_n, tile_k),
                (tile_m + 1, tile_n - 1, 2 * tile_k + 1), (2 * tile_m + 5, tile_n + 4, tile_k + 3),
            ):  # fmt: skip
                rng = np.random.default_rng([m, n, k])
                dtype = gw.STORAGE_DATATYPES[datatype].dtype
                a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
                product = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
                matmul = make_primitive(gw.MatMul, None, datatype, m=m, n=n, k=k, capabilities=SWIFTSHADER, **options)
                inputs, wanted = {"a": a.ravel(), "b": b.ravel()}, {"output": product.ravel()}
                yield _expected(f"{name} {datatype}", matmul, inputs, wanted)


def _by_signature(case: Case, n: int) -> Expected:
    """Return the job of a case about which its signature and its numpy twin say enough."""
    lengths = case.lengths(n)
    primitive = case.make(gw.Layout.separate(**lengths))
    inputs, rng = {}, np.random.default_rng(n)
    for argument in primitive.signature.inputs:
        rule = primitive.signature.arguments[argument]
        dtype, length = rule.datatype.dtype, lengths[argument] // rule.datatype.elements
        if dtype.names is None:
            inputs[argument] = random_input(rule, UNIFORM, rng, length, dtype)
        else:
            inputs[argument] = np.zeros(length, dtype)
            for name in dtype.names:
                inputs[argument][name] = rng.integers(0, 50, length)
    if case.name == "merge" and (case.options.get("descending") or "less" in case.options):
        inputs |= {name: inputs[name][::-1].copy() for name in ("a", "b")}  # in that order
    if "edges" in inputs:
        inputs["edges"].sort()
    found = primitive.reference(**inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    wanted = {}
    for output, items in zip(primitive.signature.outputs, outputs, strict=True):
        # Behind what the GPU counts, the buffer stays as it was.
        elements = primitive.signature.arguments[output].datatype.elements
        behind = lengths.get(output, primitive.signature.output_length(output, lengths)) // elements - items.size
        wanted[output] = np.concatenate([items, np.zeros(behind, items.dtype)])
    return _expected(f"{case} n={n}", primitive, inputs, wanted)


# A browser ends the GPU process where SwiftShader works on one submission for too long.
_SLOW = ("histogram", "top_k")


def others(name: str) -> Iterator[Expected]:
    """Another primitive of the registry."""
    for case in cases(SWIFTSHADER):
        if case.name == "merge" and isinstance(case.options["dtype"], gw.Struct):
            continue  # the inputs would have to be in a caller's order
        if case.name == name == "histogram" and case.options.get("weights") and case.options.get("strategy") == "sort":
            continue  # SwiftShader does not compile the reduction by key within a minute
        if case.name == name and not case.options.get("sorter"):  # of indices that sort
            for n in (0, 1, 5, 1027) if name in _SLOW else (0, 1, 3, 4, 5, 255, 1024, 1027, 70_001):
                yield _by_signature(case, n)


def streams() -> Iterator[Expected]:
    """What selects and finds runs. Of every primitive both strategies; a pipeline takes SwiftShader seconds."""
    shape = {"workgroup_size": 64, "vecs": 1}
    for name, options in (
        ("select", {"dtype": "u32"}), ("select", {"dtype": "u8"}), ("partition", {"dtype": "u32", "parts": 3}),
        ("unique", {"dtype": "f32", "value_dtype": "u64"}), ("run_length", {"dtype": "u32"}),
    ):  # fmt: skip
        for strategy in ("lookback", "reduce_then_scan"):
            for n in (0, 1, 255, 1027):
                yield _by_signature(Case(name, {**options, **shape, "strategy": strategy}, SWIFTSHADER), n)


def segments() -> Iterator[Expected]:
    """Segments by keys and by offsets, with empty ones; items of each index; axes; repeated values."""
    shape = gw.ScanTuning(workgroup_size=64, vecs=1)
    for n in (1, 1027):
        rng = np.random.default_rng(n)
        items = rng.integers(0, 1000, n, dtype=np.uint32)
        keys = np.repeat(np.arange(n, dtype=np.uint32), rng.integers(0, 9, n))[:n]
        keys = np.append(keys, np.full(n - keys.size, n, np.uint32))
        offsets = np.sort(rng.integers(0, n + 1, n // 5 + 2)).astype(np.uint32)
        offsets[0], offsets[-1] = 0, n
        counts = rng.integers(0, 4, n, dtype=np.uint32)
        made: list[tuple[gw.Primitive, dict[str, np.ndarray]]] = []
        for strategy in ("lookback", "reduce_then_scan"):
            options = {"strategy": strategy, "tuning": shape, "capabilities": SWIFTSHADER}
            made += [(cls(None, **options), {"keys": keys, "items": items}) for cls in (gw.ScanByKey, gw.ReduceByKey)]
            made.append((gw.SegmentedScan(None, **options), {"items": items, "offsets": offsets}))
        bare = {"capabilities": SWIFTSHADER}
        made += [
            (gw.SegmentedReduce(None, tuning=shape, **bare), {"items": items, "offsets": offsets}),
            (gw.Repeat(None, size=max(1, int(counts.sum())), **bare), {"values": items, "counts": counts}),
            (gw.ReduceByIndex(None, size=300, **bare), {"indices": items % 310, "items": items}),
            (gw.ReduceAxis(None, shape=(n, 3), axis=0, **bare), {"input": np.resize(items, 3 * n)}),
            (gw.ReduceAxis(None, shape=(3, n), axis=1, **bare), {"input": np.resize(items, 3 * n)}),
        ]
        for primitive, inputs in made:
            found = primitive.reference(**inputs)
            outputs = found if isinstance(found, tuple) else (found,)
            wanted = dict(zip(primitive.signature.outputs, outputs, strict=True))
            yield _expected(f"n={n}", primitive, inputs, _with_room(primitive, inputs, wanted))


def _with_room(
    primitive: gw.Primitive, inputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return outputs as long as the buffers: behind what the GPU counts, these stay as they were."""
    lengths = {name: items.size for name, items in inputs.items()}
    return {
        name: np.append(items, np.zeros(primitive.signature.output_length(name, lengths) - items.size, items.dtype))
        for name, items in wanted.items()
    }


def counted() -> Iterator[Expected]:
    """Those whose items the GPU counts: parts of the room, all of it, and more."""
    shape = {"workgroup_size": 64, "vecs": 1}
    few = {"workgroup_size": 256, "items": 2, "parts": 1}
    for cls, options in (
        (gw.Copy, {}), (gw.Reduce, {"max_blocks": 6, **shape}), (gw.Reduce, {"dtype": "f32", "deterministic": True}),
        (gw.Scan, {"strategy": "lookback", "state": "u32x2", **shape}),
        (gw.Scan, {"strategy": "lookback", "state": "u32x2", "stall_every": 2, "spin_limit": 4, **shape}),
        (gw.Scan, {"strategy": "reduce_then_scan", "max_blocks": 6, **shape}),
        (gw.Scan, {"dtype": "f32", "compensated": True}),
        (gw.Sort, {"strategy": "onesweep", **few}), (gw.Sort, {"strategy": "reduce_then_scan", **few}),
        (gw.ArgSort, few), (gw.SortPairs, few),
    ):  # fmt: skip
        primitive = make_primitive(cls, None, capabilities=SWIFTSHADER, **options)
        for room in (100, 10_003):
            for n in (0, 1, room // 3, room, 2 * room):
                inputs = {
                    name: exact_items("add", primitive.signature.datatype(name).name, room, seed)
                    for seed, name in enumerate(primitive.signature.inputs)
                }
                found = primitive.reference(**{name: items[:n] for name, items in inputs.items()})
                outputs = found if isinstance(found, tuple) else (found,)
                wanted = {}
                for name, items in zip(primitive.signature.outputs, outputs, strict=True):
                    datatype = primitive.signature.datatype(name)
                    # Behind the items that count, the buffer stays as it was.
                    behind = 0 if cls is gw.Reduce else room - items.size
                    wanted[name] = np.concatenate([items, np.zeros(behind, items.dtype)]).astype(datatype.dtype)
                number = np.array([n], dtype=np.uint32)
                yield _expected(f"{n} of {room} {options}", primitive, {**inputs, "n": number}, wanted)


BY_SEGMENT = {gw.ScanByKey, gw.ReduceByKey, gw.SegmentedScan, gw.SegmentedReduce}
FAMILIES = {
    "counted": (counted, {gw.Copy, gw.Reduce, gw.Scan, gw.Sort, gw.ArgSort, gw.SortPairs}),
    "reduce": (reductions, {gw.Reduce}),
    "scan": (scans, {gw.Scan}),
    "stalled": (stalled, {gw.Scan}),
    "sort": (sorts, {gw.Sort, gw.SortPairs, gw.ArgSort}),
    "matmul": (products, {gw.MatMul}),
    "streams": (streams, {REGISTRY[name] for name in STREAMS}),
    "segments": (segments, BY_SEGMENT | {gw.Repeat, gw.ReduceByIndex, gw.ReduceAxis}),
}
OTHERS = set(REGISTRY.values()).difference(*(classes for name, (_, classes) in FAMILIES.items() if name != "counted"))
# Each in a page of its own: a browser ends a GPU process that works for too long.
FAMILIES |= {name: (partial(others, name), {cls}) for name, cls in REGISTRY.items() if cls in OTHERS}


@pytest.mark.tint
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("family", FAMILIES)
def test_plans_equal_numpy(family):
    chromium = find_chromium()
    make, classes = FAMILIES[family]
    every = list(make())
    assert {e.primitive.__name__ for e in every} == {cls.__name__ for cls in classes}
    adapter, results = replay([e.job for e in every], chromium=chromium)
    assert "swiftshader" in adapter.lower()
    for expected, outputs in zip(every, results, strict=True):
        for name, want in expected.wanted.items():
            assert_same(outputs[name][: want.size], want, f"{expected.note} on {adapter}")
    print(f"{len(every)} plans of {family} on {adapter}")
