// Loads four items of {{ f.name }}, of which those from item n on are 0.
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
