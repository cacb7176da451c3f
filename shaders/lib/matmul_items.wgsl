// Conversion of matrix items between the buffers and f32, the type of all sums.
//$ if half
alias Quad = vec2<u32>;
fn lift(word: u32) -> f32 { return unpack2x16float(word).x; }
fn lift4(words: Quad) -> vec4<f32> { return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)); }
//$ if natively
// Rounded as the GPU rounds.
fn lower(x: f32) -> u32 { return lower4(vec4<f32>(x)).x & 0xffffu; }
fn lower4(x: vec4<f32>) -> Quad { return bitcast<Quad>(vec4<f16>(x)); }
//$ else
//$ include "lib/half.wgsl"
fn lower(x: f32) -> u32 { return half(x); }
fn lower4(x: vec4<f32>) -> Quad {
  return vec2<u32>(lower(x.x) | (lower(x.y) << 16u), lower(x.z) | (lower(x.w) << 16u));
}
//$ endif
//$ else
alias Quad = vec4<u32>;
fn lift(word: u32) -> f32 { return bitcast<f32>(word); }
fn lift4(words: Quad) -> vec4<f32> { return bitcast<vec4<f32>>(words); }
fn lower(x: f32) -> u32 { return bitcast<u32>(x); }
fn lower4(x: vec4<f32>) -> Quad { return bitcast<vec4<u32>>(x); }
//$ endif

// Items i to i + 3 of a row of `length` items; zeros past its end. `whole`: rows consist of whole vec4.
//$ for operand in ("a", "b")
fn quad_{{ operand }}(row: u32, i: u32, length: u32, whole: bool) -> vec4<f32> {
  let first = row * length + i;
  if (whole) {
    if (i < length) { return lift4(load4_{{ operand }}(first)); }
    return vec4<f32>(0.0);
  }
  var found = vec4<f32>(0.0);
  if (i < length) { found.x = lift(load_{{ operand }}(first)); }
  if (i + 1u < length) { found.y = lift(load_{{ operand }}(first + 1u)); }
  if (i + 2u < length) { found.z = lift(load_{{ operand }}(first + 2u)); }
  if (i + 3u < length) { found.w = lift(load_{{ operand }}(first + 3u)); }
  return found;
}
//$ endfor

fn put(row: u32, column: u32, sums: vec4<f32>) {
  if (row >= params.m) { return; }
  let first = row * params.n + column;
  if (column + 4u <= params.n) {
    store4_output(first, lower4(sums));
    return;
  }
  if (column < params.n) { store_output(first, lower(sums.x)); }
  if (column + 1u < params.n) { store_output(first + 1u, lower(sums.y)); }
  if (column + 2u < params.n) { store_output(first + 2u, lower(sums.z)); }
}
