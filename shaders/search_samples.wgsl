// Samples of sorted keys for a search: of each group of 4, 16, 64, … keys the code of the last one. Level l has those of groups
// of 4^l keys; a higher level lies before a lower one, and each begins at a vec4.
// Forward progress: no workgroup waits for another. Bindings: params, sorted, samples.

struct Params {
  blocks: u32,  // workgroups that have work
  length: u32,  // keys
  levels: u32,
  samples_length: u32,
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/key_code.wgsl"
override WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  var group = block * WORKGROUP_SIZE + local;
  if (block >= params.blocks || group >= params.length >> 2u) { return; }
  let code = key_fixed(key_encode(load_sorted(4u * group + 3u)));
  var begin = params.samples_length;
  for (var level = 1u; level <= params.levels; level++) {
    begin -= ((params.length >> (2u * level)) + 3u) & ~3u;
    store_samples(begin + group, code);
    // The last of four groups ends the group above them.
    if ((group & 3u) != 3u) { return; }
    group >>= 2u;
  }
}
