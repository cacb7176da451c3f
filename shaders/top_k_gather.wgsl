// The values and indices of the first k items in the order that a sort found.
// Forward progress: no workgroup waits for another. Bindings: params, input{{ ", list" if listed }}, order, values, indices.

struct Params {
  n: u32,  // items of the input
//$ include "lib/params_counted.wgsl"
  k: u32,
//$ if listed
  group_log2: u32,  // of the size of a listed group
//$ endif
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
  let e = workgroup_index(workgroup, grid) * WORKGROUP_SIZE + local;
  if (e >= params.k) { return; }
//$ if counted
  // Items that do not count are behind all others, or not sorted at all.
  if (e >= {{ used.n }}) {
    store_indices(e, 0xffffffffu);
    store_values(e, Key());
    return;
  }
//$ endif
  let i = {{ "place_of(load_order(e))" if listed else "load_order(e)" }};
  store_indices(e, i);
  store_values(e, load_input(i));
}
