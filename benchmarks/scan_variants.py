"""Scans in other forms, for benchmarks/variants.py: looking ahead, persistent workgroups, blocks in the cache.

Predictions for an H200, from figures of docs/contribute/performance.md: copy 501 µs and scan 563 µs at 2^28 items,
scan 41.3 µs at 2^24; 4,250 GB/s, reads alone 4,530 GB/s; 1.6 µs for the barrier before a dispatch; last-level cache
60 MB.

First look early. The bytes are the same, 8 an item. Of some trips to memory per tile one goes behind the scan of the
rows, which is arithmetic: 2^28 545 to 563 µs, 2^24 39 to 41 µs. While the tile's own loads are on their way it is too
early: the nearest tiles began when this one did and have published nothing, so that a trip is added: 563 to 580 µs,
41 to 43 µs.

Persistent workgroups. The same bytes. Spared: the start of a workgroup and its count at the end, for all but the first
tile of each. Lost: the start of the next workgroup hides the stores of this one, while a loop waits for its loads.
More workgroups than the GPU holds are a disaster without tickets: each of the first waits for the last.
2^28 560 to 620 µs, with tickets 3 % more; 2^24, 2 to 6 tiles each, 41 to 46 µs.

Next tile loaded ahead. The same bytes. Look-back and loads overlap within a workgroup, but the registers of two tiles
halve how many workgroups overlap with each other. 128 × 16 has 128 registers for items: 600 to 700 µs; 128 × 8 has 64,
at twice the tiles: 540 to 600 µs if the driver leaves loads in flight over a barrier, 650 if not. 2^24 41 to 47 µs.

Blocks in the cache. From memory 8 bytes an item, from the cache 4 more. Reducing 237 µs and scanning 253 (what is
written), at 2^28; two barriers a chunk: 64 chunks of 16 MiB 205 µs, 32 of 32 MiB 102. So 695 and 592 µs, and more as
each dispatch, of some 4 and 8 µs, has to fill and to empty the GPU. At 2^24 4 chunks, 31 + 13 = 44 µs, and 2, 31 + 6 =
37 µs (there input and output, 128 MiB, do not fit the cache). With the next chunk reduced by the dispatch that scans
this one, one barrier a chunk: 2^28 594 and 543 µs; 2^24 39 and 35 µs. 8 MiB: twice the barriers of 16.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import wgpu
from changed_text import changed_texts, more_params

import gridwise_py as gw
from gridwise_py.planning.builder import PlanBuilder
from gridwise_py.planning.layout import Layout

SCAN_TILE = "  tile_scan(sum.before);\n"
TILE_SUM = "  let sum = tile_sum();\n"

# ---- the first look of a look-back, before its turn

LOOK_BACK = re.compile(r"fn look_back\(.*?\n}\n", re.DOTALL)
PEEKS = re.compile(r"(?:    var published_\d+ = [^\n]*\n    if [^\n]*\n[^\n]*\n    }\n)+")
LOOK_EARLY = "  if (tile > 0u && look_back_enter()) { look_early(tile - 1u); }\n"


def with_early_look(found: re.Match[str]) -> str:
    """Return the look-back with its reads in a function of their own, which may have been called before."""
    text = found[0]
    peeks = PEEKS.search(text)
    if peeks is None:
        return text
    names = re.findall(r"var (published_\d+) =", peeks[0])
    private = "".join(f"var<private> {name}: Published;\n" for name in names)
    reads = re.sub(r"var (published_\d+ =)", r"\1", peeks[0])
    return f"""var<private> looked: bool;
{private}fn look(nearest: u32) {{
  let window = sg_size * LOOK;
  let first = sg_lane * LOOK + 1u;
{reads}}}
fn look_early(nearest: u32) {{
  look(nearest);
  looked = true;
}}
""" + text.replace(peeks[0], "    if (!looked) { look(nearest); }\n    looked = false;\n")


def early_look(before: str) -> Any:
    """Look for the first time before this text, and use what was found when the look-back begins."""
    return changed_texts((LOOK_BACK, with_early_look), (before, LOOK_EARLY + before))


# ---- persistent workgroups

SURPLUS = "  if (number >= params.tiles) { return; }\n"
BEGIN = """  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
  tile_load(tile);
"""
END = """  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }
  tile_store(tile, before);
}
"""
TAKE_SEVERAL = more_params("workgroups", "tiles_each")
PERSISTENT = (
    TAKE_SEVERAL,
    (SURPLUS, "  if (number >= params.workgroups) { return; }\n"),
    (
        BEGIN,
        """  if (look_back_enter()) { state_begin(); }
  for (var taken = 0u; taken < params.tiles_each; taken++) {
  let tile = state_enter(number + taken * params.workgroups);
  if (tile >= params.tiles) { break; }
  tile_load(tile);
""",
    ),
    (
        END,
        """  tile_store(tile, before);
  }
  if (is_leader() && state_count_finished(params.workgroups)) { state_next_epoch(); }
}
""",
    ),
)
TILE_LOAD = re.compile(r"fn tile_load\(.*?\n}\n", re.DOTALL)


def with_ahead(found: re.Match[str]) -> str:
    """Return tile_load, the same for the next tile, and what makes that the tile; row by row, as everywhere."""
    ahead = found[0].replace("tile_load", "ahead_load").replace("tile_items", "ahead_items")
    rows = len(set(re.findall(r"tile_items\[(\d+)\]", found[0])))
    moves = "".join(f"  tile_items[{r}] = ahead_items[{r}];\n" for r in range(rows))
    return f"{found[0]}var<private> ahead_items: array<vec4<Acc>, VECS>;\n{ahead}fn ahead_take() {{\n{moves}}}\n"


AHEAD = (
    TAKE_SEVERAL,
    PERSISTENT[1],
    (TILE_LOAD, with_ahead),
    (
        BEGIN,
        """  if (look_back_enter()) { state_begin(); }
  var tile = state_enter(number);
  tile_load(tile);
  for (var taken = 1u; taken <= params.tiles_each; taken++) {
""",
    ),
    (
        SCAN_TILE,
        SCAN_TILE
        + """  var ahead = params.tiles;
  if (taken < params.tiles_each) { ahead = state_enter(number + taken * params.workgroups); }
  if (ahead < params.tiles) { ahead_load(ahead); }
""",
    ),
    (
        END,
        """  tile_store(tile, before);
  if (ahead >= params.tiles) { break; }
  tile = ahead;
  ahead_take();
  }
  if (is_leader() && state_count_finished(params.workgroups)) { state_next_epoch(); }
}
""",
    ),
)

# Iterations of all loops are limited on lavapipe; so a workgroup there takes no more tiles than these.
MOST_TILES_EACH_ON_CPU = 16


class PersistentScan(gw.Scan):
    """A look-back scan whose workgroups each take several tiles; its text is one of those above.

    Parameters
    ----------
    workgroups : int
        At most so many; on a CPU adapter as many as it has cores.
    """

    def __init__(self, device: wgpu.GPUDevice, datatype: str, *, workgroups: int, **options: Any):
        super().__init__(device, datatype, **options)
        self._workgroups = workgroups

    def _add(self, *args: Any, params: Mapping[str, int], workgroups: int, sibling: bool = False, **more: Any) -> None:
        if sibling:  # a shape for other lengths, which are not measured with this primitive
            return
        tiles = params["tiles"]
        is_cpu = self.capabilities.is_cpu
        each = -(-tiles // (min(self._workgroups, os.cpu_count() or 1) if is_cpu else self._workgroups))
        if is_cpu:
            each = min(each, MOST_TILES_EACH_ON_CPU)
        groups = -(-tiles // each)
        super()._add(*args, params={**params, "workgroups": groups, "tiles_each": each}, workgroups=groups, **more)


# ---- reduce-then-scan in chunks that the last-level cache holds

SCAN_MAIN = re.compile(r"tile_items: array<[^;]*, VECS>;.*", re.DOTALL)
# carries: the totals of all blocks, and after them what comes before each chunk.
CACHED_MAIN = """
fn scan_block(block: u32) {
  // What comes before it in its chunk: each invocation takes some neighbouring totals, as in reduce.wgsl.
  let each = (block - params.scan_first + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let start = params.scan_first + (sg_id * sg_size + sg_lane) * each;
  var sum_before = identity();
  for (var i = start; i < min(start + each, block); i++) { sum_before = combine(sum_before, load_acc_carries(i)); }
  var carry = wg_scan(sg_reduce(sum_before)).total;
  if (params.scan_first > 0u) { carry = combine(load_acc_carries(params.carry_in), carry); }
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    let sum = tile_sum();
    tile_scan(combine(carry, sum.before));
    tile_store(tile, identity());
    carry = combine(carry, sum.total);
  }
  if (local == 0u && block == params.scan_end - 1u) { store_carries(params.carry_in + 1u, pack(carry)); }
}
fn reduce_block(block: u32) {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
  var sums = vec4<Acc>(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    SUMS
  }
  let total = wg_scan(sg_reduce(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
  if (local == 0u) { store_carries(block, pack(total)); }
}
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let number = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  enter(lanes);
  // In turns, so that both are at work all the time: one reads the memory, the other one the cache.
  if (params.both == 0u) {
    if (params.scan_first + number < params.scan_end) { scan_block(params.scan_first + number); }
    if (params.reduce_first + number < params.reduce_end) { reduce_block(params.reduce_first + number); }
  } else if (number % 2u == 0u) {
    if (params.scan_first + number / 2u < params.scan_end) { scan_block(params.scan_first + number / 2u); }
  } else {
    if (params.reduce_first + number / 2u < params.reduce_end) { reduce_block(params.reduce_first + number / 2u); }
  }
}
"""
MAIN = re.compile(r"@compute @workgroup_size\(WORKGROUP_SIZE\)\nfn main\(.*", re.DOTALL)


def with_cached_main(found: re.Match[str]) -> str:
    """Return the text with the entry point above, its rows written out."""
    rows = len(set(re.findall(r"tile_items\[(\d+)\] = item4\(", found[0])))
    sums = "\n    ".join(f"sums = combine4(sums, tile_items[{r}]);" for r in range(rows))
    return MAIN.sub(lambda _: CACHED_MAIN.replace("SUMS", sums), found[0])


def cached_blocks() -> Any:
    """Compose the kernel of CachedScan."""
    names = ("scan_first", "scan_end", "reduce_first", "reduce_end", "carry_in", "both")
    return changed_texts(more_params(*names, without=("blocks",)), (SCAN_MAIN, with_cached_main))


class CachedScan(gw.Scan):
    """Reduce-then-scan of one chunk after another, so that the second read of a chunk finds it in the cache.

    Sums only in any order: the operator must be commutative. Forward progress: no workgroup waits for another.

    Parameters
    ----------
    chunk_bytes : int
    overlap : bool
        Whether the dispatch that scans a chunk reduces the next one as well; one barrier a chunk instead of two.
    blocks : int
        Most workgroups for each of both.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        datatype: str,
        *,
        chunk_bytes: int,
        overlap: bool,
        blocks: int = 528,
        **options: Any,
    ):
        super().__init__(device, datatype, **{**options, "strategy": "reduce_then_scan"})
        self._chunk_bytes, self._overlap, self._most_blocks = chunk_bytes, overlap, blocks

    def _plan_blocks(self, builder: PlanBuilder, layout: Layout) -> dict[str, Any]:
        operand = layout["input"]
        shape = self._blocks_shapes.at(operand.length)
        tiles = -(-operand.length // shape.tile_items)
        chunk_tiles = min(tiles, max(1, self._chunk_bytes // operand.item_bytes // shape.tile_items))
        per_block = -(-chunk_tiles // min(self._most_blocks, shape.max_blocks))
        blocks, in_chunk = -(-tiles // per_block), -(-chunk_tiles // per_block)
        chunks = [(first, min(first + in_chunk, blocks)) for first in range(0, blocks, in_chunk)]
        carries = builder.scratch("carries", blocks + len(chunks) + 1).by_words()
        none = (0, 0)
        steps: list[tuple[int, tuple[int, int], tuple[int, int]]] = []
        if self._overlap:
            steps.append((0, none, chunks[0]))
            steps += [(c, chunk, (*chunks, none)[c + 1]) for c, chunk in enumerate(chunks)]
        else:
            for c, chunk in enumerate(chunks):
                steps += [(c, none, chunk), (c, chunk, none)]
        for c, scan, reduce in steps:
            counts = [end - first for first, end in (scan, reduce)]
            both = int(min(counts) > 0)
            self._add(
                builder, f"chunk {c}", "scan.wgsl", shape, input=operand, output=layout["output"],
                params={
                    "tiles": tiles, "tiles_per_block": per_block, "scan_first": scan[0], "scan_end": scan[1],
                    "reduce_first": reduce[0], "reduce_end": reduce[1], "carry_in": blocks + c, "both": both,
                },
                workgroups=max(counts) * (1 + both), carries=carries, carry_out=True,
                exclusive=self.kind == "exclusive",
            )  # fmt: skip
        return {
            "workgroup_size": shape.workgroup_size,
            "vecs": shape.vecs,
            "blocks": blocks,
            "chunks": len(chunks),
            "chunk_bytes": self._chunk_bytes,
        }


# Of an H200. How many workgroups one holds is not known: 128 × 16 has 80 registers of items and sums, so 4 to 6.
MULTIPROCESSORS = 132
MIB = 1 << 20

# As VARIANTS of variants.py has them; the third is the class, where it is another one.
SCAN_VARIANTS: dict[str, tuple[Any, ...]] = {
    "first look before the rows' scan": (lambda: early_look(SCAN_TILE), {}),
    "first look while the tile loads": (lambda: early_look(TILE_SUM), {}),
    **{
        f"persistent, {each} a multiprocessor{', tickets' if tickets else ''}": (
            lambda: changed_texts(*PERSISTENT),
            {"workgroups": each * MULTIPROCESSORS, "tuning": gw.ScanTuning(tickets=tickets or None)},
            PersistentScan,
        )
        for each, tickets in ((3, False), (4, False), (3, True), (4, True), (8, True))
    },
    **{
        f"next tile loaded ahead, {size} x {vecs}, {each} a multiprocessor{', tickets' if tickets else ''}": (
            lambda: changed_texts(*AHEAD),
            {
                "workgroups": each * MULTIPROCESSORS,
                "tuning": gw.ScanTuning(workgroup_size=size, vecs=vecs, tickets=tickets or None),
            },
            PersistentScan,
        )
        for size, vecs, each, tickets in (
            (128, 16, 2, False),
            (128, 16, 3, True),
            (128, 8, 4, False),
            (128, 8, 4, True),
            (128, 8, 6, True),
            (256, 8, 2, False),
        )
    },
    **{
        f"chunks of {mib} MiB{', next one reduced along' if overlap else ''}": (
            cached_blocks,
            {"chunk_bytes": mib * MIB, "overlap": overlap, "blocks": 264 if overlap else 528},
            CachedScan,
        )
        for mib in (8, 16, 32)
        for overlap in (False, True)
    },
}
