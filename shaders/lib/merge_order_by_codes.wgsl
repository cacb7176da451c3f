// Keys are held as their codes.
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
fn is_before(a: Key, b: Key) -> bool {
  let x = key_fixed(a);
  let y = key_fixed(b);
  return {{ "x < y" if key_words == 1 else "x.y < y.y || (x.y == y.y && x.x < y.x)" }};
}
fn key_{{ name }}(i: u32) -> Key { return {{ ("load_acc_%s(i)" if name in computed else "key_encode(load_%s(i))") % name }}; }  //$ for name in key_operands
//$ if key_output
fn store_key(i: u32, key: Key) { store_{{ key_output }}(i, key_decode(key)); }
//$ endif
