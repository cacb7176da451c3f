// Emission of a segmented reduction: a result for each segment that ends in the tile. Values at ends go through workgroup
// memory, part by part, so that neighbouring invocations write neighbouring results.
const PARTS: u32 = {{ parts }}u;
const PART_ITEMS: u32 = {{ tile_items // parts }}u;
// With a gap after each lane's items, so that lanes write to different banks.
var<workgroup> staged: array<Acc, PART_ITEMS + PART_ITEMS / WIDTH>;
fn stage(at: u32) -> u32 { return at + at / WIDTH; }
// The segment that began before the block and ends in it, and what the block has of it: another workgroup, or kernel,
// completes it.
var<workgroup> unfinished: u32;
var<workgroup> unfinished_value: Acc;

//$ for r in range(rows)
fn stage_row_{{ r }}(tile: u32, part: u32, p: Acc) {
  let at = tile_item(tile, {{ r }}u) - tile * tile_size() - part * PART_ITEMS;
  let ends = ends_of(tile, {{ r }}u);
  if (at >= PART_ITEMS || ends == 0u) { return; }
  let heads = tile_heads[{{ r }}];
  let first = stage(at);
//$ for k in range(width)
  if ((ends & {{ 2 ** k }}u) != 0u) {
    staged[first + {{ k }}u] = after_head(p, tile_values[{{ r * quads + k // 4 }}].{{ "xyzw"[k % 4] }}, (heads & {{ 2 ** (k + 1) - 1 }}u) != 0u);
  }
//$ endfor
}
//$ endfor
//$ include "lib/put_segment.wgsl"
// Writes the results of the segments from `first` to `end` - 1, which end in the tile. `before` is what comes before it in the
// block, which begins with item `block_begin`.
fn emit_ends(tile: u32, first: u32, end: u32, block_begin: u32, before: Chain, sum: WorkgroupScan_chain) {
  let before_here = chain_combine(before, sum.before);
  for (var part = 0u; part < PARTS; part++) {
    if (part > 0u) { workgroupBarrier(); }
    stage_row_{{ r }}(tile, part, tile_carry({{ r }}u, before_here));  //$ for r in range(rows)
    workgroupBarrier();
    let part_begin = tile_begin(tile) + part * PART_ITEMS;
    if (end - first <= WORKGROUP_SIZE) {
      let s = first + local;
      if (s < end) { emit_segment(s, load_offsets(s), segment_end(s), part, part_begin, block_begin); }
      continue;
    }
    for (var s = first + local; s < end; s += 8u * WORKGROUP_SIZE) {
      // Eight at a time, so that their loads are on their way at once.
//$ for j in range(8)
      let s_{{ j }} = min(s{{ " + %du * WORKGROUP_SIZE" % j if j }}, end - 1u);
      let begin_{{ j }} = load_offsets(s_{{ j }});
      let end_{{ j }} = segment_end(s_{{ j }});
//$ endfor
//$ for j in range(8)
      if (s{{ " + %du * WORKGROUP_SIZE" % j if j }} < end) { emit_segment(s_{{ j }}, begin_{{ j }}, end_{{ j }}, part, part_begin, block_begin); }
//$ endfor
    }
  }
}
fn emit_segment(s: u32, begin: u32, end: u32, part: u32, part_begin: u32, block_begin: u32) {
  if (begin >= end) {
    if (part == 0u) { put_segment(s, identity()); }
  } else if (end - 1u - part_begin < PART_ITEMS) {
    let x = staged[stage(end - 1u - part_begin)];
    if (begin < block_begin) {
      unfinished = s;
      unfinished_value = x;
    } else {
      put_segment(s, x);
    }
  }
}
