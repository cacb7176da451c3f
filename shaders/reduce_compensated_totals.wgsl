// Adds the pairs (sum, error) that reduce_compensated.wgsl wrote, in one workgroup, and writes the total of sum and error.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the window); first (item of the window); capacity (items of the window that there is room
// for); max_blocks; blocks (pairs); flags (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/used_blocks.wgsl"

fn own_total() -> Acc {
  var total = identity();
  for (var i = local; i < {{ used.blocks }}; i += WORKGROUP_SIZE) {
    total = combine(total, Acc(bitcast<f32>(load_input(2u * i)), bitcast<f32>(load_input(2u * i + 1u))));
  }
  return total;
}

fn run(lanes: Lanes) {
  enter(lanes);
  let total = wg_scan(own_total()).total;
  if (local == 0u) { store_output(0u, result(total)); }
}
