// Numbers of 64 bits as two words, the low one first.
//$ set converts = source is defined and source.kind != "raw" and source.name != "f64"
//$ if acc.number == "f64" and (not acc.key or converts)
fn f64_of(x: Acc) -> f64 { return bitcast<f64>((u64(x.y) << 32u) | u64(x.x)); }
fn words_of(x: f64) -> Acc {
  let bits = bitcast<u64>(x);
//$ if fixed_order
  // As in lib/seal.wgsl: the sum is rounded here.
  return Acc(u32(bits & 0xfffffffflu), u32(bits >> 32u)) ^ Acc(params.zero);
//$ else
  return Acc(u32(bits & 0xfffffffflu), u32(bits >> 32u));
//$ endif
}
fn wide_add(a: Acc, b: Acc) -> Acc { return words_of(f64_of(a) + f64_of(b)); }
fn wide_multiply(a: Acc, b: Acc) -> Acc { return words_of(f64_of(a) * f64_of(b)); }
//$ else
fn wide_add(a: Acc, b: Acc) -> Acc {
  let low = a.x + b.x;
  return Acc(low, a.y + b.y + select(0u, 1u, low < a.x));
}
// Modulo 2⁶⁴, from products of 16-bit halves.
fn wide_multiply(a: Acc, b: Acc) -> Acc {
  let a_low = a.x & 0xffffu;
  let a_high = a.x >> 16u;
  let b_low = b.x & 0xffffu;
  let b_high = b.x >> 16u;
  let low = a_low * b_low;
  let middle = a_high * b_low + (low >> 16u);  // at most (2¹⁶ − 1)² + 2¹⁶ − 1
  let other = a_low * b_high + (middle & 0xffffu);
  let high = a_high * b_high + (middle >> 16u) + (other >> 16u);
  return Acc(a.x * b.x, high + a.x * b.y + a.y * b.x);
}
//$ endif
fn wide_less(a: Acc, b: Acc) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn wide_min(a: Acc, b: Acc) -> Acc { return select(a, b, wide_less(b, a)); }
fn wide_max(a: Acc, b: Acc) -> Acc { return select(a, b, wide_less(a, b)); }
