// Samples of sorted keys for a search: of each group of 4, 16, 64, … keys the code of the last one. Level l has those of groups
// of 4^l keys; a higher level lies before a lower one, and each begins at a vec4.
// Forward progress: no workgroup waits for another. Bindings: params, sorted, samples.
// Params: blocks (workgroups that have work); length (keys); levels; samples_length.

//$ include "lib/key_code_" ~ key_words ~ ".wgsl"

fn run(block: u32, local: u32) {
  var group = block * WORKGROUP_SIZE + local;
  if (group >= params.length >> 2u) { return; }
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
