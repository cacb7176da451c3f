// The total of a block of tiles, in the order of the items; the same for every invocation.
fn block_total(block: u32) -> Acc {
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
  var total = identity();
  for (var tile = first; tile < end; tile++) { total = combine(total, tile_total(tile)); }
  return total;
}
