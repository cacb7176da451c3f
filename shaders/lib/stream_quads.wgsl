// Four consecutive items as they are loaded, a quad, by the size of an item in bytes. Leaves behind for each size the type of an
// item, the quad of three items and 0, and item j of a quad; j is a constant wherever it is called.
alias Item1 = u32;
alias Item2 = u32;
alias Item4 = u32;
alias Item8 = vec2<u32>;
fn quad1(x: Item1, y: Item1, z: Item1) -> u32 { return x | (y << 8u) | (z << 16u); }
fn quad2(x: Item2, y: Item2, z: Item2) -> vec2<u32> { return vec2<u32>(x | (y << 16u), z); }
fn quad4(x: Item4, y: Item4, z: Item4) -> vec4<u32> { return vec4<u32>(x, y, z, 0u); }
// The array has no name of its own: naga would take it for another type than that of the loads.
fn quad8(x: Item8, y: Item8, z: Item8) -> array<vec4<u32>, 2> {
  return array<vec4<u32>, 2>(vec4<u32>(x, y), vec4<u32>(z, 0u, 0u));
}
fn item1(quad: u32, j: u32) -> Item1 { return (quad >> (8u * j)) & 0xffu; }
fn item2(quad: vec2<u32>, j: u32) -> Item2 { return (quad[j >> 1u] >> (16u * (j & 1u))) & 0xffffu; }
fn item4(quad: vec4<u32>, j: u32) -> Item4 { return quad[j]; }
fn item8(quad: array<vec4<u32>, 2>, j: u32) -> Item8 {
  let pair = select(quad[0], quad[1], j >= 2u);
  return select(pair.xy, pair.zw, (j & 1u) == 1u);
}
