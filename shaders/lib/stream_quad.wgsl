// Four items of an operand, as the macro guarded_quad.
//$ macro guarded_quad(f)
// Four items, of which those from the end on are 0.
fn quad_{{ f.name }}_guarded(i: u32, n: u32) -> {{ f.quad }} {
  if (i + 4u <= n) { return load4_{{ f.name }}(i); }
  var x = {{ f.item }}();
  var y = {{ f.item }}();
  var z = {{ f.item }}();
  if (i < n) { x = load_{{ f.name }}(i); }
  if (i + 1u < n) { y = load_{{ f.name }}(i + 1u); }
  if (i + 2u < n) { z = load_{{ f.name }}(i + 2u); }
//$ if f.bytes == 8
  return {{ f.quad }}(vec4<u32>(x, y), vec4<u32>(z, 0u, 0u));
//$ elif f.bytes == 4
  return vec4<u32>(x, y, z, 0u);
//$ elif f.bytes == 2
  return vec2<u32>(x | (y << 16u), z);
//$ else
  return x | (y << 8u) | (z << 16u);
//$ endif
}
//$ endmacro
