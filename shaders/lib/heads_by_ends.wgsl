// Heads by offsets, in a block of consecutive tiles: segment s is items offsets[s] to offsets[s + 1] − 1. A bit is set for each
// place of a tile at which a segment ends or begins. The first tile of a block searches for its first segment, the others go
// on from there.
const NO_SEGMENT: u32 = 0xffffffffu;
fn end_of(s: u32) -> u32 { return load_offsets(s + 1u); }
fn items_in_all() -> u32 { return params.first + item_count(); }
// Item 0 of the tile, and the end of the items, as offsets count.
fn tile_begin(tile: u32) -> u32 { return params.first + tile * tile_size(); }
fn segment_end(s: u32) -> u32 { return min(end_of(s), items_in_all()); }
fn is_last(tile: u32) -> bool { return tile + 1u >= used_tiles() && !more_follows(); }
// What ends up to here, ends in the tile; the last tile has all that are left.
fn tile_limit(tile: u32) -> u32 { return select(tile_begin(tile) + tile_size(), NO_SEGMENT, is_last(tile)); }
// Bit q: a segment ends before place q of the tile, or begins with it.
var<workgroup> head_bits: array<atomic<u32>, {{ tile_items // 32 + 1 }}>;
//$ include "lib/segment_behind.wgsl"
struct TileEnds {
  end: u32,  // of the segments that end in the tile
  heads: u32,  // whether there is a head
  more: u32,  // whether there may be further segments
}
var<workgroup> tile_ends: TileEnds;
// The first segment of a block; in the block of item 0 that is segment 0, empty or not.
fn segments_begin(tile: u32) -> u32 { return segment_behind(tile_begin(tile), select(params.segments, 0u, tile_begin(tile) == 0u)); }

// Sets the bits of a tile; `first` is the first segment that does not end before it.
fn heads_begin(tile: u32, first: u32) -> TileEnds {
  let begin = tile_begin(tile);
  let limit = tile_limit(tile);
  for (var word = local; word <= WORKGROUP_SIZE * VECS / 8u; word += WORKGROUP_SIZE) { atomicStore(&head_bits[word], 0u); }
  if (local == 0u) { tile_ends = TileEnds(first, 0u, 0u); }
  workgroupBarrier();
  if (local == 0u) {
    set_head(begin, load_offsets(0u));
    set_head(begin, load_offsets(first));
    if (begin == 0u) { set_head(0u, 0u); }
  }
  // Ever more at a time, so that the loads of short segments are on their way at once, and few segments cost few loads: each
  // time costs a trip to memory. Where twice as many are expected as there are invocations, give or take, that saves one.
  var next = first;
  if (4u * params.expected_ends < 3u * WORKGROUP_SIZE || 2u * params.expected_ends >= 3u * WORKGROUP_SIZE) {
    mark_1(begin, limit, next);
    let found = workgroupUniformLoad(&tile_ends);
    if (found.more == 0u) { return found; }
    next += WORKGROUP_SIZE;
  }
  mark_2(begin, limit, next);
  var found = workgroupUniformLoad(&tile_ends);
  next += 2u * WORKGROUP_SIZE;
  for (; found.more != 0u; next += 8u * WORKGROUP_SIZE) {
    mark_8(begin, limit, next);
    found = workgroupUniformLoad(&tile_ends);
  }
  return found;
}
//$ for count in (1, 2, 8)
// Marks the ends of {{ count }} × WORKGROUP_SIZE segments from `first` on, as far as they end in the tile.
fn mark_{{ count }}(begin: u32, limit: u32, first: u32) {
  let last = params.segments - 1u;
//$ for j in range(count)
  let s_{{ j }} = first + {{ j }}u * WORKGROUP_SIZE + local;
  let end_{{ j }} = end_of(min(s_{{ j }}, last));
  let next_{{ j }} = end_of(min(s_{{ j }} + 1u, last));
//$ endfor
//$ for j in range(count)
  let ends_{{ j }} = s_{{ j }} <= last && end_{{ j }} <= limit;
  if (ends_{{ j }}) {
    set_head(begin, min(end_{{ j }}, items_in_all()));
    // One invocation has the last of them.
    if (s_{{ j }} == last || next_{{ j }} > limit) { tile_ends.end = s_{{ j }} + 1u; }
  }
//$ endfor
  if (local == WORKGROUP_SIZE - 1u) { tile_ends.more = select(0u, 1u, ends_{{ count - 1 }}); }
}
//$ endfor
fn set_head(begin: u32, i: u32) {
  let place = i - begin;
  if (i >= begin && place <= tile_size()) { 
    atomicOr(&head_bits[place >> 5u], 1u << (place & 31u));
    tile_ends.heads = 1u;
  }
}
fn heads_of(tile: u32, r: u32) -> u32 {
  let place = tile_item(tile, r) - tile * tile_size();
  return (atomicLoad(&head_bits[place >> 5u]) >> (place & 31u)) & WIDTH_BITS;
}
// A bit for each item of a row with which a segment ends.
fn ends_of(tile: u32, r: u32) -> u32 {
  let next = tile_item(tile, r) - tile * tile_size() + WIDTH;
  let here = tile_heads[r];
  return (here >> 1u) | (((atomicLoad(&head_bits[next >> 5u]) >> (next & 31u)) & 1u) << (WIDTH - 1u));
}
