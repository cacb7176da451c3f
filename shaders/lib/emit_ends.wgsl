// Emission of a segmented reduction: a result for each segment that ends in the tile. Values at ends go through workgroup
// memory, part by part, so that neighbouring invocations write neighbouring results.
const PART_ITEMS: u32 = {{ tile_items // parts }}u;
var<workgroup> staged: array<Acc, PART_ITEMS>;

fn stage_row(tile: u32, r: u32, part: u32, heads: u32, p: Acc, v: Quad) {
  let place = tile_item(tile, r) - tile * tile_size();
  let at = place - part * PART_ITEMS;
  if (place < part * PART_ITEMS || at >= PART_ITEMS) { return; }
  let ends = ends_of(tile, r);
  if ((ends & 1u) != 0u) { staged[at] = after_head(p, v.x, (heads & 1u) != 0u); }
  if ((ends & 2u) != 0u) { staged[at + 1u] = after_head(p, v.y, (heads & 3u) != 0u); }
  if ((ends & 4u) != 0u) { staged[at + 2u] = after_head(p, v.z, (heads & 7u) != 0u); }
  if ((ends & 8u) != 0u) { staged[at + 3u] = after_head(p, v.w, heads != 0u); }
}
fn put_segment(s: u32, x: Acc) {
//$ if items_are == "raw"
//$ for k in range(acc.words)
  store_output({{ acc.words }}u * s + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});
//$ endfor
//$ else
  store_output(s, lower(x));
//$ endif
}
// Writes the results of the segments that end in the tile. `before` is what comes before the subgroup, all earlier tiles
// included.
fn emit_tile(tile: u32, before: Chain) {
  let bounds = workgroupUniformLoad(&segment_bounds);
//$ for part in range(parts)
  if (bounds[{{ part }}] < bounds[{{ part + 1 }}]) {
    workgroupBarrier();
//$ for r in range(vecs)
    stage_row(tile, {{ r }}u, {{ part }}u, row_heads_{{ r }}(), tile_carry({{ r }}u, before), tile_values[{{ r }}]);
//$ endfor
    workgroupBarrier();
    for (var s = bounds[{{ part }}] + local; s < bounds[{{ part + 1 }}]; s += WORKGROUP_SIZE) {
      let end = segment_end(s);
      var x = identity();
      // Offsets that fall would reach beyond the part.
      let place = end - 1u - tile_begin(tile) - {{ part }}u * PART_ITEMS;
      if (load_offsets(s) < end && place < PART_ITEMS) { x = staged[place]; }
      put_segment(s, x);
    }
  }
//$ endfor
}
fn emit_end(total: Chain) {}
