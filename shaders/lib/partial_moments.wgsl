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
//$ for x in components("tile_items", vecs)
  count += {{ x }}[0];
  total += select(0f, rounded(f32({{ x }}[0]) * (bitcast<f32>({{ x }}[1]) - pivot)), {{ x }}[0] != 0u);
//$ endfor
  let mean = total / f32(max(count, 1u));
  var squares = 0f;
  var distance = 0f;
//$ for x in components("tile_items", vecs)
  // Of no item at all the mean is any number: it must not reach the sum.
  distance = select(0f, (bitcast<f32>({{ x }}[1]) - pivot) - mean, {{ x }}[0] != 0u);
  squares += bitcast<f32>({{ x }}[2]) + rounded(f32({{ x }}[0]) * rounded(distance * distance));
//$ endfor
  return combine(sum, Acc(count, bitcast<u32>(mean), bitcast<u32>(squares)));
}
