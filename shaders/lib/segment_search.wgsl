// The segments that end in a tile, found by its workgroup among the ends of all segments, `end_of(s)`, which never fall.
const PARTS: u32 = {{ parts }}u;
const LANES: u32 = {{ search_lanes }}u;
// The searches: at most so many segments end up to the end of part p − 1 of the tile (before it, for p = 0), and at least
// so many. Steps take turns between two copies.
var<workgroup> search_least: array<atomic<u32>, {{ 2 * (parts + 1) }}>;
var<workgroup> search_most: array<atomic<u32>, {{ 2 * (parts + 1) }}>;
// Segments that end in part p of the tile: segment_bounds[p] to segment_bounds[p + 1] − 1.
var<workgroup> segment_bounds: array<u32, {{ parts + 1 }}>;

// The segment that lane `j` of a search looks at next. At first around a guess, as if all segments were of one length: nearby
// in single steps, then ever further apart. Later steps cut what is left into equal parts.
fn probe(step: u32, limit: u32, least: u32, most: u32, j: u32) -> u32 {
  if (step > 0u || segments_in_all() <= LANES) {
    let chunk = (most - least + LANES) / (LANES + 1u);
    return least + (j + 1u) * chunk - 1u;
  }
  let guess = u32(f32(segments_in_all()) * (f32(limit) / f32(max(items_in_all(), 1u))));
  let distance = 1u << min(j >> 1u, 30u);
  if ((j & 1u) == 0u) { return guess + distance - 1u; }
  return max(guess, distance) - distance;
}

// Finds the segments that end in each part of a tile. All invocations of the workgroup take part.
fn find_segments(tile: u32) -> array<u32, PARTS + 1u> {
  let begin = tile_begin(tile);
  workgroupBarrier();
  if (local <= PARTS) {
    // Tile 0 also has the empty segments before item 0, and the last tile all that are left.
    let least = select(0u, segments_in_all(), local == PARTS && tile + 1u >= used_tiles() && !more_follows());
    let most = select(segments_in_all(), 0u, local == 0u && begin == 0u);
    atomicStore(&search_least[2u * local], least);
    atomicStore(&search_least[2u * local + 1u], least);
    atomicStore(&search_most[2u * local], most);
    atomicStore(&search_most[2u * local + 1u], most);
  }
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
          if (end_of(s) <= limit) { atomicMax(&search_least[next], s + 1u); } else { atomicMin(&search_most[next], s); }
        }
      }
    }
    workgroupBarrier();
  }
  if (local <= PARTS) { segment_bounds[local] = atomicLoad(&search_least[2u * local + (params.search_steps & 1u)]); }
  return workgroupUniformLoad(&segment_bounds);
}
