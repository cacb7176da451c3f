// The total of a block of tiles; the same for every invocation.
//$ if partial is defined
// Of a tile's items an invocation first makes one accumulator, where that takes fewer operations than to combine them.
//$ include "lib/partial_" ~ partial ~ ".wgsl"
//$ endif
fn block_total(block: u32) -> Acc {
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
//$ if partial is defined
  begin_block();
  var sum = identity();
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    sum = with_tile(sum, tile, tile == first);
  }
  return {{ "end_block(sum, first, end)" if partial == "arg" else "wg_scan(sg_reduce(sum)).total" }};
//$ elif op.commutative
  // The order of the items does not matter, so every invocation keeps four separate sums until the end.
  var sums = quad_of(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
//$ if local
    var here = tile_items[0];
    here = local_combine4(here, tile_items[{{ r }}]);  //$ for r in range(1, vecs)
    sums = combine4(sums, global4_of(here));
//$ else
    sums = combine4(sums, tile_items[{{ r }}]);  //$ for r in range(vecs)
//$ endif
  }
//$ set of = kinds[-1].suffix
  return wg_scan{{ of }}(sg_reduce{{ of }}(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
//$ else
  var sum = identity();
  for (var tile = first; tile < end; tile++) { sum = combine(sum, tile_total(tile)); }
  return sum;
//$ endif
}
