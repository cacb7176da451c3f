// Where the items of a tile lie: WORKGROUP_SIZE × VECS × 4 consecutive items. A subgroup owns consecutive rows. A row is QUADS
// vec4 per lane, side by side, so loads and stores are contiguous over the lanes; and combining lane by lane, row by row,
// subgroup by subgroup keeps the order of the items.
const VECS: u32 = {{ vecs }}u;
const QUADS: u32 = {{ quads if quads is defined else 1 }}u;
const ROWS: u32 = VECS / QUADS;

fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 {
  return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size * QUADS + sg_lane * QUADS) * 4u;
}
