// places[i] = the bin of item i, or NO_BIN; so that items can be sorted by bins; and their values, if asked for.
// Forward progress: no workgroup waits for another. Bindings: params, {{ fields | join(", ") }}.

struct Params {
  n: u32,  // items of the window
//$ include "lib/params_counted.wgsl"
  blocks: u32,  // workgroups that have work
//$ for name in bin_fields
  {{ name }}: u32,
//$ endfor
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
const VECS: u32 = {{ vecs }}u;
//$ include "lib/bins.wgsl"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  bins_begin(local);
  workgroupBarrier();
  for (var r = 0u; r < 4u * VECS; r++) {
    let i = (block * 4u * VECS + r) * WORKGROUP_SIZE + local;
    if (i >= {{ "params.capacity" if counted else "params.n" }}) { break; }
    var bin = bin_at(i);
    if (i >= {{ used.n }}) { bin = NO_BIN; }
    store_places(i, bin);
//$ if copies_values
    store_values(i, load_{{ copies_values }}(i));
//$ endif
  }
}
