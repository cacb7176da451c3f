// Combines the totals of the blocks of all windows, in order, in one workgroup; each invocation takes a few consecutive ones.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the window); blocks (totals); flags (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ if source is not defined
//$ set raw, raw_written = ["input"], []
//$ include "lib/accumulators.wgsl"
//$ endif

fn run(lanes: Lanes) {
  enter(lanes);
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = (sg_id * sg_size + sg_lane) * each;
  let end = min(first + each, params.blocks);
  var sum = identity();
  for (var i = first; i < end; i++) { sum = combine(sum, load_acc_input(i)); }
  let whole = wg_scan{{ kinds[-1].suffix }}(sg_reduce{{ kinds[-1].suffix }}(sum)).total;
  if (local == 0u) { put(0u, whole); }
}
