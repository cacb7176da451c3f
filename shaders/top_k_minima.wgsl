// The smallest code of each group of consecutive items. The k groups with the smallest minima, of equal ones the first, hold
// the k items that win: each of these groups has an item that comes before every item of the groups left out.
// Source: Gaihre, Zheng, Weitze, Li, Song, Ding, Li, Liu, "Dr. Top-k: delegate-centric top-k on GPUs" (2021).
// Several invocations, its lanes, read a group, row by row, and combine their minima in workgroup memory once a block.
// Forward progress: no workgroup waits for another. Bindings: params, input{{ ", list" if listed }}, minima.
// Params: n (items of the {{ "input" if listed else "window" }}); blocks (workgroups that have work); groups (groups
// to find the minimum of); lanes_log2 (of the lanes of a group); steps (in which these read it); tiles (of a block,
// at most TILES: a lane has a group of each); group_log2 (of the size of a listed group).

//$ include "lib/top_k_items.wgsl"
const TILES: u32 = {{ tiles }}u;

var<workgroup> minima: array<Key, TILES * {{ workgroup_size }}u>;

//$ include "lib/top_k_step.wgsl"
// The minimum of a lane's items of a group.
fn lane_minimum(group: u32, lane: u32) -> Key {
  if (group >= params.groups) { return NO_CODE; }
  let row_items = 4u << params.lanes_log2;
  let step_items = ROWS * row_items;
//$ if listed
  let first = place_of(group * params.steps * step_items) + 4u * lane;
//$ else
  let first = group * params.steps * step_items + 4u * lane;
//$ endif
  var found = NO_CODE;
  for (var s = 0u; s < params.steps; s++) { found = least(found, step_minimum(first + s * step_items, row_items)); }
  return found;
}

fn run(block: u32, local: u32) {
  let lanes = 1u << params.lanes_log2;
  let lane = local & (lanes - 1u);
  let tile_groups = WORKGROUP_SIZE >> params.lanes_log2;
  let first_group = block * params.tiles * tile_groups;
  for (var t = 0u; t < params.tiles; t++) {
    minima[t * WORKGROUP_SIZE + local] = lane_minimum(first_group + t * tile_groups + (local >> params.lanes_log2), lane);
  }
  for (var d = lanes / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if (lane < d) {
      for (var t = 0u; t < params.tiles; t++) {
        let at = t * WORKGROUP_SIZE + local;
        minima[at] = least(minima[at], minima[at + d]);
      }
    }
  }
  workgroupBarrier();
  for (var g = local; g < params.tiles * tile_groups; g += WORKGROUP_SIZE) {
    if (first_group + g < params.groups) { store_minima(first_group + g, minima[g * lanes]); }
  }
}
