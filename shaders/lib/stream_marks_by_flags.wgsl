// Mark {{ k }} is that {{ mark.name }} is true: a flag that is not 0, or a predicate that holds.
//$ set item = "item%d" % mark.bytes
fn is_true_{{ k }}(flag: Item{{ mark.bytes }}) -> bool {
//$ if mark.magnitude
  // −0 is 0.
  return any((flag & {{ mark.magnitude }}) != Item{{ mark.bytes }}());
//$ else
  return any(flag != Item{{ mark.bytes }}());
//$ endif
}
fn marks_{{ k }}(i: u32) -> u32 {
  let flags = load4_{{ mark.name }}(i);
//$ if mark.bytes == 1
  // The lowest bit of every byte that is not 0, brought together by a product.
  var bits = flags | (flags >> 4u);
  bits |= bits >> 2u;
  bits |= bits >> 1u;
  return ((bits & 0x01010101u) * 0x10204080u) >> 28u;
//$ elif mark.bytes == 4 and mark.of != "f"
  let bits = select(vec4<u32>(0u), vec4<u32>(1u, 2u, 4u, 8u), flags != vec4<u32>(0u));
  return bits.x | bits.y | bits.z | bits.w;
//$ else
  return select(0u, 1u, is_true_{{ k }}({{ item }}(flags, 0u))) | select(0u, 2u, is_true_{{ k }}({{ item }}(flags, 1u)))
    | select(0u, 4u, is_true_{{ k }}({{ item }}(flags, 2u))) | select(0u, 8u, is_true_{{ k }}({{ item }}(flags, 3u)));
//$ endif
}
fn marks_{{ k }}_guarded(i: u32, n: u32) -> u32 {
  if (i + 4u <= n) { return marks_{{ k }}(i); }
  var bits = 0u;
  if (i < n) { bits |= select(0u, 1u, is_true_{{ k }}(load_{{ mark.name }}(i))); }
  if (i + 1u < n) { bits |= select(0u, 2u, is_true_{{ k }}(load_{{ mark.name }}(i + 1u))); }
  if (i + 2u < n) { bits |= select(0u, 4u, is_true_{{ k }}(load_{{ mark.name }}(i + 2u))); }
  return bits;
}
