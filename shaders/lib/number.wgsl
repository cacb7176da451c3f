// Numbers of any datatype as integers: sign · m · 2ᵉ, with a magnitude m of 64 bits. Conversions are computed in integers,
// so that they round, wrap and keep denormals alike on every device, and float64 needs no feature.
struct Number {
  m: vec2<u32>,  // the low word first
  e: i32,
  negative: bool,
  kind: u32,
}
const FINITE: u32 = 0u;
const INFINITE: u32 = 1u;
const NAN: u32 = 2u;

// Shifts by 0 to 64 bits.
fn shl64(x: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return x; }
  if (by >= 64u) { return vec2<u32>(0u); }
  if (by >= 32u) { return vec2<u32>(0u, x.x << (by - 32u)); }
  return vec2<u32>(x.x << by, (x.y << by) | (x.x >> (32u - by)));
}
fn shr64(x: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return x; }
  if (by >= 64u) { return vec2<u32>(0u); }
  if (by >= 32u) { return vec2<u32>(x.y >> (by - 32u), 0u); }
  return vec2<u32>((x.x >> by) | (x.y << (32u - by)), x.y >> by);
}
fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn negate64(x: vec2<u32>) -> vec2<u32> { return add64(~x, vec2<u32>(1u, 0u)); }

// The bits of a float with `digits` binary digits, as IEEE 754 rounds to nearest, ties to even, but for its sign.
fn float_bits(x: Number, digits: u32, bias: i32) -> vec2<u32> {
  let infinity = shl64(vec2<u32>(u32(2 * bias + 1), 0u), digits - 1u);
  if (x.kind == NAN) { return add64(infinity, shl64(vec2<u32>(1u, 0u), digits - 2u)); }
  if (x.kind == INFINITE) { return infinity; }
  if (all(x.m == vec2<u32>(0u))) { return vec2<u32>(0u); }
  let zeros = select(32u + countLeadingZeros(x.m.x), countLeadingZeros(x.m.y), x.m.y != 0u);
  let m = shl64(x.m, zeros);
  var exponent = x.e + 63 - i32(zeros) + bias;
  if (exponent > 2 * bias) { return infinity; }
  var dropped = 64u - digits;
  if (exponent < 1) {  // denormal
    dropped += u32(1 - exponent);
    exponent = 1;
  }
  if (dropped > 64u) { return vec2<u32>(0u); }  // less than half of the smallest number
  let kept = shr64(m, dropped);
  let half = shr64(m, dropped - 1u).x & 1u;
  let is_more = any(shl64(m, 65u - dropped) != vec2<u32>(0u));
  let up = select(0u, half, is_more || (kept.x & 1u) == 1u);
  // The leading digit of a normal number adds 1 to the exponent, and so does a carry of the rounding.
  return add64(add64(kept, shl64(vec2<u32>(u32(exponent - 1), 0u), digits - 1u)), vec2<u32>(up, 0u));
}

// The integer part, modulo 2⁶⁴; 0 for infinities and NaN.
fn integer_of(x: Number) -> vec2<u32> {
  if (x.kind != FINITE) { return vec2<u32>(0u); }
  let size = select(shl64(x.m, min(u32(max(x.e, 0)), 64u)), shr64(x.m, min(u32(max(-x.e, 0)), 64u)), x.e < 0);
  return select(size, negate64(size), x.negative);
}
