// Count, mean and squared distances of a tile's items in two passes over the registers; then one step of the operator.
// All means are relative to an item: far from 0 their rounding would else be larger than the distances between them. Of
// floats it is the first item, until a result is written; an item cannot be further from the mean than sqrt(n) standard
// deviations. Of integers an accumulator names its own, and the distance is exact before it is a float.
//$ if origin
var<private> pivot: u32;

fn begin_block() {}
fn finished(sum: Acc) -> Acc { return sum; }

fn value(x: Acc) -> f32 {
  let is_above = bitcast<{{ origin[0] }}>(x[1]) >= bitcast<{{ origin[0] }}>(pivot);
  return bitcast<f32>(x[2]) + select(-f32(pivot - x[1]), f32(x[1] - pivot), is_above);
}
//$ else
var<private> pivot: f32;

fn begin_block() {
  let first = item(0u);
  pivot = select(0f, bitcast<f32>(first[1]), first[0] != 0u && (first[1] & 0x7f800000u) != 0x7f800000u);
}

fn finished(sum: Acc) -> Acc {
  if (sum[0] == 0u) { return sum; }
  return Acc(sum[0], bitcast<u32>(bitcast<f32>(sum[1]) + pivot), sum[2]);
}

fn value(x: Acc) -> f32 { return bitcast<f32>(x[1]) - pivot; }
//$ endif

fn with_tile(sum: Acc, tile: u32, is_first: bool) -> Acc {
  var count = 0u;
  var total = 0f;
//$ if origin
  pivot = sum[1];
  pivot = select(pivot, {{ x }}[1], sum[0] == 0u && {{ x }}[0] != 0u);  //$ for x in components("tile_items", vecs)
//$ endif
//$ for x in components("tile_items", vecs)
  count += {{ x }}[0];
  total += select(0f, rounded(f32({{ x }}[0]) * value({{ x }})), {{ x }}[0] != 0u);
//$ endfor
  let mean = total / f32(max(count, 1u));
  var squares = 0f;
  var distance = 0f;
//$ for x in components("tile_items", vecs)
  // Of no item at all the mean is any number: it must not reach the sum.
  distance = select(0f, value({{ x }}) - mean, {{ x }}[0] != 0u);
  squares += bitcast<f32>({{ x }}[{{ 3 if origin else 2 }}]) + rounded(f32({{ x }}[0]) * rounded(distance * distance));
//$ endfor
  return combine(sum, Acc(count, {{ "pivot, " if origin }}bitcast<u32>(mean), bitcast<u32>(squares)));
}
