// What an invocation makes of its items of a tile, where that takes fewer operations than to combine them one by one.
//$ if partial == "arg"
// The item with the greatest rank, of several the first. Indices ascend in the order in which an invocation reads items, so
// a later item wins only if its rank is greater. The index is needed only where the best item changes: each item costs
// its rank and a maximum.
//$ if ranks | length > 1
// So for the smallest, which are the first two words, and for the largest, the others.
//$ endif
//$ set sides = [""] if ranks | length == 1 else ["_of_least", "_of_most"]
//$ for side in sides
fn rank{{ side }}_of(word: u32) -> u32 { {{ ranks[loop.index0] }} }
var<private> best_rank{{ side }}: u32;
//$ endfor

fn with_tile(best: Acc, is_first: bool) -> Acc {
  var highest{{ side }} = 0u;  //$ for side in sides
//$ for r in range(vecs)
//$ for lane in "xyzw"
//$ for side in sides
  highest{{ side }} = max(highest{{ side }}, rank{{ side }}_of(tile_items[{{ r }}].{{ lane }}[{{ 2 * loop.index0 }}]));
//$ endfor
//$ endfor
//$ endfor
  // Behind the last item there are identities: with the rank of the least item, but no smaller index.
//$ if sides | length == 1
  if (!is_first && highest <= best_rank) { return best; }
  best_rank = highest;
  var found = best;
//$ for r in range(vecs)|reverse
  if (rank_of(tile_items[{{ r }}].{{ lane }}[0]) == highest) { found = tile_items[{{ r }}].{{ lane }}; }  //$ for lane in "wzyx"
//$ endfor
  return found;
//$ else
  var found = best;
//$ for side in sides
//$ set word = 2 * loop.index0
  if (is_first || highest{{ side }} > best_rank{{ side }}) {
    best_rank{{ side }} = highest{{ side }};
//$ for r in range(vecs)|reverse
//$ for lane in "wzyx"
//$ set item = "tile_items[%d].%s" % (r, lane)
    if (rank{{ side }}_of({{ item }}[{{ word }}]) == highest{{ side }}) {
      found[{{ word }}] = {{ item }}[{{ word }}];
      found[{{ word + 1 }}] = {{ item }}[{{ word + 1 }}];
    }
//$ endfor
//$ endfor
  }
//$ endfor
  return found;
//$ endif
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
