// load4_{{ f.name }}_guarded(i, n): four items as load4_{{ f.name }}, with 0 for those from item n on. Included once for each field f.
fn load4_{{ f.name }}_guarded(i: u32, n: u32) -> {{ f.quad }} {
  if (i + 4u <= n) { return load4_{{ f.name }}(i); }
  var x = Item{{ f.bytes }}();
  var y = Item{{ f.bytes }}();
  var z = Item{{ f.bytes }}();
  if (i < n) { x = load_{{ f.name }}(i); }
  if (i + 1u < n) { y = load_{{ f.name }}(i + 1u); }
  if (i + 2u < n) { z = load_{{ f.name }}(i + 2u); }
  return quad{{ f.bytes }}(x, y, z);
}
