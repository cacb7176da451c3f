// Combines the totals of the blocks of all windows, in order, in one workgroup; each invocation takes a few consecutive ones.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.

struct Params {
  n: u32,  // items of the window
  blocks: u32,  // totals
  flags: u32,  // sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY
//$ include "lib/params_operator.wgsl"
  input_offset: u32,
  {{ fields.output }}
}
{{ bindings }}
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ if source is not defined
//$ set raw, raw_written = ["input"], []
//$ include "lib/accumulators.wgsl"
//$ endif

fn combine_totals() -> Acc {
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = (sg_id * sg_size + sg_lane) * each;
  let end = min(first + each, params.blocks);
  var sum = identity();
  for (var i = first; i < end; i++) { sum = combine(sum, load_acc_input(i)); }
  return wg_scan{{ kinds[-1].suffix }}(sg_reduce{{ kinds[-1].suffix }}(sum)).total;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  enter(lanes);
  let whole = combine_totals();
  if (local == 0u) { put(0u, whole); }
}
