// Emission of a stream that selects nothing: each item's number of marks up to itself, less 1, which is the number of its run, goes
// to the place that `places` gives.
fn announce_total(total: Acc) {}
fn stage_first(tile: u32, count: WorkgroupScan) {}

fn emit_tile(tile: u32, before: Acc, count: WorkgroupScan) {
  var rank = count.before;  // of the first mark of a row
//$ for r in range(vecs)
  emit_row(tile, {{ r }}u, before, rank);
  rank += row_count({{ r }}u);
//$ endfor
}
fn emit_row(tile: u32, r: u32, before: Acc, first_rank: Counts) {
  let n = item_count();
  let i = tile_item(tile, r);
  let bits = row_bits(r);
  var rank = first_rank + row_rank(r);
//$ for j in range(4)
  if (i + {{ j }}u < n) { store_output(load_places(i + {{ j }}u), before + rank + bit_of(bits, {{ j }}u) - 1u); }
  rank += bit_of(bits, {{ j }}u);
//$ endfor
}
