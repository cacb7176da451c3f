// Emission of a reduction by key: at a head, the key of the run that begins, and the value of the run that ends before it.
// The last run has no head behind it: `emit_end` closes it.
fn put_value(run: u32, x: Acc) {
  if (run >= params.size) { return; }
//$ if stores is defined and stores.results
//$ for name in stores.results
  store_acc_{{ name }}(run, x);
//$ endfor
//$ elif items_are == "raw"
//$ for k in range(acc.words)
  store_output_values({{ acc.words }}u * run + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});
//$ endfor
//$ else
  store_output_values(run, lower(x));
//$ endif
}
fn put_run(run: u32, key: {{ "vec2<u32>" if key.bytes == 8 else "u32" }}, before: Acc) {
//$ if stores is not defined
  if (run < params.size) { store_output_keys(run, key); }
//$ elif stores.of_keys
  if (run < params.size) {
//$ for store in stores.of_keys
    {{ store }}(run, key);
//$ endfor
  }
//$ endif
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
  // Two rows to a word: a row has up to 512 heads. All rows are ranked before the branches.
//$ for r in range(0, vecs, 2)
  let counts_{{ r }} = countOneBits(row_heads_{{ r }}()){{ " | (countOneBits(row_heads_%d()) << 16u)" % (r + 1) if r + 1 < vecs }};
  let runs_{{ r }} = sg_exclusive_add(counts_{{ r }});
  let totals_{{ r }} = sg_add(counts_{{ r }});
//$ endfor
  var run = before.x;
//$ for r in range(vecs)
//$ set pair, part = r // 2 * 2, " >> 16u" if r % 2 else " & 0xffffu"
  emit_row(run + (runs_{{ pair }}{{ part }}), row_heads_{{ r }}(), tile_carry({{ r }}u, before), tile_values[{{ r }}], tile_keys[{{ r }}]);
  run += totals_{{ pair }}{{ part }};
//$ endfor
}
// Writes the number of runs and the value of the last one.
fn emit_end(total: Chain) {
//$ if stores is not defined or stores.of_keys
  store_count(0u, total.x);
//$ endif
  if (total.x > 0u) { put_value(total.x - 1u, chain_value(total)); }
}
