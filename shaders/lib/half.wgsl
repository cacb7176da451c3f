// The 16 bits of a number. Rounds to nearest, ties to even, as numpy does. pack2x16float may treat ties and overflow
// differently.
fn half(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }  // 65,520 and more
  // Below 2⁻¹⁴ the step is 2⁻²⁴, the step of f32 between 0.5 and 1.
  if (size < 0x38800000u) { return sign | (bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u); }
  return sign | ((size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u);
}
