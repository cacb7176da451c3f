// Emission of a segmented reduction: a result for each segment that ends in the tile. Values at ends go through workgroup
// memory, part by part, so that neighbouring invocations write neighbouring results.
const PART_ITEMS: u32 = {{ tile_items // parts }}u;
// With a gap after each lane's items, so that lanes write to different banks.
var<workgroup> staged: array<Acc, PART_ITEMS + PART_ITEMS / WIDTH>;
fn stage(at: u32) -> u32 { return at + at / WIDTH; }

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
fn put_segment(s: u32, x: Acc) {
//$ if items_are == "raw"
//$ for k in range(acc.words)
  store_output({{ acc.words }}u * s + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});
//$ endfor
//$ else
  store_output(s, lower(x));
//$ endif
}
// Writes the results of the segments that end in the tile; `before` is what comes before it.
fn emit_tile(tile: u32, before: Chain, sum: WorkgroupScan_chain) {
  let bounds = workgroupUniformLoad(&segment_bounds);
  let before_here = chain_combine(before, sum.before);
//$ for part in range(parts)
  if (bounds[{{ part }}] < bounds[{{ part + 1 }}]) {
    workgroupBarrier();
//$ for r in range(rows)
    stage_row_{{ r }}(tile, {{ part }}u, tile_carry({{ r }}u, before_here));
//$ endfor
    workgroupBarrier();
    for (var s = bounds[{{ part }}] + local; s < bounds[{{ part + 1 }}]; s += WORKGROUP_SIZE) {
      let end = segment_end(s);
      var x = identity();
      // Offsets that fall would reach beyond the part.
      let place = end - 1u - tile_begin(tile) - {{ part }}u * PART_ITEMS;
      if (load_offsets(s) < end && place < PART_ITEMS) { x = staged[stage(place)]; }
      put_segment(s, x);
    }
  }
//$ endfor
}
fn emit_end(total: Chain) {}
