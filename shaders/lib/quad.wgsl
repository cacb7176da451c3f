// Items of the output, and four of them as they lie in memory.
//$ if sink.bytes == 8
alias Item = vec2<u32>;
alias Quad = array<vec4<u32>, 2>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(vec4<u32>(x, y), vec4<u32>(z, w)); }
//$ else
alias Item = u32;
//$ if sink.bytes == 4
alias Quad = vec4<u32>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(x, y, z, w); }
//$ elif sink.bytes == 2
alias Quad = vec2<u32>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(x | (y << 16u), z | (w << 16u)); }
//$ else
alias Quad = u32;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return x | (y << 8u) | (z << 16u) | (w << 24u); }
//$ endif
//$ endif
