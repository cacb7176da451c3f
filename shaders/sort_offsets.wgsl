// Turns the counts of one digit, by bin and block, into the start of each block's run in each bin. One workgroup per bin.
// Forward progress: no workgroup waits for another. Bindings: params, routes, counts, offsets.
// Params: n (keys); route_index (index of this digit in the routes); bins_index (index of its first bin in the
// routes); tiles; digit; blocks; tiles_per_block; block_items.

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_scan.wgsl"

fn run(bin: u32, lanes: Lanes) {
  if (bin >= {{ constants.BINS }}u || load_routes(params.route_index) == 0u) { return; }
  enter(lanes);
  var carry = load_routes(params.bins_index + bin);
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    let block = first + sg_id * sg_size + sg_lane;
    var count = 0u;
    if (block < params.blocks) { count = load_counts(bin * params.blocks + block); }
    let counts = wg_exclusive(count);
    if (block < params.blocks) { store_offsets(bin * params.blocks + block, carry + counts.before); }
    carry += counts.total;
  }
}
