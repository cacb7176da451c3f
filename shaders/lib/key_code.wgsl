// Keys as codes: numbers whose unsigned order is the wanted order. A code holds every bit of its key, so it can be decoded.
// But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in descending order a NaN
// would come first: key_fixed of a code gives such keys their place. A key of 8 or 16 bits is the upper part of its code,
// whose other bits are 0.
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
fn key_is_fixed(code: Key) -> bool { return all(key_fixed(code) == code); }
const LAST_CODE: Key = vec2<u32>(0xffffffffu);
//$ endif
