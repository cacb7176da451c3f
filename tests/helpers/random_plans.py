"""Random calls of every primitive, compared with numpy: what a suite of chosen cases does not think of.

As a program: ``PYTHONPATH=tests python -m helpers.random_plans [--plans 10000] [--minutes 30] [--first 0] [--seed 0]
[--json FILE]``.
A plan follows from the seed and its number alone, so that a run that was stopped goes on with ``--first``, and a wrong
one is made again with ``--first N --plans 1``. With ``--json`` what the file already counts is not tried again. Exit
code 4 if an answer was wrong.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.workloads import USUAL_AXES
from gridwise_py.bench.results.context import run_context
from gridwise_py.primitives import REGISTRY
from gridwise_py.primitives.engines.elementwise import Elementwise
from gridwise_py.runtime.context import context_of
from gridwise_py.storage.json_files import write_json
from helpers.matmul import SHAPES as MATMUL_SHAPES
from helpers.sorting import DATATYPES as SORTED_DATATYPES
from helpers.sorting import keys_of, order_of
from helpers.strategies import (
    OPERATORS,
    STRATEGIES,
    assert_same,
    assert_sums_within_bound,
    exact_items,
    make_primitive,
    operator,
    reduce_reference,
    scan_reference,
    strategy_options,
)

#: Families with draws for their options, and how many in a hundred plans are theirs; every other primitive of the
#: registry is a family with a share of the rest, but for those whose outputs the GPU counts: test_select.py tries them.
_SHARES = {"reduce": 20, "scan": 25, "sort": 20, "matmul": 10}
COUNTED = [name for name, cls in REGISTRY.items() if any(isinstance(a.length, gw.UpTo) for a in cls.arguments)]
FAMILIES = (*_SHARES, *(name for name in REGISTRY if name not in (*_SHARES, *COUNTED, "sort_pairs", "argsort")))
_CHANCES = [_SHARES.get(name, (100 - sum(_SHARES.values())) / (len(FAMILIES) - len(_SHARES))) for name in FAMILIES]
_U64 = {"shader-int64", "shader-int64-atomic-all-ops"}
_MOST = 1 << 17
#: So many plans in a row are of one configuration, with other lengths, offsets and items: kernels take long to compile.
_PER_CONFIGURATION = 5


class Call(NamedTuple):
    """A primitive, its inputs, what must come out, and how it is called."""

    primitive: gw.Primitive
    inputs: dict[str, np.ndarray]
    wanted: dict[str, np.ndarray]
    trials: int
    offsets: dict[str, int]
    #: Sums of arbitrary floats are compared by their error bound: the kind of scan, or "" for a reduction.
    bounded: str | None
    #: Where arguments are cut into the chunks of a `ChunkedArray`, and of which inputs these have buffers of their own.
    cuts: dict[str, list[int]]
    apart: frozenset[str]


def draw(device: Any, seed: int, number: int) -> Call:
    """Return the call of that number."""
    config, rng = (
        np.random.default_rng([seed, 0, number // _PER_CONFIGURATION]),
        np.random.default_rng([seed, 1, number]),
    )
    make = {"reduce": _operator_call, "scan": _operator_call, "sort": _sort, "matmul": _matmul}
    family = FAMILIES[int(config.choice(len(FAMILIES), p=np.divide(_CHANCES, 100)))]
    primitive, inputs, wanted, bounded = make.get(family, _registered)(device, family, config, rng)
    offsets = {name: _pick(rng, (0, 0, 1, 2, 3, 4, 64, 77)) for name in (*inputs, *wanted)}
    trials, cuts = _pick(rng, (1, 1, 1, 3)), {}
    if rng.random() < 0.2:
        for name, items in (inputs | wanted).items():
            # Two items of 16 bits share a word, so that only whole words can be cut off.
            step = 2 if items.itemsize == 2 else 1
            if items.size >= 2 and offsets[name] % step == 0 and rng.random() < 0.7:
                places = rng.integers(0, items.size // step + 1, int(rng.integers(1, 4)))
                cuts[name] = [step * int(place) for place in sorted(places)]
        if family == "reduce":
            cuts.pop("output", None)
    apart = frozenset(name for name in inputs if rng.random() < 0.5)
    return Call(primitive, inputs, wanted, trials, offsets, bounded, cuts, apart)


def _pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _length(rng: np.random.Generator, tile: int, most: int = _MOST) -> int:
    """Near a multiple of a tile, of a power of two, or of any magnitude."""
    kind = rng.integers(4)
    if kind == 0:
        n = tile * _pick(rng, (1, 2, 3, 5, 63, 64, 65)) + int(rng.integers(-4, 5))
    elif kind == 1:
        n = (1 << int(rng.integers(0, 18))) + int(rng.integers(-2, 3))
    else:
        n = int(2 ** rng.uniform(0, np.log2(most))) - 1
    return max(0, min(n, most))


def _mode(device: Any, rng: np.random.Generator, workgroup_size: int) -> str:
    modes = ["none", *(f"emulated-{size}" for size in (4, 16, 64) if size <= workgroup_size // 2)]
    return _pick(rng, [*modes, *(["native"] * 4 if "subgroup" in device.features else [])])


def _registered(device: Any, family: str, config: np.random.Generator, rng: np.random.Generator) -> tuple:
    """Draw a call of a primitive by its signature alone; its results are compared with its numpy twin bit for bit."""
    cls = REGISTRY[family]
    datatype = _pick(config, tuple(cls.datatypes))
    shape = {}
    if issubclass(cls, Elementwise):
        shape = _pick(config, ({}, {"workgroup_size": 64, "vecs": 1}, {"workgroup_size": 128, "vecs": 4}))
    axes = {name: str(_pick(rng, (1, 3, 8, 100, 3000))) for name in ("run", "segment")}
    axes |= {"share": str(_pick(rng, (0, 0.1, 1))), "along": _pick(rng, ("rows", "columns"))}
    op = _pick(config, ("add", "max") if np.dtype(cls.datatypes[datatype].dtype).kind in "iu" else ("max",))
    case = Case.build(family, max(_length(rng, 1024), op == "max"), datatype, **{**USUAL_AXES, **axes, "op": op})
    primitive = make_primitive(cls, device, **case.options, **shape)
    inputs = case.inputs(primitive, int(rng.integers(1 << 32)))
    wanted = primitive.reference(**inputs)
    outputs = wanted if isinstance(wanted, tuple) else (wanted,)
    return primitive, inputs, dict(zip(primitive.signature.outputs, outputs, strict=True)), None


def _operator_call(device: Any, family: str, config: np.random.Generator, rng: np.random.Generator) -> tuple:
    datatype, op = _pick(config, tuple(gw.DATATYPES)), _pick(config, OPERATORS)
    workgroup_size, vecs = _pick(config, ((32, 1), (64, 1), (64, 2), (128, 4), (256, 1), (256, 4), (None, None)))
    size = gw.capabilities(device).subgroup_size or 1
    options: dict[str, Any] = {"subgroups": _mode(device, config, workgroup_size or 256)}
    if workgroup_size is not None and workgroup_size >= size:
        options |= {"workgroup_size": workgroup_size, "vecs": vecs}
    fixed = config.random() < 0.15
    if fixed:
        options = {"compensated" if op == "add" and config.random() < 0.5 else "deterministic": True}
    if config.random() < 0.1:
        options |= {"stall_every": int(config.integers(2, 5)), "spin_limit": 8}
    n = _length(rng, 4 * (workgroup_size or 256) * (vecs or 4))
    items, bounded = exact_items(op, datatype, n, int(rng.integers(8))), None
    if family == "reduce":
        if not n and op in ("min", "max"):
            items = exact_items(op, datatype, 1)
        primitive = make_primitive(gw.Reduce, device, datatype, operator(op, datatype), **options)
        wanted = reduce_reference(op, items)
    else:
        kind = _pick(config, ("inclusive", "exclusive"))
        usable = [s for s in STRATEGIES if "u64" not in s or set(device.features) >= _U64]
        strategy = {} if fixed else strategy_options(_pick(config, usable))
        primitive = make_primitive(gw.Scan, device, datatype, operator(op, datatype), kind, **strategy, **options)
        wanted = scan_reference(op, items, kind)
    if datatype == "f32" and op == "add" and rng.random() < 0.5:
        items = (rng.standard_normal(n) * np.exp2(rng.integers(-20, 20))).astype(np.float32)
        bounded = "" if family == "reduce" else kind
    return primitive, {"input": items}, {"output": wanted}, bounded


def _sort(device: Any, _family: str, config: np.random.Generator, rng: np.random.Generator) -> tuple:
    datatype = _pick(config, SORTED_DATATYPES)
    descending = bool(config.integers(2))
    mode = _mode(device, config, 128)
    options: dict[str, Any] = {
        "descending": descending,
        "strategy": _pick(config, ("onesweep", "reduce_then_scan")),
        "subgroups": mode,
        "look": _pick(config, (None, 1, 2, 4)),
    }
    if config.random() < 0.2:
        options |= {"stall_every": int(config.integers(2, 5)), "spin_limit": 8}
    items = _pick(config, (None, 1, 2, 4))
    if items is not None:
        options |= {"workgroup_size": 256, "items": items, "parts": 1}
    n = _length(rng, 256 * (items or 16), 1 << 15)
    keys = keys_of(datatype, n, int(rng.integers(1000)))
    if n and rng.random() < 0.2:  # few distinct digits: passes that move nothing
        keys = keys[rng.integers(0, min(n, 3), n)]
    order = order_of(keys, descending)
    kind = _pick(config, ("keys", "pairs", "positions"))
    if kind == "positions":
        primitive = make_primitive(gw.ArgSort, device, datatype, **options)
        return primitive, {"input": keys}, {"output": order.astype(np.uint32)}, None
    if kind == "keys":
        return make_primitive(gw.Sort, device, datatype, **options), {"input": keys}, {"output": keys[order]}, None
    values_of = _pick(config, ("u32", "i32", "f32", "u64", "f64"))
    values = keys_of(values_of, n, 5)
    wanted = {"output_keys": keys[order], "output_values": values[order]}
    return (
        make_primitive(gw.SortPairs, device, datatype, values_of, **options),
        {"keys": keys, "values": values},
        wanted,
        None,
    )


def _matmul(device: Any, _family: str, config: np.random.Generator, rng: np.random.Generator) -> tuple:
    datatype = _pick(config, tuple(gw.MatMul.datatypes))
    m, n, k = (int(2 ** rng.uniform(0, 7.2)) - (rng.random() < 0.05) for _ in "mnk")
    options = _pick(config, [options for options, _ in MATMUL_SHAPES.values()])
    dtype = gw.STORAGE_DATATYPES[datatype].dtype
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
    product = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    primitive = make_primitive(gw.MatMul, device, datatype, m=m, n=n, k=k, **options)
    return primitive, {"a": a.ravel(), "b": b.ravel()}, {"output": product.ravel()}, None


def run(device: Any, call: Call) -> None:
    """Run a call in views that start anywhere; fail if an item is wrong or one around the outputs was written."""
    room = 3
    inputs = {k: _view(device, items, call.offsets[k], room) for k, items in call.inputs.items()}
    blank = {k: np.zeros_like(items) for k, items in call.wanted.items()}
    outputs = {k: _view(device, items, call.offsets[k], room) for k, items in blank.items()}
    call.primitive.execute(
        trials=call.trials, **{name: _in_chunks(call, name, view) for name, (_, view) in (inputs | outputs).items()}
    )
    for name, want in call.wanted.items():
        whole, view = outputs[name]
        if call.bounded is None:
            assert_same(view.to_numpy(), want, name)
        else:
            assert_sums_within_bound(view.to_numpy(), call.inputs["input"], call.bounded or None, name)
        expected = _surrounded(blank[name], call.offsets[name], room)
        got = whole.to_numpy()
        got[call.offsets[name] : call.offsets[name] + want.size] = blank[name]
        assert_same(got, expected, f"beside {name}")


def _surrounded(items: np.ndarray, offset: int, room: int) -> np.ndarray:
    marks = np.arange(1, offset + room + 1).astype(items.dtype)
    return np.concatenate([marks[:offset], items, marks[offset:]])


def _in_chunks(call: Call, name: str, view: gw.Array) -> gw.Array | gw.ChunkedArray:
    if name not in call.cuts:
        return view
    bounds = [0, *call.cuts[name], view.size]
    chunks = [view[begin:end] for begin, end in itertools.pairwise(bounds)]
    if name in call.apart:
        chunks = [gw.asarray(chunk.to_numpy(), chunk.device) for chunk in chunks]
    return gw.ChunkedArray(chunks)


def _view(device: Any, items: np.ndarray, offset: int, room: int) -> tuple[gw.Array, gw.Array]:
    whole = gw.asarray(_surrounded(items, offset, room), device)
    return whole, whole[offset : offset + items.size]


def describe(call: Call) -> str:
    """Return what a person needs to see what a call was."""
    lengths = {name: items.size for name, items in (call.inputs | call.wanted).items()}
    primitive = call.primitive
    layout = gw.Layout.separate({k: v.itemsize for k, v in (call.inputs | call.wanted).items()}, **lengths)
    datatype, op = getattr(primitive, "datatype", ""), getattr(primitive, "op", "")
    plan = dict(primitive.plan(layout).parameters)
    chunks = f"cut at {call.cuts}, apart {sorted(call.apart)}, " if call.cuts else ""
    return f"{primitive.name} {datatype} {op} {lengths} at {call.offsets}, {chunks}{call.trials} trials, {plan}"


@click.command()
@click.option("--plans", default=10_000, show_default=True, help="How many in total.")
@click.option("--minutes", default=30.0, show_default=True, help="At most.")
@click.option("--first", default=0, show_default=True, help="Number of the first.")
@click.option("--seed", default=0, show_default=True)
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Count here, and go on from it.")
def main(plans: int, minutes: float, first: int, seed: int, adapter: str | None, json_path: Path | None) -> None:
    """Try random plans; exit 4 if one was wrong."""
    device = gw.request_device(adapter)
    result: dict[str, Any] = {"seed": seed, "plans": 0, "wrong": [], "minutes": 0.0, "families": {}, "next": first}
    if json_path is not None and json_path.exists():
        found = json.loads(json_path.read_text(encoding="utf-8"))["results"][0]
        if found["seed"] == seed:
            result = found
    families, before = Counter(result["families"]), result["minutes"]
    begin = noted = time.monotonic()

    def note() -> None:
        result["minutes"] = before + (time.monotonic() - begin) / 60
        result["families"] = dict(sorted(families.items()))
        if json_path is not None:
            write_json(json_path, {**run_context(device), "results": [result]})

    while result["plans"] < plans and time.monotonic() - begin < 60 * minutes:
        number = result["next"]
        call = draw(device, seed, number)
        try:
            run(device, call)
        except AssertionError as error:
            result["wrong"].append({"number": number, "call": describe(call), "error": str(error)})
            print(f"WRONG: plan {number} of seed {seed}: {describe(call)}\n  {error}", flush=True)
        families[call.primitive.name] += 1
        result["plans"] += 1
        result["next"] += 1
        if result["plans"] % 100 == 0:
            context_of(device).executor.clear()  # kernels are for one configuration each
        if time.monotonic() - noted > 30:
            noted = time.monotonic()
            note()
            print(f"{result['plans']} plans, {len(result['wrong'])} wrong", flush=True)
    note()
    print(
        f"{result['plans']} plans of seed {seed} on {device.adapter.info['device']}: {len(result['wrong'])} wrong, in "
        f"{result['minutes']:.1f} minutes; {result['families']}"
    )
    sys.exit(4 if result["wrong"] else 0)


if __name__ == "__main__":
    main()
