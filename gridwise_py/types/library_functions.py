"""Functions in WGSL that the library's own operations call: remainders, quotients and powers as numpy defines them.

WGSL leaves open what its ``%`` gives for floats, GPUs differ in signed division, and ``pow`` is defined only for bases
above 0 and finite results. Here integers carry the signs and bits, so no compiler's rule for floats matters. A number
that is no constant holds the bits of infinity: constant infinities are errors in WGSL.
"""

from __future__ import annotations

import numpy as np

from .wgsl_function import WgslFunction

_MAGNITUDE = """
fn magnitude(x: i32) -> u32 { return select(bitcast<u32>(x), 0u - bitcast<u32>(x), x < 0); }
"""

# The sign is that of the divisor; by 0 it is 0.
_REMAINDER_I32 = (
    """
fn remainder(a: i32, b: i32) -> i32 {
  let y = magnitude(b);
  var rest = magnitude(a) % max(y, 1u);
  if (rest != 0u && (a < 0) != (b < 0)) { rest = y - rest; }
  return bitcast<i32>(select(rest, 0u - rest, b < 0));
}
"""
    + _MAGNITUDE
)

# Rounded down; by 0 it is 0.
_QUOTIENT_I32 = (
    """
fn floor_quotient(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let x = magnitude(a);
  let y = magnitude(b);
  let quotient = x / y;
  let differ = (a < 0) != (b < 0);
  return bitcast<i32>(select(quotient, 0u - quotient - select(0u, 1u, quotient * y != x), differ));
}
"""
    + _MAGNITUDE
)

# As C's fmod, exact: the bits of |a| − |b| · trunc(|a / b|), from those of |a| and |b|, finite and |b| > 0.
# A float is its mantissa times a power of 2. So the remainder of the mantissas is shifted by the difference of the
# exponents, 8 bits a step, and reduced after each.
_REST = """
fn rest_of(x: u32, y: u32) -> u32 {
  if (x < y) { return x; }
  let exponent = max(y >> 23u, 1u);
  let divisor = (y & 0x7fffffu) | select(0u, 0x800000u, y >= 0x800000u);
  var rest = ((x & 0x7fffffu) | select(0u, 0x800000u, x >= 0x800000u)) % divisor;
  var shift = max(x >> 23u, 1u) - exponent;
  while (shift > 0u && rest > 0u) {
    let step = min(shift, 8u);
    rest = (rest << step) % divisor;
    shift -= step;
  }
  if (rest == 0u) { return 0u; }
  let up = min(countLeadingZeros(rest) - 8u, exponent - 1u);
  return ((exponent - up - 1u) << 23u) + (rest << up);
}
"""

_REMAINDER_F32 = (
    """
fn remainder(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let sign_a = bitcast<u32>(a) & 0x80000000u;
  let sign_b = bitcast<u32>(b) & 0x80000000u;
  var infinity = 0x7f800000u;
  if (x >= infinity || y > infinity || y == 0u) { return bitcast<f32>(infinity | 0x400000u); }
  var rest = x;
  if (y < infinity) { rest = rest_of(x, y); }
  if (rest == 0u) { return bitcast<f32>(sign_b); }
  if (sign_a == sign_b) { return bitcast<f32>(rest | sign_a); }
  if (y == infinity) { return b; }
  return bitcast<f32>(rest | sign_a) + b;
}
"""
    + _REST
)

_QUOTIENT_F32 = (
    """
fn floor_quotient(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let sign_a = bitcast<u32>(a) & 0x80000000u;
  let sign = sign_a ^ (bitcast<u32>(b) & 0x80000000u);
  var infinity = 0x7f800000u;
  if (y == 0u && x != 0u && x <= infinity) { return bitcast<f32>(infinity | sign); }
  if (x >= infinity || y > infinity || y == 0u) { return bitcast<f32>(infinity | 0x400000u); }
  if (y == infinity) { return select(bitcast<f32>(sign), -1.0, sign != 0u && x != 0u); }
  let rest = rest_of(x, y);
  // A device may divide by 0 where the inverse of the divisor is subnormal.
  let scale = select(1.0, 0.25, y > 0x7e000000u);
  var quotient = (a - bitcast<f32>(rest | sign_a)) * scale / (b * scale);
  if (rest != 0u && sign != 0u) { quotient -= 1.0; }
  // It is whole, but for the rounding of a division.
  let below = floor(quotient);
  let whole = below + select(0.0, 1.0, quotient - below > 0.5);
  return select(whole, bitcast<f32>(sign), whole == 0.0);
}
"""
    + _REST
)

_POWER_F32 = """
fn power(a: f32, b: f32) -> f32 {
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let is_negative = bitcast<u32>(a) != x;
  let is_inverse = bitcast<u32>(b) != y;
  var infinity = 0x7f800000u;
  if (y == 0u || bitcast<u32>(a) == 0x3f800000u) { return 1.0; }
  if (x > infinity || y > infinity) { return bitcast<f32>(infinity | 0x400000u); }
  // From 2^24 on every float is an even number.
  let is_even_or_large = y >= 0x4b800000u;
  let is_whole = is_even_or_large || floor(b) == b;
  let is_odd = is_whole && !is_even_or_large && fract(b * 0.5) != 0.0;
  let sign = select(0u, 0x80000000u, is_negative && is_odd);
  if (x == 0u || x == infinity) { return bitcast<f32>(select(0u, infinity, (x == 0u) == is_inverse) | sign); }
  if (y == infinity) {
    if (x == 0x3f800000u) { return 1.0; }
    return bitcast<f32>(select(0u, infinity, (x < 0x3f800000u) == is_inverse));
  }
  if (is_negative && !is_whole) { return bitcast<f32>(infinity | 0x400000u); }
  return bitcast<f32>(bitcast<u32>(pow(bitcast<f32>(x), b)) | sign);
}
"""


def _of(text: str, numpy: np.ufunc) -> WgslFunction:
    return WgslFunction.of(text, numpy, None)


#: By the type of both operands: a - b * floor(a / b), with the sign of b.
REMAINDER = {"i32": _of(_REMAINDER_I32, np.remainder), "f32": _of(_REMAINDER_F32, np.remainder)}
#: floor(a / b).
FLOOR_QUOTIENT = {"i32": _of(_QUOTIENT_I32, np.floor_divide), "f32": _of(_QUOTIENT_F32, np.floor_divide)}
#: a to the power of b.
POWER = {"f32": _of(_POWER_F32, np.power)}
