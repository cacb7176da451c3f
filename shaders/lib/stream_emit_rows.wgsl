// Emission of a stream from registers: a lane writes its items, those of a row lie close together.
fn announce_total(total: Acc) {}
fn stage_first(tile: u32, count: WorkgroupScan) {}

fn emit_tile(tile: u32, before: Acc, count: WorkgroupScan) {
  var rank = counts_of(count.before);  // of the first mark of a row
//$ for r in range(vecs)
  emit_row(tile, {{ r }}u, rank, before, counts_of(count.total));
  rank += row_count({{ r }}u);
//$ endfor
}
fn emit_row(tile: u32, r: u32, first_rank: Counts, before: Acc, count: Counts) {
  let first = tile * tile_size();
  let i = tile_item(tile, r);
  let bits = row_bits(r);
  var rank = first_rank + row_rank(r);
//$ for j in range(4)
//$ if splits
  if (i + {{ j }}u < item_count()) {
    let to = place_in_output(rank_of(i + {{ j }}u - first, bits, {{ j }}u, rank, count), first, before, count);
//$ else
  if (has_mark(bits, {{ j }}u)) {
    let to = place_in_output(rank, first, before, count);
//$ endif
//$ for f in moved
    write_{{ f.name }}(to, {{ "item%d(held_%s[r], %du)" % (f.bytes, f.name, j) if f.source == "held" else "i + %du" % j }});
//$ endfor
  }
  rank += bit_of(bits, {{ j }}u);
//$ endfor
}
