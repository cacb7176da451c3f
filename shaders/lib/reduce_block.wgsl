// The total of a block of tiles; the same for every invocation.
//$ set partial = partial if partial is defined else ""
//$ if partial
//$ include "lib/reduce_partial.wgsl"
//$ endif
fn block_total(block: u32) -> Acc {
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
//$ if partial
  // Of a tile's items an invocation first makes one accumulator.
//$ if partial == "moments"
  begin_block();
//$ endif
  var sum = identity();
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    sum = with_tile(sum, tile == first);
  }
  return wg_scan(sg_reduce(sum)).total;
//$ elif op.commutative
  // The order does not matter, so every invocation keeps four separate sums until the end.
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
  var total = identity();
  for (var tile = first; tile < end; tile++) { total = combine(total, tile_total(tile)); }
  return total;
//$ endif
}
