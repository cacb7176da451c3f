// Keeps floats as they were rounded. WGSL lets a compiler reassociate and contract (a + b) − a, and compilers do: Mesa turns
// the error term of a TwoSum into 0. A bitcast to u32 and back is a no-op to the compiler and does not prevent this.
// An exclusive or with a zero that is known only at run time does, because the result could be any float.
fn seal(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ params.zero); }
fn seal4(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) ^ vec4<u32>(params.zero));
}

// Tests the bits, because a compiler may assume that there are no infinities and no NaN.
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }

// The bits of a result. All NaNs become one, because adapters make different ones.
fn settled(x: f32) -> u32 {
  let word = bitcast<u32>(x);
  return select(word, 0x7fc00000u, (word & 0x7fffffffu) > 0x7f800000u);
}
