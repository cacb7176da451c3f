// Heads by offsets: segment s is items offsets[s] to offsets[s + 1] − 1. The workgroup finds the segments that end in its
// tile, and sets a bit for each place at which one ends or begins.
const PARTS: u32 = {{ parts }}u;
const LANES: u32 = {{ search_lanes }}u;
// The searches: at most so many segments end up to the end of part p − 1 of the tile (before it, for p = 0), and at least
// so many. Steps take turns between two copies.
var<workgroup> search_least: array<atomic<u32>, {{ 2 * (parts + 1) }}>;
var<workgroup> search_most: array<atomic<u32>, {{ 2 * (parts + 1) }}>;
// Segments that end in part p of the tile: segment_bounds[p] to segment_bounds[p + 1] − 1.
var<workgroup> segment_bounds: array<u32, {{ parts + 1 }}>;
// Bit q: a segment ends before place q of the tile, or begins with it.
var<workgroup> head_bits: array<atomic<u32>, {{ tile_items // 32 + 1 }}>;

// Item 0 of the tile, and the end of the items, as offsets count.
fn tile_begin(tile: u32) -> u32 { return params.first + tile * tile_size(); }
fn segment_end(s: u32) -> u32 { return min(load_offsets(s + 1u), params.first + item_count()); }


// The segment that lane `j` of a search looks at next. At first around a guess, as if all segments were of one length: nearby
// in single steps, then ever further apart. Later steps cut what is left into equal parts.
fn probe(step: u32, limit: u32, least: u32, most: u32, j: u32) -> u32 {
  if (step > 0u || params.segments <= LANES) {
    let chunk = (most - least + LANES) / (LANES + 1u);
    return least + (j + 1u) * chunk - 1u;
  }
  let guess = u32(f32(params.segments) * (f32(limit) / f32(max(params.first + params.n, 1u))));
  let distance = 1u << min(j >> 1u, 30u);
  if ((j & 1u) == 0u) { return guess + distance - 1u; }
  return max(guess, distance) - distance;
}

fn heads_begin(tile: u32) {
  let begin = tile_begin(tile);
  workgroupBarrier();
  if (local <= PARTS) {
    // Tile 0 also has the empty segments before item 0, and the last tile all that are left.
    let least = select(0u, params.segments, local == PARTS && tile + 1u >= used_tiles() && !more_follows());
    let most = select(params.segments, 0u, local == 0u && begin == 0u);
    atomicStore(&search_least[2u * local], least);
    atomicStore(&search_least[2u * local + 1u], least);
    atomicStore(&search_most[2u * local], most);
    atomicStore(&search_most[2u * local + 1u], most);
  }
  for (var word = local; word <= WORKGROUP_SIZE * VECS / 8u; word += WORKGROUP_SIZE) { atomicStore(&head_bits[word], 0u); }
  workgroupBarrier();

  let p = local / LANES;
  let limit = begin + p * (tile_size() / PARTS);
  for (var step = 0u; step < params.search_steps; step++) {
    if (p <= PARTS) {
      let here = 2u * p + (step & 1u);
      let next = here ^ 1u;
      let least = atomicLoad(&search_least[here]);
      let most = atomicLoad(&search_most[here]);
      atomicMax(&search_least[next], least);
      atomicMin(&search_most[next], most);
      if (least < most) {
        let s = probe(step, limit, least, most, local - p * LANES);
        if (s >= least && s < most) {
          if (load_offsets(s + 1u) <= limit) { atomicMax(&search_least[next], s + 1u); } else { atomicMin(&search_most[next], s); }
        }
      }
    }
    workgroupBarrier();
  }
  if (local <= PARTS) { segment_bounds[local] = atomicLoad(&search_least[2u * local + (params.search_steps & 1u)]); }
  let bounds = workgroupUniformLoad(&segment_bounds);
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
  return (atomicLoad(&head_bits[place >> 5u]) >> (place & 31u)) & 15u;
}
//$ if emission == "ends"
// A bit for each of four items with which a segment ends.
fn ends_of(tile: u32, r: u32) -> u32 {
  let next = tile_item(tile, r) - tile * tile_size() + 4u;
  return (heads_of(tile, r) >> 1u) | (((atomicLoad(&head_bits[next >> 5u]) >> (next & 31u)) & 1u) << 3u);
}
//$ endif
