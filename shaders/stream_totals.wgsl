// From the counts of blocks to what comes before each of them, by one workgroup; it also ends the window.
// Forward progress: no workgroup waits for another. Bindings: params, block_totals, block_carries, the outputs that end a
// window, and carries.

//$ include "lib/stream_params.wgsl"
{{ bindings }}
//$ include "lib/stream_acc.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/stream_carry.wgsl"
//$ include "lib/stream_end.wgsl"

//$ set of = "" if words == 1 else "_acc"
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(lanes: Lanes) {
  enter(lanes);
  var before = identity();
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    let block = first + sg_id * sg_size + sg_lane;
    var total = identity();
    if (block < params.blocks) {
//$ if words == 1
      total = load_block_totals(block);
//$ else
      total = Acc(load_block_totals(2u * block), load_block_totals(2u * block + 1u));
//$ endif
    }
    let lanes_before = sg_scan{{ of }}(total);
    let sums = wg_scan{{ of }}(sg_last{{ of }}(lanes_before.inclusive));
    if (block < params.blocks) {
      let here = carried_before(combine(before, combine(sums.before, lanes_before.exclusive)));
//$ if words == 1
      store_block_carries(block, here);
//$ else
      store_block_carries(2u * block, here.x);
      store_block_carries(2u * block + 1u, here.y);
//$ endif
    }
    before = combine(before, sums.total);
  }
  if (local == 0u) { emit_end(before); }
}
