// Numbers of float64 as two words, the low one first.
fn f64_of(x: vec2<u32>) -> f64 { return bitcast<f64>((u64(x.y) << 32u) | u64(x.x)); }
fn words_of_f64(x: f64) -> vec2<u32> {
  let bits = bitcast<u64>(x);
  return vec2<u32>(u32(bits & 0xfffffffflu), u32(bits >> 32u));
}
