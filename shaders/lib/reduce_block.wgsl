// The total of a block of tiles; the same for every invocation.
fn block_total(block: u32) -> Acc {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
//$ if op.commutative
  // The order does not matter, so every invocation keeps four separate sums until the end.
  var sums = quad_of(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
//$ for r in range(vecs)
    sums = combine4(sums, tile_items[{{ r }}]);
//$ endfor
  }
  return wg_scan(sg_reduce(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
//$ else
  var total = identity();
  for (var tile = first; tile < end; tile++) { total = combine(total, tile_total(tile)); }
  return total;
//$ endif
}
