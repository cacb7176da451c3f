// Keys as codes: numbers whose unsigned order is the wanted order. A code holds every bit of its key, so it can be decoded.
// But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in descending order a NaN
// would come first: key_fixed of a code gives such keys their place.
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
