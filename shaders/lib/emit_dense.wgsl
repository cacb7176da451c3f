// Emission of a segmented scan: a result for each item.
fn put(i: u32, x: Acc) {
//$ set words = ["lower(x)"] if items_are != "raw" else ["x"] if acc.words == 1 else ["x[0]", "x[1]", "x[2]", "x[3]"][:acc.words]
//$ set at = "%du * i + %du" if items_are == "raw" else "i"
  store_output({{ at % (acc.words, loop.index0) if items_are == "raw" else at }}, {{ word }});  //$ for word in words
}
//$ for r in range(rows)
// Results of row {{ r }}; p comes before the lane.
fn emit_row_{{ r }}(tile: u32, p: Acc) {
  let heads = tile_heads[{{ r }}];
  let v_{{ q }} = tile_values[{{ r * quads + q }}];  //$ for q in range(quads)
//$ for q in range(quads)
  // Exclusive: a head begins with the identity; the others have what the item before them has, the `last` one.
  let results_{{ q }} = Quad(
//$ for k in range(4 * q, 4 * q + 4)
//$ set last = k - 1 if exclusive else k
//$ set value = "p" if last < 0 else "after_head(p, v_%d.%s, (heads & %du) != 0u)" % (last // 4, "xyzw"[last % 4], 2 ** (last + 1) - 1)
    {{ "select(%s, identity(), (heads & %du) != 0u)" % (value, 2 ** k) if exclusive else value }},
//$ endfor
  );
//$ endfor
  let i = tile_item(tile, {{ r }}u);
  if ((tile + 1u) * tile_size() <= item_count()) {
//$ set how = "items" if items_are != "words" else "swapped" if subgroups == "native" and quads > 1 else "quads"
//$ include "lib/emit_dense_" ~ how ~ ".wgsl"
  } else {
    let n = item_count();
//$ for k in range(width)
    if (i + {{ k }}u < n) { put(i + {{ k }}u, results_{{ k // 4 }}.{{ "xyzw"[k % 4] }}); }
//$ endfor
  }
}
//$ endfor
fn emit_closed(tile: u32, sum: WorkgroupScan_chain) {}
// Writes the results of the tile; `before` is what comes before it.
fn emit_open(tile: u32, before: Chain, sum: WorkgroupScan_chain) {
  let before_here = chain_combine(before, sum.before);
  emit_row_{{ r }}(tile, tile_carry({{ r }}u, before_here));  //$ for r in range(rows)
}
fn emit_end(total: Chain) {}
