// Items of 8 bytes, and four of them as they lie in memory.
alias Item = vec2<u32>;
alias Quad = array<vec4<u32>, 2>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(vec4<u32>(x, y), vec4<u32>(z, w)); }
