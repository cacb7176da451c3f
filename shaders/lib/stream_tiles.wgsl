// The tiles of a stream's window.
//$ include "lib/tile_layout.wgsl"

// Items of this window: n may come from the GPU, and be any number.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }
// Tiles that have items; without any, tile 0 still writes what ends the window.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }
