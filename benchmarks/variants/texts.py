"""Kernels with other texts, of which the library has no switch: ``gridwise tune benchmarks/variants/texts.py``.

Each benchmark has one axis, `variant`, whose first value is the library's own text; the runner is `gridwise tune`,
which takes all variants in turns, checks every result, and judges. A new experiment adds a value: a change of the text
(`changed_text.py`), or another way to make the primitive. When it has spoken, its result goes into
docs/contribute/performance.md, and the value goes.

    gridwise tune benchmarks/variants/texts.py scan --n 2^28 --json scan_texts.json
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from changed_text import changed_text, planned_in
from data import benchmark, on_gpu

import gridwise_py as gw

Surroundings = Callable[[], AbstractContextManager[Any]]
SIZES = [2**20, 2**24, 2**28]

SCAN_TILE = "  tile_scan(sum.before);\n"
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


COMMON: dict[str, Surroundings] = {"as-it-is": contextlib.nullcontext}
BY_LANES: dict[str, Surroundings] = {"totals-by-lanes": lambda: changed_text(SERIAL_TOTALS, PARALLEL_TOTALS)}
BY_ATOMICS: dict[str, Surroundings] = {
    "states-read-by-atomicOr": lambda: mock.patch("gridwise_py.planning.lookback_state.reads_by_rmw", return_value=True)
}
TEXTS: dict[str, dict[str, Surroundings]] = {
    "reduce": COMMON | BY_LANES | BY_ATOMICS,
    "scan": COMMON | BY_LANES | BY_ATOMICS
    | {"total-after-the-scan": lambda: changed_text(POST_EARLY + SCAN_TILE, SCAN_TILE + POST_EARLY)},
    "sort": COMMON
    | {
        "votes-by-masks": lambda: changed_text(BY_SELECT, by_mask),
        "counts-after-the-ranks": lambda: changed_text(POST_COUNTS + RANKED, RANKED + POST_COUNTS),
    },
    "segments": COMMON
    | {
        "two-kernels": lambda: mock.patch.object(gw.SegmentedReduce, "_may_complete", return_value=False),
        "short-everywhere": lambda: mock.patch("gridwise_py.primitives.segmented._SHORT_SEGMENT", 1 << 32),
        "short-nowhere": lambda: mock.patch("gridwise_py.primitives.segmented._SHORT_SEGMENT", 0),
    },
}  # fmt: skip


def _words(device: Any, n: int) -> dict[str, gw.Array]:
    return {"input": on_gpu(device, "words", n)}


@gw.benchmarked(n=SIZES, variant=list(TEXTS["reduce"]), tune="variant")
def reduce(device, n, variant):
    """A sum."""
    return benchmark(planned_in(TEXTS["reduce"][variant], gw.Reduce(device)), _words(device, n))


@gw.benchmarked(n=SIZES, variant=list(TEXTS["scan"]), tune="variant")
def scan(device, n, variant):
    """A scan by look-back."""
    made = gw.Scan(device, strategy="lookback")
    return benchmark(planned_in(TEXTS["scan"][variant], made), _words(device, n))


@gw.benchmarked(n=SIZES, variant=list(TEXTS["sort"]), tune="variant")
def sort(device, n, variant):
    """A sort of u32."""
    made = gw.Sort(device, strategy="onesweep", tuning=gw.SortTuning(subgroups="native"))
    return benchmark(planned_in(TEXTS["sort"][variant], made), _words(device, n))


@gw.benchmarked(n=SIZES, length=[1, 4, 16, 1024, 65536], variant=list(TEXTS["segments"]), tune="variant")
def segments(device, n, length, variant):
    """Sums of segments, by offsets."""
    inputs = {"items": on_gpu(device, "words", n), "offsets": on_gpu(device, f"offsets of {length}", n)}
    return benchmark(planned_in(TEXTS["segments"][variant], gw.SegmentedReduce(device, "u32")), inputs)


@gw.benchmarked(
    n=SIZES, kernel=["reduce", "scan"], sums=["plain", "deterministic", "compensated", "reduce-then-scan"],
    baseline="sums=plain",
)  # fmt: skip
def floats(device, n, kernel, sums):
    """What sums of f32 in a fixed order cost; `gridwise bench` shows it."""
    options = {} if sums in ("plain", "reduce-then-scan") else {sums: True}
    if kernel == "scan" and sums == "reduce-then-scan":
        options = {"strategy": "reduce_then_scan"}
    cls = gw.Reduce if kernel == "reduce" else gw.Scan
    return gw.Benchmark(cls(device, "f32", **options), {"input": on_gpu(device, "floats", n)})
