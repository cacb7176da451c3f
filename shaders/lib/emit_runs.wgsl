// Emission of a reduction by key: at a head, the key of the run that begins, and the value of the run that ends before it.
// The last run has no head behind it: `emit_end` closes it.
fn put_value(run: u32, x: Acc) {
  if (run >= params.size) { return; }
//$ if items_are == "raw"
//$ for k in range(acc.words)
  store_output_values({{ acc.words }}u * run + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});
//$ endfor
//$ else
  store_output_values(run, lower(x));
//$ endif
}
fn put_run(run: u32, key: {{ "vec2<u32>" if key.bytes == 8 else "u32" }}, before: Acc) {
  if (run < params.size) { store_output_keys(run, key); }
  if (run > 0u) { put_value(run - 1u, before); }
}
fn emit_row(first_run: u32, heads: u32, p: Acc, v: Quad, k: KeyQuad) {
  var run = first_run;
  if ((heads & 1u) != 0u) {
    put_run(run, k.x, p);
    run++;
  }
  if ((heads & 2u) != 0u) {
    put_run(run, k.y, after_head(p, v.x, (heads & 1u) != 0u));
    run++;
  }
  if ((heads & 4u) != 0u) {
    put_run(run, k.z, after_head(p, v.y, (heads & 3u) != 0u));
    run++;
  }
  if ((heads & 8u) != 0u) { put_run(run, k.w, after_head(p, v.z, (heads & 7u) != 0u)); }
}
// Writes the runs of the tile. `before` is what comes before the subgroup, all earlier tiles included.
fn emit_tile(tile: u32, before: Chain) {
  var run = before.x;
  // Two rows to a word: a row has up to 512 heads.
//$ for r in range(0, vecs, 2)
  {
    let counts = countOneBits(row_heads_{{ r }}()){{ " | (countOneBits(row_heads_%d()) << 16u)" % (r + 1) if r + 1 < vecs }};
    let runs = sg_exclusive_add(counts);
    let totals = sg_add(counts);
    emit_row(run + (runs & 0xffffu), row_heads_{{ r }}(), tile_carry({{ r }}u, before), tile_values[{{ r }}], tile_keys[{{ r }}]);
    run += totals & 0xffffu;
//$ if r + 1 < vecs
    emit_row(run + (runs >> 16u), row_heads_{{ r + 1 }}(), tile_carry({{ r + 1 }}u, before), tile_values[{{ r + 1 }}], tile_keys[{{ r + 1 }}]);
    run += totals >> 16u;
//$ endif
  }
//$ endfor
}
// Writes the number of runs and the value of the last one.
fn emit_end(total: Chain) {
  store_count(0u, total.x);
  if (total.x > 0u) { put_value(total.x - 1u, chain_value(total)); }
}
