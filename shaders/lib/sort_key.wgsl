// Keys as the radix sort sees them: codes whose unsigned order is the wanted order. A code holds every bit of its key, so
// it can be decoded. But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in
// descending order a NaN would come first. If the histogram finds such keys, digits come from `key_fixed` of the code
// instead. A key of 8 or 16 bits is the upper part of its code, whose other bits are 0.
const BINS: u32 = {{ constants.BINS }}u;

// The current digit: its first bit, its mask, and its word in the key.
var<private> digit_shift: u32;
var<private> digit_mask: u32;
//$ if key_words == 2
var<private> digit_high: bool;
//$ endif
fn use_digit(packed: u32) {
  digit_shift = packed & 31u;
  digit_mask = (1u << ((packed >> {{ constants.DIGIT_WIDTH_SHIFT }}u) & 15u)) - 1u;
//$ if key_words == 2
  digit_high = (packed >> {{ constants.DIGIT_WORD_SHIFT }}u) == 1u;
//$ endif
}

// Passes hand codes to one another: only the first one encodes, and only the last one decodes.
//$ if key_words == 1
alias Key = u32;
//$ set half = key_bytes == 2
//$ set unused = 32 - 8 * key_bytes
//$ set up, down = (" << %du" % unused, " >> %du" % unused) if unused else ("", "")
fn key_encode(item: Key) -> Key {
  let key = item{{ up }};
//$ if key_kind == "f"
  return (key ^ (u32(bitcast<i32>(key) >> 31u) | 0x80000000u){{ " ^ 0xffffffffu" if descending }}){{ " & 0xffff0000u" if half }};
//$ elif unused
  return key ^ {{ "0x%08xu" % (((2 ** 32 - 2 ** unused if descending else 0) - (2 ** 31 if key_kind == "i" else 0)) | abs) }};
//$ elif key_kind == "i"
  return key ^ {{ "0x7fffffffu" if descending else "0x80000000u" }};
//$ else
  return {{ "~key" if descending else "key" }};
//$ endif
}
fn key_decode(code: Key) -> Key {
//$ if key_kind == "f"
  let plain = {{ "~code" if descending else "code" }};
  return (plain ^ (u32(bitcast<i32>(~plain) >> 31u) | 0x80000000u)){{ down }};
//$ elif unused
  return key_encode(code{{ down }}){{ down }};
//$ else
  return key_encode(code);
//$ endif
}
fn key_read(item: Key) -> Key { return item{{ up }}; }
fn key_written(code: Key) -> Key { return code{{ down }}; }
fn key_fixed(code: Key) -> Key {
//$ if key_kind == "f"
// In descending order the infinities change places, and so do the zeros.
//$ set lowest, highest = ("0x03ff0000u", "0xfc000000u") if half else ("0x007fffffu", "0xff800000u")
//$ set zeros = ("0x7fff0000u" if half else "0x7fffffffu", "0x80000000u")
//$ set negative, positive = zeros | reverse if descending else zeros
  let number = select(code, {{ positive }}, code == {{ negative }});
  return select(number, LAST_CODE, code - {{ lowest }} > {{ highest }} - {{ lowest }});
//$ else
  return code;
//$ endif
}
fn key_digit(code: Key) -> u32 { return (code >> digit_shift) & digit_mask; }
fn key_is_fixed(code: Key) -> bool { return key_fixed(code) == code; }
const LAST_CODE: Key = {{ "0x%08xu" % (2 ** 32 - 2 ** unused) }};
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
fn key_read(item: Key) -> Key { return item; }
fn key_written(code: Key) -> Key { return code; }
fn key_fixed(code: Key) -> Key {
//$ if key_kind == "f"
  let key = key_decode(code);
  let exponent = key.y & 0x7fffffffu;
  if (exponent > 0x7ff00000u || (exponent == 0x7ff00000u && key.x != 0u)) { return LAST_CODE; }
  return select(code, key_encode(vec2<u32>(0u)), key.x == 0u && key.y == 0x80000000u);
//$ else
  return code;
//$ endif
}
fn key_digit(code: Key) -> u32 { return (select(code.x, code.y, digit_high) >> digit_shift) & digit_mask; }
fn key_is_fixed(code: Key) -> bool { return all(key_fixed(code) == code); }
const LAST_CODE: Key = vec2<u32>(0xffffffffu);
//$ endif

// Where a pass reads and writes: 0 for a pass that is skipped, because all keys agree in its digit; otherwise the place of
// its source plus 4 × that of its destination. sort_histogram.wgsl decides it on the GPU.
const INPUT: u32 = 1u;
const OUTPUT: u32 = 2u;
const TEMPORARY: u32 = 3u;
// As a destination: the output of the last pass, which writes keys instead of codes.
const LAST: u32 = 1u;
// Indices in the routes: whether any key differs from its fixed code, and then where the bins of each digit begin.
const UNFIXED: u32 = {{ constants.ROUTES_UNFIXED }}u;
const FIRST_BIN: u32 = {{ constants.ROUTES_FIRST_BIN }}u;
