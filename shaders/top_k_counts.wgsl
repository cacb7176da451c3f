// How many items of each segment are chosen: as many as are asked for, but no more than it has, or than one workgroup chooses.
// Forward progress: no workgroup waits for another. Bindings: params, ks, offsets, counts.

struct Params {
  n: u32,  // items of all segments
//$ include "lib/params_counted.wgsl"
  segments: u32,
  most: u32,
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
override WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let s = workgroup_index(workgroup, grid) * WORKGROUP_SIZE + local;
  if (s > params.segments) { return; }
  if (s == params.segments) { store_counts(s, 0u); return; }
  let end = min(load_offsets(s + 1u), {{ used.n }});
  store_counts(s, min(min(load_ks(s), params.most), end - min(load_offsets(s), end)));
}
