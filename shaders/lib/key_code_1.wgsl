// Keys as codes: numbers whose unsigned order is the wanted order. A code holds every bit of its key, so it can be decoded.
// But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in descending order a NaN
// would come first: key_fixed of a code gives such keys their place. A key of 8 or 16 bits is the upper part of its code,
// whose other bits are 0.
alias Key = u32;
//$ set half, unused = key_bytes == 2, 32 - 8 * key_bytes
//$ set up, down = (" << %du" % unused, " >> %du" % unused) if unused else ("", "")
fn key_encode(item: Key) -> Key {
  let key = item{{ up }};
//$ set flip = "0x%08xu" % (((2 ** 32 - 2 ** unused if descending else 0) - (2 ** 31 if key_kind == "i" else 0)) | abs)
//$ set ordered = "(key ^ (u32(bitcast<i32>(key) >> 31u) | 0x80000000u)%s)%s" % (" ^ 0xffffffffu" if descending else "", " & 0xffff0000u" if half else "")
  return {{ ordered if key_kind == "f" else "key ^ " ~ flip if unused or key_kind == "i" else "~key" if descending else "key" }};
}
fn key_decode(code: Key) -> Key {
//$ if key_kind == "f"
  let plain = {{ "~code" if descending else "code" }};
  return (plain ^ (u32(bitcast<i32>(~plain) >> 31u) | 0x80000000u)){{ down }};
//$ else
  return key_encode(code{{ down }}){{ down }};
//$ endif
}
fn key_read(item: Key) -> Key { return item{{ up }}; }
fn key_written(code: Key) -> Key { return code{{ down }}; }
fn key_fixed(code: Key) -> Key {
//$ if key_kind == "f"
// In descending order the infinities change places, and so do the zeros.
//$ set lowest, highest = ("0x03ff0000u", "0xfc000000u") if half else ("0x007fffffu", "0xff800000u")
//$ set negative, positive = ("0x7fff0000u" if half else "0x7fffffffu", "0x80000000u")[::-1 if descending else 1]
  let number = select(code, {{ positive }}, code == {{ negative }});
  return select(number, LAST_CODE, code - {{ lowest }} > {{ highest }} - {{ lowest }});
//$ else
  return code;
//$ endif
}
const LAST_CODE: Key = {{ "0x%08xu" % (2 ** 32 - 2 ** unused) }};
