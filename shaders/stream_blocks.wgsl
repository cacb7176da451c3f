// Writes what the items of blocks of consecutive tiles give, from what comes before each block: the last of three
// dispatches where look-back is not safe; see stream_count.wgsl.
// Forward progress: no workgroup waits for another. Bindings: params, inputs, outputs, block_carries, and carries.
// Params: as of stream_lookback.wgsl.

//$ include "lib/stream_acc.wgsl"
//$ set raw, raw_written = ["block_carries"], []
//$ include "lib/accumulators.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/window_tiles.wgsl"
//$ include "lib/stream_marks.wgsl"
//$ include "lib/stream_tile.wgsl"
//$ include "lib/stream_carry.wgsl"
//$ include "lib/stream_places_of_" ~ places_of ~ ".wgsl"
//$ include "lib/stream_emit_" ~ emission ~ ".wgsl"

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, used_tiles());
  var before = load_acc_block_carries(block);
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    let count = tile_count(tile);
    tile_rank();
    if (local == 0u) { announce_total(count.total); }
    stage_first(tile, count);
    emit_tile(tile, before, count);
    before = combine(before, from_window(count.total));
  }
}
