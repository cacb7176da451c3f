// Adds up the counts of each bin over all earlier tiles, of whatever segment.
// Forward progress: no workgroup waits for another. Bindings: params, counts, totals, sums{{ "" if fixed else ", list" }}.

struct Params {
  tiles: u32,
  groups: u32,
  group_tiles: u32,
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
const BINS: u32 = {{ constants.BINS }}u;

@compute @workgroup_size({{ constants.BINS }})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) bin: u32,
) {
  let group = workgroup_index(workgroup, grid);
  if (group >= params.groups) { return; }
//$ if not fixed
  // A tile that is not used has no items, and no tile behind it is used.
  if (load_list(4u * group * params.group_tiles + 1u) == 0u) { return; }
//$ endif
  var before = 0u;
  for (var g = 0u; g < group; g++) { before += load_totals(g * BINS + bin); }
  let end = min((group + 1u) * params.group_tiles, params.tiles);
  for (var t = group * params.group_tiles; t < end; t++) {
    store_sums(t * BINS + bin, before);
    before += load_counts(t * BINS + bin);
  }
}
