// Scan of a tile that lib/tile.wgsl has loaded, in three steps. `tile_sum` returns the total after one barrier; it comes
// first because other workgroups may be polling for the total. `tile_scan` works in registers, without barriers.
// `tile_store` writes. A function of a row r is called with constants.
//$ set quads = quads if quads is defined else 1
//$ set rows = vecs // quads
//$ if source is not defined
//$ include "lib/tail.wgsl"
//$ endif
//$ set A, AQuad, join, e = ("Local", "LocalQuad", "local_combine", "Local()") if local else ("Acc", "Quad", "combine", "identity()")
var<private> tile_before: array<{{ A }}, ROWS>;

// Returns the total of the subgroups before this one in the tile, and the tile's total.
fn tile_sum() -> WorkgroupScan {
//$ if op.commutative
  var v = tile_items[0];
  v = {{ join }}4(v, tile_items[{{ k }}]);  //$ for k in range(1, vecs)
  return wg_scan(sg_reduce(quad_sum(v)));
//$ else
  var sum = {{ e }};
  sum = {{ join }}(sum, sg_reduce(row_sum({{ r }}u)));  //$ for r in range(rows)
  return wg_scan(sum);
//$ endif
}
fn quad_sum(v: {{ AQuad }}) -> {{ A }} { return {{ join }}({{ join }}(v.x, v.y), {{ join }}(v.z, v.w)); }
// What the lane has of row r.
fn row_sum(r: u32) -> {{ A }} {
  var sum = quad_sum(tile_items[r * QUADS]);
  sum = {{ join }}(sum, quad_sum(tile_items[r * QUADS + {{ q }}u]));  //$ for q in range(1, quads)
  return sum;
}

// Makes tile_items inclusive within their row of the lane, and tile_before the prefix of each row. `before` is the prefix of
// this subgroup.
fn tile_scan(before: {{ A }}) {
  var carry = before;
  carry = tile_scan_row({{ r }}u, carry);  //$ for r in range(rows)
}
fn tile_scan_row(r: u32, carry: {{ A }}) -> {{ A }} {
//$ for q in range(quads)
  let v_{{ q }} = tile_items[r * QUADS + {{ q }}u];
  let x_{{ q }} = {{ "v_0.x" if q == 0 else join ~ "(w_%d, v_%d.x)" % (q - 1, q) }};
  let y_{{ q }} = {{ join }}(x_{{ q }}, v_{{ q }}.y);
  let z_{{ q }} = {{ join }}(y_{{ q }}, v_{{ q }}.z);
  let w_{{ q }} = {{ join }}(z_{{ q }}, v_{{ q }}.w);
  tile_items[r * QUADS + {{ q }}u] = {{ AQuad }}(x_{{ q }}, y_{{ q }}, z_{{ q }}, w_{{ q }});
//$ endfor
  let lanes = sg_scan(w_{{ quads - 1 }});
  tile_before[r] = {{ join }}(carry, lanes.exclusive);
  return {{ join }}(carry, sg_last(lanes.inclusive));
}

// Writes the tile, with `before` as the prefix of all items.
fn tile_store(tile: u32, before: Acc) {
  if (tile_is_full(tile)) {
    tile_store_row(tile, {{ r }}u, before, true);  //$ for r in range(rows)
  } else {
    tile_store_row(tile, {{ r }}u, before, false);  //$ for r in range(rows)
  }
}
fn tile_store_row(tile: u32, r: u32, before: Acc, full: bool) {
  let p = combine(before, {{ "global_of(tile_before[r])" if local else "tile_before[r]" }});
//$ for q in range(quads)
//$ set v = "tile_items[r * QUADS + %du]" % q
  let v_{{ q }} = {{ "global4_of(%s)" % v if local else v }};
//$ if exclusive
  let first_{{ q }} = {{ "p" if q == 0 else "combine(p, v_%d.w)" % (q - 1) }};
  let results_{{ q }} = Quad(first_{{ q }}, combine(p, v_{{ q }}.x), combine(p, v_{{ q }}.y), combine(p, v_{{ q }}.z));
//$ else
  let results_{{ q }} = combine4(quad_of(p), v_{{ q }});
//$ endif
//$ endfor
  let i = tile_item(tile, r);
  if (full) {
//$ if quads > 1 and sink.kind != "raw" and sink.bytes < 4 and quads * sink.bytes >= 4
//$ set per_row = 4 // sink.bytes
//$ for k in range(quads // per_row)
    store_row_output(i + {{ 16 // sink.bytes * k }}u, vec4<u32>(
      lower4(results_{{ k * per_row + q }}),  //$ for q in range(per_row)
    ));
//$ endfor
//$ else
    put4(i + {{ 4 * q }}u, results_{{ q }});  //$ for q in range(quads)
//$ endif
  } else {
    put4_guarded(i + {{ 4 * q }}u, results_{{ q }});  //$ for q in range(quads)
  }
}

//$ if source is defined
// Stores those of four results that lie before item n.
fn put4_guarded(i: u32, x: Quad) {
  if (i < {{ used.n }}) { put(i, x.x); }
  if (i + 1u < {{ used.n }}) { put(i + 1u, x.y); }
  if (i + 2u < {{ used.n }}) { put(i + 2u, x.z); }
  if (i + 3u < {{ used.n }}) { put(i + 3u, x.w); }
}
//$ else
fn put4_guarded(i: u32, x: Quad) { store4_guarded(i, result4(x)); }
//$ endif
