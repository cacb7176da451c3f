// Counts the marked items of blocks of consecutive tiles: the first of three dispatches where look-back is not safe.
// stream_totals.wgsl turns the counts into what comes before each block, and stream_blocks.wgsl writes.
// Forward progress: no workgroup waits for another. Bindings: params, the inputs that mark, block_totals, and carries.
// Params: as of stream_lookback.wgsl.

//$ include "lib/stream_acc.wgsl"
//$ set raw, raw_written = [], ["block_totals"]
//$ include "lib/accumulators.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/window_tiles.wgsl"
//$ include "lib/stream_marks.wgsl"
//$ include "lib/stream_carry.wgsl"

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let first = block * params.tiles_per_block;
  // A block without items has a total, too: 0.
  let end = min(first + params.tiles_per_block, used_tiles());
  var total = identity();
  for (var tile = first; tile < end; tile++) { total = combine(total, tile_total(tile)); }
  if (local == 0u) { store_acc_block_totals(block, total); }
}
