// The total of a block of tiles; the same for every invocation. Of a tile's items an invocation first makes one accumulator,
// where that takes fewer operations than to combine them one by one.
//$ include "lib/partial_" ~ partial ~ ".wgsl"
fn block_total(block: u32) -> Acc {
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
  begin_block();
  var sum = identity();
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    sum = with_tile(sum, tile == first);
  }
  return wg_scan(sg_reduce(sum)).total;
}
