// Emission of a segmented scan: a result for each item.
fn put(i: u32, x: Acc) {
//$ if items_are == "raw"
  store_output({{ acc.words }}u * i + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});  //$ for k in range(acc.words)
//$ else
  store_output(i, lower(x));
//$ endif
}
//$ for r in range(rows)
// Results of row {{ r }}; p comes before the lane.
fn emit_row_{{ r }}(tile: u32, p: Acc) {
  let heads = tile_heads[{{ r }}];
  let v_{{ q }} = tile_values[{{ r * quads + q }}];  //$ for q in range(quads)
//$ for q in range(quads)
//$ set first = 4 * q
  let results_{{ q }} = Quad(
//$ for k in range(first, first + 4)
//$ if exclusive
//$ set value = "p" if k == 0 else "after_head(p, v_%d.%s, (heads & %du) != 0u)" % ((k - 1) // 4, "xyzw"[(k - 1) % 4], 2 ** k - 1)
    // A head begins with the identity; the others have what the item before them has.
    select({{ value }}, identity(), (heads & {{ 2 ** k }}u) != 0u),
//$ else
    after_head(p, v_{{ q }}.{{ "xyzw"[k % 4] }}, (heads & {{ 2 ** (k + 1) - 1 }}u) != 0u),
//$ endif
//$ endfor
  );
//$ endfor
  let i = tile_item(tile, {{ r }}u);
  if ((tile + 1u) * tile_size() <= item_count()) {
//$ if items_are == "words" and subgroups == "native" and quads > 1
    // Pairs of lanes swap quads, so that a store of a pair fills sectors of 32 bytes.
    let is_odd = (sg_lane & 1u) != 0u;
    let low = i + select(0u, 4u, is_odd) - select(0u, WIDTH, is_odd);
//$ for q in range(0, quads, 2)
    let words_{{ q }} = lower4(results_{{ q }});
    let words_{{ q + 1 }} = lower4(results_{{ q + 1 }});
    let swapped_{{ q }} = subgroupShuffleXor(select(words_{{ q + 1 }}, words_{{ q }}, is_odd), 1u);
    store4_output(low{{ " + %du" % (4 * q) if q }}, select(words_{{ q }}, swapped_{{ q }}, is_odd));
    store4_output(low + WIDTH{{ " + %du" % (4 * q) if q }}, select(swapped_{{ q }}, words_{{ q + 1 }}, is_odd));
//$ endfor
//$ else
//$ for q in range(quads)
//$ if items_are != "words"
    put(i + {{ 4 * q + k }}u, results_{{ q }}.{{ "xyzw"[k] }});  //$ for k in range(4)
//$ else
    store4_output(i{{ " + %du" % (4 * q) if q }}, lower4(results_{{ q }}));
//$ endif
//$ endfor
//$ endif
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
