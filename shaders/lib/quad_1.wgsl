// Items of 1 byte, and four of them as they lie in memory.
alias Item = u32;
alias Quad = u32;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return x | (y << 8u) | (z << 16u) | (w << 24u); }
