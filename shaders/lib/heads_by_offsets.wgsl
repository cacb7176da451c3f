// Heads by offsets: segment s is items offsets[s] to offsets[s + 1] − 1. A bit is set for each place of a tile at which a
// segment ends or begins.
fn end_of(s: u32) -> u32 { return load_offsets(s + 1u); }
fn segments_in_all() -> u32 { return params.segments; }
fn items_in_all() -> u32 { return params.first + item_count(); }
// Item 0 of the tile, and the end of the items, as offsets count.
fn tile_begin(tile: u32) -> u32 { return params.first + tile * tile_size(); }
fn segment_end(s: u32) -> u32 { return min(end_of(s), items_in_all()); }
//$ include "lib/segment_search.wgsl"
// Bit q: a segment ends before place q of the tile, or begins with it.
var<workgroup> head_bits: array<atomic<u32>, {{ tile_items // 32 + 1 }}>;

fn heads_begin(tile: u32) {
  let begin = tile_begin(tile);
  workgroupBarrier();
  for (var word = local; word <= WORKGROUP_SIZE * VECS / 8u; word += WORKGROUP_SIZE) { atomicStore(&head_bits[word], 0u); }
  let bounds = find_segments(tile);
  if (local == 0u) {
    set_head(begin, load_offsets(0u));
    set_head(begin, load_offsets(bounds[0]));
    if (begin == 0u) { set_head(0u, 0u); }
  }
  for (var s = bounds[0] + local; s < bounds[PARTS]; s += WORKGROUP_SIZE) { set_head(begin, segment_end(s)); }
  workgroupBarrier();
}
fn set_head(begin: u32, i: u32) {
  let place = i - begin;
  if (i >= begin && place <= tile_size()) { atomicOr(&head_bits[place >> 5u], 1u << (place & 31u)); }
}
fn tile_heads_of(tile: u32, r: u32, full: bool) -> u32 { return heads_of(tile, r); }
fn heads_of(tile: u32, r: u32) -> u32 {
  let place = tile_item(tile, r) - tile * tile_size();
  return (atomicLoad(&head_bits[place >> 5u]) >> (place & 31u)) & WIDTH_BITS;
}
