// Items of 4 bytes, and four of them as they lie in memory.
alias Item = u32;
alias Quad = vec4<u32>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(x, y, z, w); }
