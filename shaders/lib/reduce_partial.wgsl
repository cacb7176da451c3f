// What an invocation makes of its items of a tile, where that takes fewer operations than to combine them one by one.
//$ if partial == "arg"
// The item with the greatest rank, of several the first. Indices ascend in the order in which an invocation reads items, so
// a later item wins only if its rank is greater. The index is needed only where the best item changes: each item costs
// its rank and a maximum.
fn rank_of(word: u32) -> u32 { {{ rank }} }
var<private> best_rank: u32;

fn with_tile(best: Acc, is_first: bool) -> Acc {
  var highest = 0u;
//$ for r in range(vecs)
//$ for lane in "xyzw"
  highest = max(highest, rank_of(tile_items[{{ r }}].{{ lane }}[0]));
//$ endfor
//$ endfor
  // Behind the last item there are identities: with the rank of the least item, but no smaller index.
  if (!is_first && highest <= best_rank) { return best; }
  best_rank = highest;
  var found = best;
//$ for r in range(vecs)|reverse
//$ for lane in "wzyx"
  if (rank_of(tile_items[{{ r }}].{{ lane }}[0]) == highest) { found = tile_items[{{ r }}].{{ lane }}; }
//$ endfor
//$ endfor
  return found;
}
//$ elif partial == "moments"
// Count, mean and squared distances of a tile's items in two passes over the registers; then one step of the operator.
// All means are relative to the first item, until a result is written: far from 0 their rounding would else be larger than
// the distances between them. An item cannot be further from the mean than sqrt(n) standard deviations.
var<private> pivot: f32;

fn begin_block() {
  let first = item(0u);
  pivot = select(0f, bitcast<f32>(first[1]), first[0] != 0u && (first[1] & 0x7f800000u) != 0x7f800000u);
}

fn finished(sum: Acc) -> Acc {
  if (sum[0] == 0u) { return sum; }
  return Acc(sum[0], bitcast<u32>(bitcast<f32>(sum[1]) + pivot), sum[2]);
}

fn with_tile(sum: Acc, is_first: bool) -> Acc {
  var count = 0u;
  var total = 0f;
//$ for r in range(vecs)
//$ for lane in "xyzw"
//$ set x = "tile_items[%d].%s" % (r, lane)
  count += {{ x }}[0];
  total += select(0f, rounded(f32({{ x }}[0]) * (bitcast<f32>({{ x }}[1]) - pivot)), {{ x }}[0] != 0u);
//$ endfor
//$ endfor
  let mean = total / f32(max(count, 1u));
  var squares = 0f;
  var distance = 0f;
//$ for r in range(vecs)
//$ for lane in "xyzw"
//$ set x = "tile_items[%d].%s" % (r, lane)
  // Of no item at all the mean is any number: it must not reach the sum.
  distance = select(0f, (bitcast<f32>({{ x }}[1]) - pivot) - mean, {{ x }}[0] != 0u);
  squares += bitcast<f32>({{ x }}[2]) + rounded(f32({{ x }}[0]) * rounded(distance * distance));
//$ endfor
//$ endfor
  return combine(sum, Acc(count, bitcast<u32>(mean), bitcast<u32>(squares)));
}
//$ endif
