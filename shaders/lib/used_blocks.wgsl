// The split of the items that count into blocks of tiles: that of an array with so many items.
//$ if counted
fn used_tiles() -> u32 { return (item_count() + 4u * VECS * WORKGROUP_SIZE - 1u) / (4u * VECS * WORKGROUP_SIZE); }
fn tiles_per_block() -> u32 { return max((used_tiles() + params.max_blocks - 1u) / params.max_blocks, 1u); }
fn used_blocks() -> u32 { return (used_tiles() + tiles_per_block() - 1u) / tiles_per_block(); }

//$ endif
