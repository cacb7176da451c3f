// Adds the pairs (sum, error) that reduce_compensated.wgsl wrote, in one workgroup, and writes the total of sum and error.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.

struct Params {
  n: u32,  // items of the window
//$ if counted
  first: u32,  // item of the window
  capacity: u32,  // items of the window that there is room for
  max_blocks: u32,
//$ endif
  blocks: u32,  // pairs
  flags: u32,  // sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY
  identity_bits: u32,
  zero: u32,  // 0, unknown to the compiler: see lib/seal.wgsl
  input_offset: u32,
  {{ fields.output }}
}
{{ bindings }}
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

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  enter(lanes);
  let total = wg_scan(own_total()).total;
  if (local == 0u) { store_output(0u, result(total)); }
}
