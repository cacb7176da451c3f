// The order of a merge. Keys are held as their codes, or as their words where a function of the user's compares them.
//$ if less
//$ if key_words == 1
alias Key = u32;
//$ else
alias Key = vec{{ key_words }}<u32>;
//$ endif
//$ if key_fields
struct T {
  {{ name }}: {{ type }},  //$ for name, type in key_fields
}
fn item_of(key: Key) -> T {
  return T(
    bitcast<{{ type }}>(key{{ "." ~ "xyzw"[loop.index0] if key_words > 1 }}),  //$ for name, type in key_fields
  );
}
//$ else
alias T = {{ key_type }};
fn item_of(key: Key) -> T { return bitcast<T>(key); }
//$ endif
{{ less }}
fn is_before(a: Key, b: Key) -> bool { return less(item_of(a), item_of(b)); }
fn key_encode(item: Key) -> Key { return item; }
fn key_decode(key: Key) -> Key { return key; }
//$ else
//$ include "lib/key_code.wgsl"
fn is_before(a: Key, b: Key) -> bool {
  let x = key_fixed(a);
  let y = key_fixed(b);
  return {{ "x < y" if key_words == 1 else "x.y < y.y || (x.y == y.y && x.x < y.x)" }};
}
//$ endif
//$ if computed
alias Acc = Key;
struct Quad { x: Acc, y: Acc, z: Acc, w: Acc }
//$ endif
//$ for name in key_operands
fn key_{{ name }}(i: u32) -> Key {
//$ if name in computed
  return load_acc_{{ name }}(i);
//$ elif key_elements == 1
  return key_encode(load_{{ name }}(i));
//$ else
  return Key(
    load_{{ name }}({{ key_elements }}u * i + {{ k }}u),  //$ for k in range(key_elements)
  );
//$ endif
}
//$ endfor
//$ if key_output
fn store_key(i: u32, key: Key) {
//$ if key_elements == 1
  store_{{ key_output }}(i, key_decode(key));
//$ else
  store_{{ key_output }}({{ key_elements }}u * i + {{ k }}u, key.{{ "xyzw"[k] }});  //$ for k in range(key_elements)
//$ endif
}
//$ endif
