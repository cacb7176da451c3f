// Turns the counts of one digit, by bin and block, into the start of each block's run in each bin. One workgroup per bin.
// Forward progress: no workgroup waits for another. Bindings: params, routes, counts, offsets.

struct Params {
  n: u32,  // keys
  route_index: u32,  // index of this digit in the routes
  bins_index: u32,  // index of its first bin in the routes
  tiles: u32,
  digit: u32,
  blocks: u32,
  tiles_per_block: u32,
  block_items: u32,
  identity_bits: u32,
  routes_offset: u32,
  counts_offset: u32,
  offsets_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_scan.wgsl"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let bin = workgroup_index(workgroup, grid);
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
