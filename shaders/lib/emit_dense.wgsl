// Emission of a segmented scan: a result for each item.
fn put(i: u32, x: Acc) {
//$ if items_are == "raw"
//$ for k in range(acc.words)
  store_output({{ acc.words }}u * i + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});
//$ endfor
//$ else
  store_output(i, lower(x));
//$ endif
}
fn emit_row(tile: u32, r: u32, heads: u32, p: Acc, v: Quad) {
//$ if exclusive
  // A head begins with the identity; the others have what the item before them has.
  let x = select(p, identity(), (heads & 1u) != 0u);
  let y = select(after_head(p, v.x, (heads & 1u) != 0u), identity(), (heads & 2u) != 0u);
  let z = select(after_head(p, v.y, (heads & 3u) != 0u), identity(), (heads & 4u) != 0u);
  let w = select(after_head(p, v.z, (heads & 7u) != 0u), identity(), (heads & 8u) != 0u);
  let results = Quad(x, y, z, w);
//$ else
  let results = Quad(
    after_head(p, v.x, (heads & 1u) != 0u),
    after_head(p, v.y, (heads & 3u) != 0u),
    after_head(p, v.z, (heads & 7u) != 0u),
    after_head(p, v.w, heads != 0u),
  );
//$ endif
  let i = tile_item(tile, r);
  let n = item_count();
  if (i + 4u <= n) {
//$ if items_are != "words"
    put(i, results.x);
    put(i + 1u, results.y);
    put(i + 2u, results.z);
    put(i + 3u, results.w);
//$ else
    store4_output(i, lower4(results));
//$ endif
  } else {
    if (i < n) { put(i, results.x); }
    if (i + 1u < n) { put(i + 1u, results.y); }
    if (i + 2u < n) { put(i + 2u, results.z); }
  }
}
// Writes the results of the tile. `before` is what comes before the subgroup, all earlier tiles included.
fn emit_tile(tile: u32, before: Chain) {
//$ for r in range(vecs)
  emit_row(tile, {{ r }}u, row_heads_{{ r }}(), tile_carry({{ r }}u, before), tile_values[{{ r }}]);
//$ endfor
}
fn emit_end(total: Chain) {}
