// Writes the number of each item's run: output[places[i]] = marks in items 0 to i, less 1. Every item is written; there is one mark,
// so Acc and Counts are u32.
fn announce_total(total: Acc) {}
fn stage_first(tile: u32, count: WorkgroupScan) {}

fn emit_tile(tile: u32, before: Acc, count: WorkgroupScan) {
  var rank = count.before;  // marks of the tile before this row
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
