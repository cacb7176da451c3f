// Adds up the counts of each bin over a group of tiles.
// Forward progress: no workgroup waits for another. Bindings: params, counts, totals{{ "" if fixed else ", list" }}.

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
  let end = min((group + 1u) * params.group_tiles, params.tiles);
  var total = 0u;
  for (var t = group * params.group_tiles; t < end; t++) { total += load_counts(t * BINS + bin); }
  store_totals(group * BINS + bin, total);
}
