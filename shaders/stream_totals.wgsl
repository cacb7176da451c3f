// From the counts of blocks to what comes before each of them, by one workgroup; it also ends the window.
// Forward progress: no workgroup waits for another. Bindings: params, block_totals, block_carries, the outputs that end a
// window, and carries. Params: as of stream_lookback.wgsl.

//$ include "lib/stream_acc.wgsl"
//$ set raw, raw_written = ["block_totals"], ["block_carries"]
//$ include "lib/accumulators.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/window_tiles.wgsl"
//$ include "lib/stream_carry.wgsl"
//$ include "lib/stream_end.wgsl"

fn run(lanes: Lanes) {
  enter(lanes);
  var before = identity();
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    let block = first + sg_id * sg_size + sg_lane;
    var total = identity();
    if (block < params.blocks) { total = load_acc_block_totals(block); }
    let lanes_before = sg_scan(total);
    let sums = wg_scan(sg_last(lanes_before.inclusive));
    if (block < params.blocks) {
      store_acc_block_carries(block, carried_before(combine(before, combine(sums.before, lanes_before.exclusive))));
    }
    before = combine(before, sums.total);
  }
  if (local == 0u) { emit_end(before); }
}
