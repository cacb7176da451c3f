// Keys as the radix sort sees them: codes whose unsigned order is the order wanted. A code holds every bit of its key, so
// that it can be turned back. Two floats that numpy's order takes for equal may have different codes, −0 and +0 and
// all NaNs, and descending a NaN would come first. So digits are taken from `key_fixed` of a code wherever there are such
// keys, which the histogram finds out. A key of 16 bits is the upper half of its code.
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
fn key_encode(item: Key) -> Key {
  let key = item{{ " << 16u" if key_bytes == 2 }};
//$ if key_kind == "f"
  return key ^ (u32(bitcast<i32>(key) >> 31u) | 0x80000000u){{ " ^ 0xffffffffu" if descending }};
//$ elif key_kind == "i"
  return key ^ {{ "0x7fffffffu" if descending else "0x80000000u" }};
//$ else
  return {{ "~key" if descending else "key" }};
//$ endif
}
fn key_decode(code: Key) -> Key {
//$ if key_kind == "f"
  let plain = {{ "~code" if descending else "code" }};
  return (plain ^ (u32(bitcast<i32>(~plain) >> 31u) | 0x80000000u)){{ " >> 16u" if key_bytes == 2 }};
//$ else
  return key_encode(code);
//$ endif
}
fn key_fixed(code: Key) -> Key {
//$ if key_kind == "f"
  let key = key_decode(code);
//$ set magnitude, infinity, sign = ("0x7fffu", "0x7c00u", "0x8000u") if key_bytes == 2 else ("0x7fffffffu", "0x7f800000u", "0x80000000u")
  if ((key & {{ magnitude }}) > {{ infinity }}) { return 0xffffffffu; }
  return select(code, key_encode(0u), key == {{ sign }});
//$ else
  return code;
//$ endif
}
fn key_digit(code: Key) -> u32 { return (code >> digit_shift) & digit_mask; }
fn key_is_fixed(code: Key) -> bool { return key_fixed(code) == code; }
const LAST_CODE: Key = 0xffffffffu;
//$ else
// Low word, high word.
alias Key = vec2<u32>;
fn key_encode(key: Key) -> Key {
//$ if key_kind == "f"
  let sign = u32(bitcast<i32>(key.y) >> 31u);
  return key ^ vec2<u32>(sign, sign | 0x80000000u){{ " ^ vec2<u32>(0xffffffffu)" if descending }};
//$ elif key_kind == "i"
  return key ^ {{ "vec2<u32>(0xffffffffu, 0x7fffffffu)" if descending else "vec2<u32>(0u, 0x80000000u)" }};
//$ else
  return {{ "~key" if descending else "key" }};
//$ endif
}
fn key_decode(code: Key) -> Key {
//$ if key_kind == "f"
  let plain = {{ "~code" if descending else "code" }};
  let sign = u32(bitcast<i32>(~plain.y) >> 31u);
  return plain ^ vec2<u32>(sign, sign | 0x80000000u);
//$ else
  return key_encode(code);
//$ endif
}
fn key_fixed(code: Key) -> Key {
//$ if key_kind == "f"
  let key = key_decode(code);
  let exponent = key.y & 0x7fffffffu;
  if (exponent > 0x7ff00000u || (exponent == 0x7ff00000u && key.x != 0u)) { return vec2<u32>(0xffffffffu); }
  return select(code, key_encode(vec2<u32>(0u)), key.x == 0u && key.y == 0x80000000u);
//$ else
  return code;
//$ endif
}
fn key_digit(code: Key) -> u32 { return (select(code.x, code.y, digit_high) >> digit_shift) & digit_mask; }
fn key_is_fixed(code: Key) -> bool { return all(key_fixed(code) == code); }
const LAST_CODE: Key = vec2<u32>(0xffffffffu);
//$ endif

// Where a pass reads and writes: 0 for a pass that is left out, since all keys agree in its digit; else the place of
// its source plus 4 × that of its destination. Decided on the GPU by sort_count.wgsl.
const INPUT: u32 = 1u;
const OUTPUT: u32 = 2u;
const TEMPORARY: u32 = 3u;
// In the routes: whether there are keys whose code is not fixed, and, behind it, where the bins of each digit begin.
const UNFIXED: u32 = 8u;
const FIRST_BIN: u32 = 16u;
