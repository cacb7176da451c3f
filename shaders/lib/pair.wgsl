// Sums of floats as pairs: the sum, and the sum of the rounding errors of all its additions. The value of a pair is the total
// of both. Sources: TwoSum is from Knuth, "The art of computer programming", volume 2, 4.2.2; the sum is Sum2
// of Ogita, Rump and Oishi, "Accurate sum and dot product" (2005), here along a tree.
//$ include "lib/seal.wgsl"
struct Acc { sum: f32, error: f32 }
struct Acc4 { sum: vec4<f32>, error: vec4<f32> }

//$ for suffix, kind in [("", "f32"), ("4", "vec4<f32>")]
// The exact rounding error of a + b, where s is the rounded sum.
fn rounding{{ suffix }}(a: {{ kind }}, b: {{ kind }}, s: {{ kind }}) -> {{ kind }} {
  let c = seal{{ suffix }}(s - a);
  return seal{{ suffix }}(seal{{ suffix }}(a - seal{{ suffix }}(s - c)) + seal{{ suffix }}(b - c));
}
//$ endfor

fn identity() -> Acc { return Acc(0.0, 0.0); }
fn combine(a: Acc, b: Acc) -> Acc {
  let sum = seal(a.sum + b.sum);
  return Acc(sum, seal(seal(a.error + b.error) + rounding(a.sum, b.sum, sum)));
}
fn add(a: Acc, x: f32) -> Acc { return combine(a, Acc(x, 0.0)); }
fn add4(a: Acc4, x: vec4<f32>) -> Acc4 {
  let sum = seal4(a.sum + x);
  return Acc4(sum, seal4(a.error + rounding4(a.sum, x, sum)));
}

// The bits of a pair's value. If the sum is infinite or NaN, the error is NaN, and the sum alone is the result.
fn result(x: Acc) -> u32 {
  let exact = is_finite(x.sum) && is_finite(x.error);
  return settled(select(x.sum, seal(x.sum + x.error), exact));
}

const VECS: u32 = {{ vecs }}u;

fn items4(i: u32) -> vec4<f32> {
  if (i + 4u <= {{ used.n }}) { return bitcast<vec4<f32>>(load4_input(i)); }
  var words = vec4<u32>(0u);
  if (i < {{ used.n }}) { words.x = load_input(i); }
  if (i + 1u < {{ used.n }}) { words.y = load_input(i + 1u); }
  if (i + 2u < {{ used.n }}) { words.z = load_input(i + 2u); }
  return bitcast<vec4<f32>>(words);
}
