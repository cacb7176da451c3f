// output[bins[r]] = results[r] for each run r of items of one bin. Runs of items in no bin come last, and are left out. Or, before
// that, output[k] = the result of no items.
// Forward progress: no workgroup waits for another. Bindings: params, {{ fields | join(", ") }}.

struct Params {
  n: u32,  // entries
  blocks: u32,  // workgroups that have work
//$ if fills
  word_0: u32,  // the result of no items
  word_1: u32,
//$ else
  bins: u32,
//$ endif
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
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  let k = block * WORKGROUP_SIZE + local;
//$ if fills
  if (k < params.n) { store_output(k, {{ "vec2<u32>(params.word_0, params.word_1)" if words == 2 else "params.word_0" }}); }
//$ else
  if (k < min(params.n, load_count(0u))) {
    let bin = load_keys(k);
    if (bin < params.bins) { store_output(bin, load_results(k)); }
  }
//$ endif
}
