// Keys are held as their words, which a function of the user's compares.
alias Key = {{ "u32" if key_words == 1 else "vec%d<u32>" % key_words }};
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
//$ for name in key_operands
fn key_{{ name }}(i: u32) -> Key {
//$ if name in computed
  return load_acc_{{ name }}(i);
//$ else
  return Key(
    load_{{ name }}({{ key_elements }}u * i + {{ k }}u),  //$ for k in range(key_elements)
  );
//$ endif
}
//$ endfor
//$ if key_output
fn store_key(i: u32, key: Key) {
  store_{{ key_output }}({{ key_elements }}u * i + {{ k }}u, {{ "key." ~ "xyzw"[k] if key_elements > 1 else "key" }});  //$ for k in range(key_elements)
}
//$ endif
