// Blocks of consecutive tiles. By the number of items that count, not by the room for them or by the window: results depend
// on the blocks.
fn tiles_per_block() -> u32 {
  let all = {{ "min(params.n, params.whole)" if counted else "params.whole" }};
  return max((((all + tile_size() - 1u) / tile_size()) + params.max_blocks - 1u) / params.max_blocks, 1u);
}
