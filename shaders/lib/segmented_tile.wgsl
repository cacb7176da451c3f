// A tile of items in segments. A row has QUADS × 4 consecutive items for each lane, so a tile needs few scans over lanes; the loads
// of a lane share their cache lines. What begins a segment, a head, is a bit; the values stay in registers from the load to
// the store. The template writes out every row.
//$ include "lib/window_tiles.wgsl"
// Consecutive items of a lane in a row, and their bits.
const WIDTH: u32 = 4u * QUADS;
const WIDTH_BITS: u32 = {{ 2 ** width - 1 }}u;
var<private> tile_values: array<Quad, VECS>;
var<private> tile_heads: array<u32, ROWS>;
// What the subgroup has before each row of the lane, from the last head on; and a bit for each row that no head of the
// subgroup precedes.
var<private> tile_before: array<Acc, ROWS>;
var<private> tile_open: u32;
//$ if emission == "runs"
// Heads of the subgroup before each row of the lane.
var<private> tile_ranks: array<u32, ROWS>;
//$ endif

const MORE_FOLLOWS: u32 = {{ constants.MORE_FOLLOWS }}u;
fn more_follows() -> bool { return (params.flags & MORE_FOLLOWS) != 0u; }

//$ include "lib/segmented_items.wgsl"
// Items i to i + 3, with the identity for those past the end.
fn item4_guarded(i: u32) -> Quad {
  let n = item_count();
  let last = max(n, 1u) - 1u;
  return Quad(
    select(identity(), item(min(i, last)), i < n),
    select(identity(), item(min(i + 1u, last)), i + 1u < n),
    select(identity(), item(min(i + 2u, last)), i + 2u < n),
    select(identity(), item(min(i + 3u, last)), i + 3u < n),
  );
}

//$ include "lib/heads_by_" ~ heads ~ ".wgsl"

fn bits_of(a: bool, b: bool, c: bool, d: bool) -> u32 {
  return select(0u, 1u, a) | select(0u, 2u, b) | select(0u, 4u, c) | select(0u, 8u, d);
}

fn tile_load(tile: u32) {
  if (tile_is_full(tile)) {
//$ for k in range(vecs)
    tile_values[{{ k }}] = item4(tile_item(tile, {{ k // quads }}u){{ " + %du" % (4 * (k % quads)) if k % quads }});
//$ endfor
//$ if emission != "ends"
    heads_begin(tile);
    tile_heads[{{ r }}] = tile_heads_of(tile, {{ r }}u, true);  //$ for r in range(rows)
//$ endif
  } else {
//$ for k in range(vecs)
    tile_values[{{ k }}] = item4_guarded(tile_item(tile, {{ k // quads }}u){{ " + %du" % (4 * (k % quads)) if k % quads }});
//$ endfor
//$ if emission != "ends"
    heads_begin(tile);
    tile_heads[{{ r }}] = tile_heads_of(tile, {{ r }}u, false);  //$ for r in range(rows)
//$ endif
  }
}
// Makes values inclusive within the row of the lane, from the last head on.
fn tile_lane_scan() {
//$ for r in range(rows)
  {
    let heads = tile_heads[{{ r }}];
//$ for q in range(quads)
//$ set k = r * quads + q
    let v_{{ q }} = tile_values[{{ k }}];
    let x_{{ q }} = {{ "v_0.x" if q == 0 else "after_head(w_%d, v_%d.x, (heads & %du) != 0u)" % (q - 1, q, 2 ** (4 * q)) }};
    let y_{{ q }} = after_head(x_{{ q }}, v_{{ q }}.y, (heads & {{ 2 ** (4 * q + 1) }}u) != 0u);
    let z_{{ q }} = after_head(y_{{ q }}, v_{{ q }}.z, (heads & {{ 2 ** (4 * q + 2) }}u) != 0u);
    let w_{{ q }} = after_head(z_{{ q }}, v_{{ q }}.w, (heads & {{ 2 ** (4 * q + 3) }}u) != 0u);
    tile_values[{{ k }}] = Quad(x_{{ q }}, y_{{ q }}, z_{{ q }}, w_{{ q }});
//$ endfor
  }
//$ endfor
}

// Scans the rows, in registers. Returns the chain of the subgroup, and of the subgroups before it.
fn tile_scan() -> WorkgroupScan_chain {
  tile_lane_scan();
  var carry = identity();
  var closed = false;
  tile_open = 0u;
//$ for r in range(rows)
  {
    let heads = sg_heads(tile_heads[{{ r }}] != 0u);
    let row = sg_segmented_scan(tile_values[{{ (r + 1) * quads - 1 }}].w, heads);
    tile_before[{{ r }}] = after_head(carry, row.exclusive, heads.before != 0u);
    tile_open |= select({{ 2 ** r }}u, 0u, closed || heads.before != 0u);
    carry = after_head(carry, sg_last(row.inclusive), heads.last != 0u);
    closed = closed || heads.last != 0u;
  }
//$ endfor
//$ if emission == "runs"
  // Two rows to a word: a row has up to 2,048 heads.
  var count = 0u;
//$ for r in range(0, rows, 2)
  {
    let ranks = sg_ranks(countOneBits(tile_heads[{{ r }}]){{ " | (countOneBits(tile_heads[%d]) << 16u)" % (r + 1) if r + 1 < rows }});
    tile_ranks[{{ r }}] = count + (ranks.before & 0xffffu);
    count += ranks.all & 0xffffu;
//$ if r + 1 < rows
    tile_ranks[{{ r + 1 }}] = count + (ranks.before >> 16u);
    count += ranks.all >> 16u;
//$ endif
  }
//$ endfor
//$ else
  // Of heads, only whether there are any matters.
  let count = select(0u, 1u, closed);
//$ endif
  return wg_scan_chain(chain_of(count, carry));
}

//$ if emission != "ends"
// The chain of a tile, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Chain {
  var total = chain_identity();
  heads_begin(tile);
  for (var r = 0u; r < ROWS; r++) {
    let heads_here = heads_of(tile, r);
    var w = identity();
    for (var q = 0u; q < WIDTH / 4u; q++) {
      let v = item4_guarded(tile_item(tile, r) + 4u * q);
      let h = heads_here >> (4u * q);
      w = after_head(w, v.x, (h & 1u) != 0u);
      w = after_head(w, v.y, (h & 2u) != 0u);
      w = after_head(w, v.z, (h & 4u) != 0u);
      w = after_head(w, v.w, (h & 8u) != 0u);
    }
    let heads = sg_heads(heads_here != 0u);
    let row = sg_segmented_scan(w, heads);
//$ if emission == "runs"
    let count = sg_ranks(countOneBits(heads_here)).all;
//$ else
    let count = select(0u, 1u, heads.last != 0u);
//$ endif
    total = chain_combine(total, chain_of(count, sg_last(row.inclusive)));
  }
  return wg_scan_chain(total).total;
}
//$ endif
// What comes before this lane in row r, from the last head on, given what comes before the subgroup.
fn tile_carry(r: u32, before: Chain) -> Acc {
  return after_head(chain_value(before), tile_before[r], (tile_open & (1u << r)) == 0u);
}
