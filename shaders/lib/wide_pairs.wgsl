// Integers of 64 bits in expressions as pairs of words, the low one first, for devices without lib/wide_native.wgsl's types.
// A kernel gets the functions that it calls. As in numpy, what is divided by 0 gives 0, and quotients are rounded down.
fn u64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn u64_subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn u64_negate(x: vec2<u32>) -> vec2<u32> { return u64_subtract(vec2<u32>(0u), x); }
// Modulo 2⁶⁴, from products of 16-bit halves.
fn u64_multiply(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let a_low = a.x & 0xffffu;
  let a_high = a.x >> 16u;
  let b_low = b.x & 0xffffu;
  let b_high = b.x >> 16u;
  let middle = a_high * b_low + ((a_low * b_low) >> 16u);  // at most (2¹⁶ − 1)² + 2¹⁶ − 1
  let other = a_low * b_high + (middle & 0xffffu);
  let high = a_high * b_high + (middle >> 16u) + (other >> 16u);
  return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}
fn u64_less(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn i64_less(a: vec2<u32>, b: vec2<u32>) -> bool {
  return u64_less(a ^ vec2<u32>(0u, 0x80000000u), b ^ vec2<u32>(0u, 0x80000000u));
}
// Shifts by 0 to 63 bits.
fn u64_left(x: vec2<u32>, by: u32) -> vec2<u32> {
  let up = by & 31u;
  let low = x.x << up;
  let high = (x.y << up) | ((x.x >> 1u) >> (31u - up));
  return select(vec2<u32>(low, high), vec2<u32>(0u, low), by > 31u);
}
fn u64_right(x: vec2<u32>, by: u32) -> vec2<u32> {
  let down = by & 31u;
  let high = x.y >> down;
  let low = (x.x >> down) | ((x.y << 1u) << (31u - down));
  return select(vec2<u32>(low, high), vec2<u32>(high, 0u), by > 31u);
}
fn i64_right(x: vec2<u32>, by: u32) -> vec2<u32> {
  let signs = i64_signs(x);
  return u64_right(x ^ signs, by) ^ signs;
}
fn i64_signs(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(bitcast<u32>(bitcast<i32>(x.y) >> 31u)); }
fn i64_is_negative(x: vec2<u32>) -> bool { return x.y >= 0x80000000u; }
fn i64_magnitude(x: vec2<u32>) -> vec2<u32> { return select(x, u64_negate(x), i64_is_negative(x)); }
fn i64_sign(x: vec2<u32>) -> vec2<u32> { return i64_signs(x) | vec2<u32>(select(0u, 1u, any(x != vec2<u32>(0u))), 0u); }

// The quotient and the remainder of 64 by 32 bits, where the quotient has 32: x.y < y. Two digits of 16 bits, of which each
// is guessed from the divisor's leading digit and at most 2 too large. Source: D. Knuth, "The art of computer
// programming", volume 2, 4.3.1, algorithm D, as in H. Warren, "Hacker's Delight", 9-4.
fn u64_digits(x: vec2<u32>, y: u32) -> vec2<u32> {
  let zeros = countLeadingZeros(y);
  let divisor = y << zeros;
  let first = divisor >> 16u;
  let second = divisor & 0xffffu;
  let shifted = u64_left(x, zeros);
  var rest = shifted.y;
  var quotient = 0u;
  for (var k = 0u; k < 2u; k++) {
    let next = select(shifted.x >> 16u, shifted.x & 0xffffu, k == 1u);
    var digit = rest / first;
    var left = rest - digit * first;
    for (var turn = 0u; turn < 2u; turn++) {
      if (left < 0x10000u && (digit > 0xffffu || digit * second > ((left << 16u) | next))) {
        digit -= 1u;
        left += first;
      }
    }
    rest = ((rest << 16u) | next) - digit * divisor;
    quotient = (quotient << 16u) + digit;
  }
  return vec2<u32>(quotient, rest >> zeros);
}
// The quotient and the remainder; both are 0 where the divisor is.
fn u64_divided(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (all(b == vec2<u32>(0u))) { return vec4<u32>(0u); }
  if ((a.y | b.y) == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  // By the leading 32 bits of the divisor: all, if it has no more.
  let is_short = b.y == 0u;
  let zeros = countLeadingZeros(b.y);
  let divisor = u64_left(b, zeros).y;
  let high = select(0u, a.y / divisor, is_short);
  let found = u64_digits(select(u64_right(a, 1u), vec2<u32>(a.x, a.y - high * divisor), is_short), divisor);
  if (is_short) { return vec4<u32>(found.x, high, found.y, 0u); }
  // At most 1 too large, and 1 is taken away (Hacker's Delight, 9-5).
  let below = max(u64_right(u64_left(vec2<u32>(found.x, 0u), zeros), 31u).x, 1u) - 1u;
  let rest = u64_subtract(a, u64_multiply(vec2<u32>(below, 0u), b));
  if (u64_less(rest, b)) { return vec4<u32>(below, 0u, rest); }
  return vec4<u32>(below + 1u, 0u, u64_subtract(rest, b));
}
fn u64_quotient(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return u64_divided(a, b).xy; }
fn u64_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return u64_divided(a, b).zw; }
fn i64_quotient(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let found = u64_divided(i64_magnitude(a), i64_magnitude(b));
  if (i64_is_negative(a) == i64_is_negative(b) || all(b == vec2<u32>(0u))) { return found.xy; }
  return select(~found.xy, u64_negate(found.xy), all(found.zw == vec2<u32>(0u)));  // −q − 1 is ~q
}
fn i64_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let size = i64_magnitude(b);
  let rest = u64_divided(i64_magnitude(a), size).zw;
  let is_other = i64_is_negative(a) != i64_is_negative(b) && any(rest != vec2<u32>(0u));
  let found = select(rest, u64_subtract(size, rest), is_other);
  return select(found, u64_negate(found), i64_is_negative(b));
}
fn u64_power(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  var result = vec2<u32>(1u, 0u);
  var base = a;
  for (var rest = b; any(rest != vec2<u32>(0u)); rest = u64_right(rest, 1u)) {
    if ((rest.x & 1u) == 1u) { result = u64_multiply(result, base); }
    base = u64_multiply(base, base);
  }
  return result;
}
fn i64_power(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (i64_is_negative(b)) { return vec2<u32>(0u); }
  return u64_power(a, b);
}

// ---- conversions
fn u64_of_i32(x: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u)); }
// Rounded to nearest, ties to even, by integers: devices differ in f32(x).
fn f32_of_u64(x: vec2<u32>) -> f32 {
  if (all(x == vec2<u32>(0u))) { return 0.0; }
  let zeros = select(countLeadingZeros(x.y), 32u + countLeadingZeros(x.x), x.y == 0u);
  let leading = u64_left(x, zeros);
  let kept = leading.y >> 8u;
  let rest = (leading.y << 24u) | min(leading.x, 1u);
  let up = select(0u, 1u, rest > 0x80000000u || (rest == 0x80000000u && (kept & 1u) == 1u));
  return bitcast<f32>(((189u - zeros) << 23u) + kept + up);
}
fn f32_of_i64(x: vec2<u32>) -> f32 {
  let size = f32_of_u64(i64_magnitude(x));
  return select(size, -size, i64_is_negative(x));
}
fn u64_of_f32(x: f32) -> vec2<u32> {
  let bits = bitcast<u32>(x);
  let exponent = (bits >> 23u) & 0xffu;
  let digits = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  let size = select(u64_left(digits, (exponent - 150u) & 63u), u64_right(digits, (150u - exponent) & 63u), exponent < 150u);
  let whole = select(size, vec2<u32>(0u), exponent < 127u);
  return select(whole, u64_negate(whole), bits >= 0x80000000u);
}
// Rounded to nearest, ties to even, without float64.
fn f32_of_f64(x: vec2<u32>) -> f32 {
  let sign = x.y & 0x80000000u;
  let high = x.y ^ sign;
  if (high >= 0x7ff00000u) {
    return bitcast<f32>(sign | select(0x7f800000u, 0x7fc00000u, high > 0x7ff00000u || x.x != 0u));
  }
  let exponent = i32(high >> 20u) - 896;
  if (exponent > 254) { return bitcast<f32>(sign | 0x7f800000u); }
  let leading = (high & 0xfffffu) | select(0u, 0x100000u, high >= 0x100000u);
  let digits = vec2<u32>(x.x << 3u, (leading << 3u) | (x.x >> 29u));  // 24, and those behind the point
  let dropped = u32(clamp(1 - exponent, 0, 31));  // of a denormal
  let kept = u64_right(digits, dropped);
  let is_more = any(u64_left(kept, dropped) != digits) || (kept.y & 1u) == 1u;
  let up = select(0u, 1u, kept.x > 0x80000000u || (kept.x == 0x80000000u && is_more));
  return bitcast<f32>(sign | ((u32(max(exponent, 1) - 1) << 23u) + kept.y + up));
}
