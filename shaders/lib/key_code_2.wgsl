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
  // The same of a key and of its negative, in both orders; most of zeros, less of larger keys.
  let small = code ^ vec2<u32>(u32(bitcast<i32>(code.y) >> 31u));
  let number = select(code, key_encode(vec2<u32>(0u)), small.y == 0x7fffffffu && small.x == 0xffffffffu);
  return select(number, LAST_CODE, small.y < 0xfffffu || (small.y == 0xfffffu && small.x != 0xffffffffu));
//$ else
  return code;
//$ endif
}
const LAST_CODE: Key = vec2<u32>(0xffffffffu);
