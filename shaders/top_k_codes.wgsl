// The codes of all items of the listed groups.
// Forward progress: no workgroup waits for another. Bindings: params, input, list, codes.

struct Params {
  n: u32,  // items of the input
//$ include "lib/params_counted.wgsl"
  length: u32,  // items of all listed groups
  group_log2: u32,  // of the size of a group
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/top_k_items.wgsl"
override WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let j = workgroup_index(workgroup, grid) * WORKGROUP_SIZE + local;
  if (j >= params.length) { return; }
  let i = place_of(j);
  if (i < {{ used.n }}) { store_codes(j, code_of(load_input(i))); } else { store_codes(j, NO_CODE); }
}
