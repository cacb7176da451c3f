// A tile of items in segments: WORKGROUP_SIZE × VECS × 4 consecutive items, in rows as in lib/tile.wgsl. What begins a
// segment, a head, is a bit; the values stay in registers from the load to the store. The template writes out every row.
const VECS: u32 = {{ vecs }}u;
var<private> tile_values: array<Quad, VECS>;
// Four bits per row and lane, eight rows to a word.
var<private> tile_heads: array<u32, {{ (vecs + 7) // 8 }}>;
// What the subgroup has before each row, from the last head on; and a bit for each row that no head of the subgroup precedes.
var<private> tile_before: array<Acc, VECS>;
var<private> tile_open: u32;

const MORE_FOLLOWS: u32 = {{ constants.MORE_FOLLOWS }}u;
fn more_follows() -> bool { return (params.flags & MORE_FOLLOWS) != 0u; }
//$ if not counted
// The items of the window.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }
//$ endif
fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }
// Tiles that have items; without any, tile 0 closes what is open.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 {
  return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size + sg_lane) * 4u;
}

//$ if items_are == "raw"
//$ set raw, raw_written = ["items"], []
//$ include "lib/accumulators.wgsl"
fn item(i: u32) -> Acc { return load_acc_items(i); }
fn item4(i: u32) -> Quad { return Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u)); }
//$ elif items_are == "pairs"
fn item(i: u32) -> Acc { return lift(load_items(i)); }
fn item4(i: u32) -> Quad { return Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u)); }
//$ else
fn item(i: u32) -> Acc { return lift(load_items(i)); }
fn item4(i: u32) -> Quad { return lift4(load4_items(i)); }
//$ endif
// Items i to i + 3, with the identity for those past the end.
fn item4_guarded(i: u32) -> Quad {
  let n = item_count();
  if (i + 4u <= n) { return item4(i); }
  var v = quad_of(identity());
  if (i < n) { v.x = item(i); }
  if (i + 1u < n) { v.y = item(i + 1u); }
  if (i + 2u < n) { v.z = item(i + 2u); }
  return v;
}

//$ include "lib/heads_by_" ~ heads ~ ".wgsl"

fn bits_of(a: bool, b: bool, c: bool, d: bool) -> u32 {
  return select(0u, 1u, a) | select(0u, 2u, b) | select(0u, 4u, c) | select(0u, 8u, d);
}
// Values made inclusive within the lane, from the last head on.
fn lane_scan(v: Quad, heads: u32) -> Quad {
  let y = after_head(v.x, v.y, (heads & 2u) != 0u);
  let z = after_head(y, v.z, (heads & 4u) != 0u);
  return Quad(v.x, y, z, after_head(z, v.w, (heads & 8u) != 0u));
}

fn tile_load(tile: u32) {
  if ((tile + 1u) * tile_size() <= item_count()) {
//$ for r in range(vecs)
    tile_values[{{ r }}] = item4(tile_item(tile, {{ r }}u));
//$ endfor
    heads_begin(tile);
//$ for r in range(vecs)
    let heads_{{ r }} = tile_heads_of(tile, {{ r }}u, true);
//$ endfor
//$ for word in range((vecs + 7) // 8)
    tile_heads[{{ word }}] = heads_{{ 8 * word }}
//$ for r in range(8 * word + 1, [8 * word + 8, vecs] | min)
      | (heads_{{ r }} << {{ 4 * (r % 8) }}u)
//$ endfor
    ;
//$ endfor
  } else {
//$ for r in range(vecs)
    tile_values[{{ r }}] = item4_guarded(tile_item(tile, {{ r }}u));
//$ endfor
    heads_begin(tile);
//$ for word in range((vecs + 7) // 8)
    tile_heads[{{ word }}] = 0u;
//$ endfor
//$ for r in range(vecs)
    tile_heads[{{ r // 8 }}] |= tile_heads_of(tile, {{ r }}u, false) << {{ 4 * (r % 8) }}u;
//$ endfor
  }
//$ for r in range(vecs)
  tile_values[{{ r }}] = lane_scan(tile_values[{{ r }}], row_heads_{{ r }}());
//$ endfor
}
//$ for r in range(vecs)
fn row_heads_{{ r }}() -> u32 { return {{ "(tile_heads[%d] >> %du) & 15u" % (r // 8, 4 * (r % 8)) if r % 8 else "tile_heads[%d] & 15u" % (r // 8) }}; }
//$ endfor

// The heads of the subgroup in the tile.
fn tile_count_heads() -> u32 {
  var here = countOneBits(tile_heads[0]);
//$ for word in range(1, (vecs + 7) // 8)
  here += countOneBits(tile_heads[{{ word }}]);
//$ endfor
  return sg_add(here);
}
//$ if op.commutative
// The chain of the subgroup, and of the subgroups before it. The value comes before the scan of the rows, because other
// workgroups may be polling for it: lanes combine what lies behind the last head in any order.
fn tile_sum() -> WorkgroupScan_chain {
  var v = identity();
//$ for r in range(vecs)
  v = tile_sum_row(v, tile_values[{{ r }}].w, sg_heads(row_heads_{{ r }}() != 0u).last);
//$ endfor
  return wg_scan_chain(chain_of(tile_count_heads(), sg_reduce(v)));
}
fn tile_sum_row(v: Acc, w: Acc, last: u32) -> Acc {
  return select(combine(v, w), select(identity(), w, sg_lane + 1u >= last), last != 0u);
}
fn tile_finish() { tile_scan(); }
//$ else
// The chain of the subgroup, and of the subgroups before it. The order of the items matters, so the rows are scanned first.
fn tile_sum() -> WorkgroupScan_chain { return wg_scan_chain(chain_of(tile_count_heads(), tile_scan())); }
fn tile_finish() {}
//$ endif

// Fills tile_before and tile_open. Returns the value that is open at the end of the subgroup.
fn tile_scan() -> Acc {
  var carry = identity();
  var closed = false;
  tile_open = 0u;
//$ for r in range(vecs)
  {
    let heads = sg_heads(row_heads_{{ r }}() != 0u);
    let row = sg_segmented_scan(tile_values[{{ r }}].w, heads);
    tile_before[{{ r }}] = after_head(carry, row.exclusive, heads.before != 0u);
    tile_open |= select({{ 2 ** r }}u, 0u, closed || heads.before != 0u);
    carry = after_head(carry, sg_last(row.inclusive), heads.last != 0u);
    closed = closed || heads.last != 0u;
  }
//$ endfor
  return carry;
}

// The chain of a tile, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Chain {
  var total = chain_identity();
  heads_begin(tile);
  for (var r = 0u; r < VECS; r++) {
    let heads_here = heads_of(tile, r);
    let v = lane_scan(item4_guarded(tile_item(tile, r)), heads_here);
    let heads = sg_heads(heads_here != 0u);
    let row = sg_segmented_scan(v.w, heads);
    total = chain_combine(total, chain_of(sg_add(countOneBits(heads_here)), sg_last(row.inclusive)));
  }
  return wg_scan_chain(total).total;
}
// What comes before this lane in row r, from the last head on, given what comes before the subgroup.
fn tile_carry(r: u32, before: Chain) -> Acc {
  return after_head(chain_value(before), tile_before[r], (tile_open & (1u << r)) == 0u);
}
