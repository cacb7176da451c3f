// From items to accumulators of one word, and back, where both are of one datatype.
//$ if acc.key
// Ordered keys: their unsigned order equals the order of the floats, −0 below +0. A NaN gets the key that wins.
fn lift(word: u32) -> Acc {
  let key = word ^ select(0x80000000u, 0xffffffffu, (word >> 31u) == 1u);
  return select(key, {{ "0u" if acc.key == "min" else "0xffffffffu" }}, (word & 0x7fffffffu) > 0x7f800000u);
}
fn lower(x: Acc) -> u32 {
  let word = x ^ select(0xffffffffu, 0x80000000u, (x >> 31u) == 1u);
  return select(word, 0x7fc00000u, x == {{ "0u" if acc.key == "min" else "0xffffffffu" }});
}
fn lift4(words: vec4<u32>) -> vec4<Acc> {
  return vec4<Acc>(lift(words.x), lift(words.y), lift(words.z), lift(words.w));
}
fn lower4(x: vec4<Acc>) -> vec4<u32> { return vec4<u32>(lower(x.x), lower(x.y), lower(x.z), lower(x.w)); }
//$ else
fn lift(word: u32) -> Acc { return bitcast<Acc>(word); }
fn lift4(words: vec4<u32>) -> vec4<Acc> { return bitcast<vec4<Acc>>(words); }
//$ if fixed_order
fn lower(x: Acc) -> u32 { return settled(x); }
fn lower4(x: vec4<Acc>) -> vec4<u32> { return vec4<u32>(settled(x.x), settled(x.y), settled(x.z), settled(x.w)); }
//$ else
fn lower(x: Acc) -> u32 { return bitcast<u32>(x); }
fn lower4(x: vec4<Acc>) -> vec4<u32> { return bitcast<vec4<u32>>(x); }
//$ endif
//$ endif
