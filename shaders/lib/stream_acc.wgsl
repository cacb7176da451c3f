// What the tiles of a stream add up: {{ "the number of marked items" if words == 1 else "the numbers of items with the first and with the second mark" if not runs else "the number of heads, and the position of the last one, plus 1" }}.
//$ if words == 1
alias Acc = u32;
fn identity() -> Acc { return 0u; }
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
//$ else
alias Acc = vec2<u32>;
fn identity() -> Acc { return Acc(0u, 0u); }
//$ if runs
fn combine(a: Acc, b: Acc) -> Acc { return Acc(a.x + b.x, max(a.y, b.y)); }
//$ else
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
//$ endif
//$ endif
fn add(a: u32, b: u32) -> u32 { return a + b; }

// A tile: WORKGROUP_SIZE × VECS × 4 consecutive items.
const VECS: u32 = {{ vecs }}u;
fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// Items of this window: n may come from the GPU, and be any number.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }
// Tiles that have items; without any, tile 0 still writes the count.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
