// The tiles of a window that have items; item_count() says how many items it has.
//$ include "lib/tile_layout.wgsl"
// Without any items tile 0 still writes what ends the window.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }
