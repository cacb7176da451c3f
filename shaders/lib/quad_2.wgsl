// Items of 2 bytes, and four of them as they lie in memory.
alias Item = u32;
alias Quad = vec2<u32>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(x | (y << 16u), z | (w << 16u)); }
