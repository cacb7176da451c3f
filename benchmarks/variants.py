"""Kernels in other shapes and variants, back to back and in turns: what one change costs or gains.

Usage:
    python benchmarks/variants.py shapes [--n 2^16,2^18,2^20,2^22]      # candidates of gridwise_py/tuning/shapes.py
    python benchmarks/variants.py shapes --kernels sort,sort_pairs      # and of sorts, which are not tuned
    python benchmarks/variants.py variants [--n 2^20,2^24,2^28]         # of reduce, the look-back scan and sort
    python benchmarks/variants.py variants --kernels scan_forms         # and of scans in other forms (scan_variants.py)
    python benchmarks/variants.py variants --kernels float_reduce,float_scan    # what reproducible floats cost

Times are medians per call of 100 calls in one pass. A variant changes a shader's text, here only: the library has no
switch for it. Results are checked; `ratio` is against the first line, as judged (docs/concepts/verdicts.md).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
from changed_text import changed_text
from scan_variants import SCAN_TILE, SCAN_VARIANTS

import gridwise_py as gw
from gridwise_py.bench.results.context import run_context
from gridwise_py.bench.sampling.interleave import checker, interleaved, pair_in_turns, random_arguments, samples_ns
from gridwise_py.bench.stats.verdict import judge_all
from gridwise_py.bench.sweep.tune import TUNED_KERNELS, axes_for, make_for
from gridwise_py.cli.options import AxisList
from gridwise_py.storage.json_files import write_json
from gridwise_py.tuning.shapes import candidates_for, shapes_for
from gridwise_py.tuning.sort_shapes import sort_shapes_for

POST_EARLY = "  if (is_leader()) { state_publish(tile, select(TOTAL, INCLUSIVE, tile == 0u), total); }\n"
SERIAL_TOTALS = """  var before = identity();
  var total = identity();
  for (var s = 0u; s < sg_count; s++) {"""
# One subgroup scan instead of a loop over the subgroups' totals.
PARALLEL_TOTALS = (
    """  if (sg_count <= sg_size) {
    let totals = sg_scan(select(identity(), wg_totals[min(sg_lane, sg_count - 1u)], sg_lane < sg_count));
    return WorkgroupScan(subgroupShuffle(totals.exclusive, sg_id), sg_last(totals.inclusive));
  }
"""
    + SERIAL_TOTALS
)


POST_COUNTS = (
    "  if (lane < BINS) {\n"
    "    if (tile == 0u) { digit_publish(tile, lane, INCLUSIVE, base + count); }"
    " else { digit_publish(tile, lane, COUNT, count); }\n"
    "  }\n"
)
RANKED = """  let first = wg_exclusive(count).before;
  tile_rank(first);
"""
BY_SELECT = re.compile(r"lanes &= select\(~votes, votes, \(digit & (\d+)u\) != 0u\);")


def by_mask(found: re.Match[str]) -> str:
    """Return the lanes that vote as this one does by a mask of the digit's bit, instead of a choice."""
    bit = int(found[1]).bit_length() - 1
    return f"lanes &= ~(votes ^ bitcast<u32>(extractBits(bitcast<i32>(digit), {bit}u, 1u)));"


def window(tiles: int) -> Any:
    """Look back over a window of so many tiles."""
    of_mode = lambda mode: max(1, tiles // mode.size)  # noqa: E731
    return mock.patch("gridwise_py.primitives.engines.waiting.look_back_tiles", of_mode)


# Surroundings and options, and the class, where it is not that of KINDS.
Variant = tuple[Callable[[], Any], dict[str, Any]] | tuple[Callable[[], Any], dict[str, Any], type[gw.Primitive]]

AS_IT_IS: Variant = (contextlib.nullcontext, {})
CHECKED: Variant = (lambda: mock.patch.dict(os.environ, {"GRIDWISE_SHADER_CHECKS": "1"}), {})
TOTALS_BY_LANES: Variant = (lambda: changed_text(SERIAL_TOTALS, PARALLEL_TOTALS), {})
RMW: Variant = (lambda: mock.patch("gridwise_py.planning.lookback_state.reads_by_rmw", return_value=True), {})


def without_subgroups(tuning: type[gw.ReduceTuning] | type[gw.ScanTuning], **options: Any) -> dict[str, Variant]:
    """Return other shapes for the fixed order of additions, without the seals."""
    return {
        f"without subgroups, {size} x {vecs}": (
            contextlib.nullcontext,
            {"tuning": tuning(subgroups=False, workgroup_size=size, vecs=vecs), **options},
        )
        for size, vecs in ((256, 1), (256, 2), (256, 4), (256, 8))
    }


NATIVE = {"tuning": gw.SortTuning(subgroups="native")}

# By kernel and name: in which surroundings the primitive is made and bound, and with which options.
VARIANTS: dict[str, dict[str, Variant]] = {
    "reduce": {
        "as it is": AS_IT_IS,
        "checked modules": CHECKED,
        "totals of subgroups scanned by lanes": TOTALS_BY_LANES,
        "state read by atomicOr": RMW,
        "two u32 state words": (contextlib.nullcontext, {"tuning": gw.ReduceTuning(state="u32x2")}),
    },
    "scan_lookback": {
        "as it is": AS_IT_IS,
        "checked modules": CHECKED,
        "window of 16 tiles": (lambda: window(16), {}),
        "window of 64 tiles": (lambda: window(64), {}),
        "window of 128 tiles": (lambda: window(128), {}),
        "total published after the scan": (lambda: changed_text(POST_EARLY + SCAN_TILE, SCAN_TILE + POST_EARLY), {}),
        "totals of subgroups scanned by lanes": TOTALS_BY_LANES,
        "state read by atomicOr": RMW,
        "two u32 state words": (contextlib.nullcontext, {"tuning": gw.ScanTuning(state="u32x2")}),
        "tickets": (contextlib.nullcontext, {"tuning": gw.ScanTuning(tickets=True)}),
        "reduce, then scan": (contextlib.nullcontext, {"strategy": "reduce_then_scan"}),
    },
    "scan_forms": {"as it is": AS_IT_IS, **SCAN_VARIANTS},
    "sort": {
        "as it is": (contextlib.nullcontext, NATIVE),
        "checked modules": (CHECKED[0], NATIVE),
        "votes by masks": (lambda: changed_text(BY_SELECT, by_mask), NATIVE),
        "counts published after the rows' ranks": (
            lambda: changed_text(POST_COUNTS + RANKED, RANKED + POST_COUNTS),
            NATIVE,
        ),
        "tickets": (contextlib.nullcontext, {"tuning": gw.SortTuning(subgroups="native", tickets=True)}),
        "no subgroups": (contextlib.nullcontext, {"tuning": gw.SortTuning(subgroups=False)}),
        "reduce, then scan": (contextlib.nullcontext, {**NATIVE, "strategy": "reduce_then_scan"}),
    },
    "float_reduce": {
        "as it is": AS_IT_IS,
        "deterministic": (contextlib.nullcontext, {"deterministic": True}),
        "compensated": (contextlib.nullcontext, {"compensated": True}),
        **without_subgroups(gw.ReduceTuning),
    },
    "float_scan": {
        "as it is": AS_IT_IS,
        "reduce, then scan": (contextlib.nullcontext, {"strategy": "reduce_then_scan"}),
        "deterministic": (contextlib.nullcontext, {"deterministic": True}),
        "compensated": (contextlib.nullcontext, {"compensated": True}),
        **without_subgroups(gw.ScanTuning, strategy="reduce_then_scan"),
    },
}
# What the variants are of.
KINDS: dict[str, tuple[type[gw.Primitive], str, dict[str, Any]]] = {
    "reduce": (gw.Reduce, "u32", {}),
    "scan_lookback": (gw.Scan, "u32", {"strategy": "lookback"}),
    "scan_forms": (gw.Scan, "u32", {"strategy": "lookback"}),
    "sort": (gw.Sort, "u32", {"strategy": "onesweep"}),
    "float_reduce": (gw.Reduce, "f32", {}),
    "float_scan": (gw.Scan, "f32", {}),
}


# Invocations, keys of each, parts of a tile, tiles polled at once.
SORTS = {"sort": gw.Sort, "sort_pairs": gw.SortPairs}
SORT_SHAPES = {
    "gpu": [
        (512, 4, 1, 2), (512, 8, 1, 2), (256, 8, 1, 2), (256, 16, 1, 2), (1024, 4, 1, 2), (512, 12, 1, 2),
        (384, 18, 2, 2), (384, 20, 2, 2), (512, 16, 2, 2), (512, 18, 2, 1), (512, 18, 2, 4), (512, 18, 3, 2),
        (512, 20, 2, 2), (512, 22, 2, 2), (512, 24, 3, 2), (640, 16, 2, 2), (768, 12, 2, 2),
    ],
    "cpu": [(256, 8, 1, 4), (256, 16, 2, 4), (512, 8, 1, 4), (256, 16, 1, 1)],
}  # fmt: skip


def measure(
    primitives: dict[str, gw.Primitive], n: int, rounds: int, seconds: float, kernel: str
) -> list[dict[str, Any]]:
    """Measure all of them on the same data, that of the kernel's case, and judge them against the first."""
    first = next(iter(primitives.values()))
    inputs, arrays = random_arguments(first, n, **axes_for(kernel))
    protocol = gw.SamplingProtocol(
        min_samples=10, block_trials=10, timeout_s=seconds, warmup_s=seconds / 2, max_warmup_s=seconds, canary_passes=1,
        batch_trials=100 if n <= 1 << 24 else 10, check_unit=False,
    )  # fmt: skip
    found = interleaved(primitives, arrays, rounds=rounds, protocol=protocol, check=checker(first, inputs))
    correct = {name: all(m.correct for m in taken) for name, taken in found.items()}
    names = [name for name in primitives if correct[name]]
    blocks = {name: samples_ns(found[name]) for name in names}
    verdicts = judge_all([pair_in_turns(found[names[0]], found[name]) for name in names[1:]])
    ratios = dict(zip(names[1:], verdicts, strict=True))
    rows = []
    for name in primitives:
        verdict = ratios.get(name)
        rows.append(
            {
                "name": name,
                "n": n,
                "correct": correct[name],
                "time_ns": float(np.median(np.concatenate(blocks[name]))) if correct[name] else None,
                "ratio": None if verdict is None else verdict.ratio,
                "verdict": None if verdict is None else str(verdict.kind),
                "parameters": dict(found[name][0].parameters),
            }
        )
    return rows


def shapes(device, kernel: str, n: int) -> dict[str, gw.Primitive]:
    """Return the kernel's primitive in its shape for n items, and in all candidates."""
    plain = replace(gw.capabilities(device), tuning=None)
    if kernel in SORTS:
        return sorts(device, kernel, n)
    own = shapes_for(kernel, plain).at(n)
    every = dict.fromkeys([own, *candidates_for(kernel, plain, plain.subgroup_mode(None))])
    return {" x ".join(map(str, astuple(shape))): make_for(kernel, device, plain, shape, n) for shape in every}


def sorts(device, kernel: str, n: int) -> dict[str, gw.Primitive]:
    """Return sorts in the library's shape and in others: invocations, keys of each, parts, tiles looked at at once."""
    capabilities = gw.capabilities(device)
    mode = SORTS[kernel](device).mode
    own = sort_shapes_for(capabilities, mode, gw.DATATYPES["u32"], int(kernel == "sort_pairs")).at(n)
    every = [
        (own.workgroup_size, own.items, own.parts, own.look),
        *SORT_SHAPES["cpu" if capabilities.is_cpu else "gpu"],
    ]
    made: dict[str, gw.Primitive] = {}
    for shape in dict.fromkeys(every):
        try:
            numbers = dict(zip(("workgroup_size", "items", "parts", "look"), shape, strict=True))
            made["{} x {} / {}, look {}".format(*shape)] = SORTS[kernel](device, tuning=gw.SortTuning(**numbers))
        except gw.ArgumentError as error:
            print(f"  {shape}: not here: {error}")
    return made


def variants(device, kernel: str, n: int) -> dict[str, gw.Primitive]:
    """Return a kernel's primitive in all variants that this device can do, bound, so that nothing is made later."""
    made: dict[str, gw.Primitive] = {}
    arrays = None
    cls, datatype, fixed = KINDS[kernel]
    for name, (surroundings, options, *other) in VARIANTS[kernel].items():
        try:
            with surroundings():
                primitive = (other[0] if other else cls)(device, datatype, **{**fixed, **options})
                if arrays is None:
                    _, arrays = random_arguments(primitive, n)
                primitive.bind(**arrays)
        except gw.ArgumentError as error:
            print(f"  {name}: not here: {error}")
            continue
        made[name] = primitive
    return made


@click.command()
@click.argument("what", type=click.Choice(["shapes", "variants"]))
@click.option("--n", "counts", type=AxisList("n"), help="By default 2^16,2^18,2^20,2^22; variants: 2^20,2^24,2^28.")
@click.option("--kernels", help="By default those that are tuned but the scan of blocks; variants: all that have some.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=0.03, show_default=True, help="Of one measurement; the warm-up is half of that.")
@click.option("--adapter", help="Adapter by index or part of its name.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(what, counts, kernels, rounds, seconds, adapter, json_path) -> None:
    """Measure and print; the first line of each block is what the library does."""
    device = gw.request_device(adapter)
    usual = [k for k in TUNED_KERNELS if k != "scan"] if what == "shapes" else list(VARIANTS)
    chosen = kernels.split(",") if kernels else usual
    counts = counts or [1 << k for k in ((16, 18, 20, 22) if what == "shapes" else (20, 24, 28))]
    rows = []
    for n in counts:
        blocks = (
            {kernel: shapes(device, kernel, n) for kernel in chosen}
            if what == "shapes"
            else {kernel: variants(device, kernel, n) for kernel in chosen if kernel in VARIANTS}
        )
        for kernel, primitives in blocks.items():
            print(f"{kernel}, n = 2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{kernel}, n = {n:,}")
            width = max([40, *map(len, primitives)])
            for row in measure(primitives, n, rounds, seconds, kernel):
                rows.append({"kernel": kernel, **row})
                judged = "" if row["ratio"] is None else f"{row['ratio']:7.3f} x  {row['verdict']}"
                shown = f"{row['time_ns'] / 1e3:10.2f} us" if row["correct"] else "WRONG"
                print(f"  {row['name']:{width}}{shown} {judged}", flush=True)
            for primitive in primitives.values():
                primitive.release()
    if json_path is not None:
        write_json(json_path, {**run_context(device), "what": what, "rounds": rounds, "results": rows})
    if not all(row["correct"] for row in rows):
        raise SystemExit(4)


if __name__ == "__main__":
    main()
