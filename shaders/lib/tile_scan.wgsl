// Scan of a tile that lib/tile.wgsl has loaded, in three steps. `tile_sum` returns the total after one barrier; it comes
// first because other workgroups may be polling for the total. `tile_scan` works in registers, without barriers.
// `tile_store` writes.
//$ include "lib/tail.wgsl"
var<private> tile_before: array<Acc, VECS>;

// Returns the total of the subgroups before this one in the tile, and the tile's total.
fn tile_sum() -> WorkgroupScan {
//$ if op.commutative
  var v = tile_items[0];
//$ for r in range(1, vecs)
  v = combine4(v, tile_items[{{ r }}]);
//$ endfor
  return wg_scan(tile_row_sum(v));
//$ else
  var sum = identity();
//$ for r in range(vecs)
  sum = combine(sum, tile_row_sum(tile_items[{{ r }}]));
//$ endfor
  return wg_scan(sum);
//$ endif
}

fn tile_row_sum(v: vec4<Acc>) -> Acc { return sg_reduce(combine(combine(v.x, v.y), combine(v.z, v.w))); }

// Makes tile_items inclusive within their vec4, and tile_before the prefix of each row. `before` is the prefix of this
// subgroup.
fn tile_scan(before: Acc) {
  var carry = before;
//$ for r in range(vecs)
  carry = tile_scan_row({{ r }}u, carry);
//$ endfor
}

fn tile_scan_row(r: u32, carry: Acc) -> Acc {
  let v = tile_items[r];
  let y = combine(v.x, v.y);
  let z = combine(y, v.z);
  let w = combine(z, v.w);
  tile_items[r] = vec4<Acc>(v.x, y, z, w);
  let lanes = sg_scan(w);
  tile_before[r] = combine(carry, lanes.exclusive);
  return combine(carry, sg_last(lanes.inclusive));
}

// Writes the tile, with `before` as the prefix of all items.
fn tile_store(tile: u32, before: Acc) {
  if (tile_is_full(tile)) {
//$ for r in range(vecs)
    tile_store_row(tile, {{ r }}u, before, true);
//$ endfor
  } else {
//$ for r in range(vecs)
    tile_store_row(tile, {{ r }}u, before, false);
//$ endfor
  }
}

fn tile_store_row(tile: u32, r: u32, before: Acc, full: bool) {
  let p = combine(before, tile_before[r]);
  let v = tile_items[r];
//$ if exclusive
  let words = result4(vec4<Acc>(p, combine(p, v.x), combine(p, v.y), combine(p, v.z)));
//$ else
  let words = result4(combine4(vec4<Acc>(p), v));
//$ endif
  let i = tile_item(tile, r);
  if (full) {
    store4_output(i, words);
  } else {
    store4_guarded(i, words);
  }
}
