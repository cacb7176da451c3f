// Keys as the radix sort sees them. A key travels as its raw bits; only its digits are taken from a code whose unsigned
// order is the order wanted: numpy's, with −0 equal to +0 and every NaN equal and last, also when descending.
const BINS: u32 = 256u;

// The digit in use: its first bit, its mask, and the word of the key that has it.
var<private> digit_shift: u32;
var<private> digit_mask: u32;
//$ if key_words == 2
var<private> digit_high: bool;
//$ endif
fn use_digit(packed: u32) {
  digit_shift = packed & 31u;
  digit_mask = (1u << ((packed >> 5u) & 15u)) - 1u;
//$ if key_words == 2
  digit_high = (packed >> 9u) == 1u;
//$ endif
}

//$ if key_words == 1
alias Key = u32;
fn key_code(key: Key) -> u32 {
//$ if key_kind == "f"
  if ((key & 0x7fffffffu) > 0x7f800000u) { return 0xffffffffu; }
  let zero_or_key = select(key, 0u, key == 0x80000000u);
  let code = zero_or_key ^ select(0x80000000u, 0xffffffffu, (zero_or_key >> 31u) == 1u);
//$ elif key_kind == "i"
  let code = key ^ 0x80000000u;
//$ else
  let code = key;
//$ endif
  return {{ "~code" if descending else "code" }};
}
fn key_digit(key: Key) -> u32 { return (key_code(key) >> digit_shift) & digit_mask; }
//$ else
// Low word, high word.
alias Key = vec2<u32>;
fn key_code(key: Key) -> vec2<u32> {
//$ if key_kind == "f"
  let exponent = key.y & 0x7fffffffu;
  if (exponent > 0x7ff00000u || (exponent == 0x7ff00000u && key.x != 0u)) { return vec2<u32>(0xffffffffu); }
  let zero = key.x == 0u && exponent == 0u;
  let sign = select(0u, 0xffffffffu, (key.y >> 31u) == 1u && !zero);
  let code = vec2<u32>(key.x ^ sign, select(key.y, 0u, zero) ^ (sign | 0x80000000u));
//$ elif key_kind == "i"
  let code = vec2<u32>(key.x, key.y ^ 0x80000000u);
//$ else
  let code = key;
//$ endif
  return {{ "~code" if descending else "code" }};
}
fn key_digit(key: Key) -> u32 {
  let code = key_code(key);
  return (select(code.x, code.y, digit_high) >> digit_shift) & digit_mask;
}
//$ endif

// Where a pass reads and writes: 0 for a pass that is left out, since all keys agree in its digit; else the place of
// its source plus 4 × that of its destination. Decided on the GPU by sort_count.wgsl.
const INPUT: u32 = 1u;
const OUTPUT: u32 = 2u;
const TEMPORARY: u32 = 3u;
