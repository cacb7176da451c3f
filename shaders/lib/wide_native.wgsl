// Numbers of 64 bits in expressions, by WGSL's own types; lib/wide_pairs.wgsl has integers without them. A kernel gets the
// functions that it calls. As in numpy, integers divided by 0 give 0, and quotients are rounded down.
fn u64_of_words(x: vec2<u32>) -> u64 { return (u64(x.y) << 32u) | u64(x.x); }
fn i64_of_words(x: vec2<u32>) -> i64 { return bitcast<i64>(u64_of_words(x)); }
fn f64_of_words(x: vec2<u32>) -> f64 { return bitcast<f64>(u64_of_words(x)); }
fn words_of_u64(x: u64) -> vec2<u32> { return vec2<u32>(u32(x & 0xfffffffflu), u32(x >> 32u)); }
fn words_of_i64(x: i64) -> vec2<u32> { return words_of_u64(bitcast<u64>(x)); }
fn words_of_f64(x: f64) -> vec2<u32> { return words_of_u64(bitcast<u64>(x)); }

fn u64_quotient(a: u64, b: u64) -> u64 { return select(a / max(b, 1lu), 0lu, b == 0lu); }
fn u64_remainder(a: u64, b: u64) -> u64 { return select(a % max(b, 1lu), 0lu, b == 0lu); }
fn u64_power(a: u64, b: u64) -> u64 {
  var result = 1lu;
  var base = a;
  for (var rest = b; rest != 0lu; rest >>= 1u) {
    if ((rest & 1lu) == 1lu) { result *= base; }
    base *= base;
  }
  return result;
}
fn i64_magnitude(x: i64) -> u64 {
  let bits = bitcast<u64>(x);
  return select(bits, 0lu - bits, x < 0li);
}
fn i64_quotient(a: i64, b: i64) -> i64 {
  let x = i64_magnitude(a);
  let y = i64_magnitude(b);
  let quotient = u64_quotient(x, y);
  let down = 0lu - quotient - select(1lu, 0lu, quotient * y == x || y == 0lu);
  return bitcast<i64>(select(quotient, down, (a < 0li) != (b < 0li)));
}
fn i64_remainder(a: i64, b: i64) -> i64 { return select(a - b * i64_quotient(a, b), 0li, b == 0li); }
fn i64_power(a: i64, b: i64) -> i64 {
  return select(bitcast<i64>(u64_power(bitcast<u64>(a), select(bitcast<u64>(b), 0lu, b < 0li))), 0li, b < 0li);
}

// By their bits: compilers reckon as if there were neither infinity nor NaN.
fn f64_magnitude(x: f64) -> u64 { return bitcast<u64>(x) & 0x7ffffffffffffffflu; }
fn f64_is_nan(x: f64) -> bool { return f64_magnitude(x) > 0x7ff0000000000000lu; }
fn f64_is_finite(x: f64) -> bool { return f64_magnitude(x) < 0x7ff0000000000000lu; }
fn f64_of_itself(x: f64) -> f64 {
  return bitcast<f64>(select(bitcast<u64>(x) | 0x7ff8000000000000lu, 0lu, f64_is_finite(x)));
}
// The bits of |a| − |b| · trunc(|a / b|), exact, from those of |a| and |b|, finite and |b| > 0, as for f32.
fn f64_rest(x: u64, y: u64) -> u64 {
  if (x < y) { return x; }
  let leading = 0x10000000000000lu;
  let exponent = max(u32(y >> 52u), 1u);
  let divisor = (y & (leading - 1lu)) | select(0lu, leading, y >= leading);
  var rest = ((x & (leading - 1lu)) | select(0lu, leading, x >= leading)) % divisor;
  var shift = max(u32(x >> 52u), 1u) - exponent;
  while (shift > 0u && rest > 0lu) {
    let step = min(shift, 11u);
    rest = (rest << step) % divisor;
    shift -= step;
  }
  if (rest == 0lu) { return 0lu; }
  let words = words_of_u64(rest);
  let zeros = select(countLeadingZeros(words.y), 32u + countLeadingZeros(words.x), words.y == 0u);
  let up = min(zeros - 11u, exponent - 1u);
  return (u64(exponent - up - 1u) << 52u) + (rest << up);
}
fn f64_remainder(a: f64, b: f64) -> f64 {
  let x = f64_magnitude(a);
  let y = f64_magnitude(b);
  let sign_a = bitcast<u64>(a) ^ x;
  let sign_b = bitcast<u64>(b) ^ y;
  let infinity = 0x7ff0000000000000lu;
  if (x >= infinity || y > infinity || y == 0lu) { return f64_of_words(vec2<u32>(0u, 0x7ff80000u)); }
  var rest = x;
  if (y < infinity) { rest = f64_rest(x, y); }
  if (rest == 0lu) { return bitcast<f64>(sign_b); }
  if (sign_a == sign_b) { return bitcast<f64>(rest | sign_a); }
  if (y == infinity) { return b; }
  return bitcast<f64>(rest | sign_a) + b;
}
fn f64_quotient(a: f64, b: f64) -> f64 {
  let x = f64_magnitude(a);
  let y = f64_magnitude(b);
  let sign_a = bitcast<u64>(a) ^ x;
  let sign = sign_a ^ bitcast<u64>(b) ^ y;
  let infinity = 0x7ff0000000000000lu;
  if (y == 0lu && x != 0lu && x <= infinity) { return bitcast<f64>(infinity | sign); }
  if (x >= infinity || y > infinity || y == 0lu) { return f64_of_words(vec2<u32>(0u, 0x7ff80000u)); }
  if (y == infinity) { return select(bitcast<f64>(sign), f64(-1.0), sign != 0lu && x != 0lu); }
  let rest = f64_rest(x, y);
  var quotient = (a - bitcast<f64>(rest | sign_a)) / b;
  if (rest != 0lu && sign != 0lu) { quotient -= f64(1.0); }
  // It is whole, but for the rounding of a division.
  let below = floor(quotient);
  let whole = below + select(f64(0.0), f64(1.0), quotient - below > f64(0.5));
  return select(whole, bitcast<f64>(sign), whole == f64(0.0));
}
