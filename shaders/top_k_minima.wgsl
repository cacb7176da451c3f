// The smallest code of each group of consecutive items. The k groups with the smallest minima, of equal ones the first, hold
// the k items that win: each of these groups has an item that comes before every item of the groups left out.
// Source: Gaihre, Zheng, Weitze, Li, Song, Ding, Li, Liu, "Dr. Top-k: delegate-centric top-k on GPUs" (2021).
// Several invocations, its lanes, read a group, row by row, and combine their minima in workgroup memory once a block.
// Forward progress: no workgroup waits for another. Bindings: params, input{{ ", list" if listed }}, minima.

struct Params {
  n: u32,  // items of the {{ "input" if listed else "window" }}
//$ if counted
  first: u32,  // item of the window
  capacity: u32,  // items of the window that there is room for
//$ endif
  blocks: u32,  // workgroups that have work
  groups: u32,  // groups to find the minimum of
  lanes_log2: u32,  // of the lanes of a group
//$ if listed
  group_log2: u32,  // of the size of a listed group
//$ endif
//$ for lines in fields.values()
  {{ lines }}
//$ endfor
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/top_k_items.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
const TILES: u32 = {{ tiles }}u;  // of a block
const ROWS: u32 = {{ rows }}u;  // vec4 of a lane

var<workgroup> minima: array<Key, TILES * {{ workgroup_size }}u>;

fn code_or_none(i: u32) -> Key {
  if (i >= {{ used.n }}) { return NO_CODE; }
  return code_of(load_input(i));
}
//$ if vec4
fn least_of_4(i: u32) -> Key {
  let items = load4_input(i);
  return least(least(code_of(items.x), code_of(items.y)), least(code_of(items.z), code_of(items.w)));
}
//$ else
fn least_of_4(i: u32) -> Key {
  return least(
    least(code_of(load_input(i)), code_of(load_input(i + 1u))), least(code_of(load_input(i + 2u)), code_of(load_input(i + 3u)))
  );
}
//$ endif
fn least_of_some(i: u32) -> Key {
  return least(
    least(code_or_none(i), code_or_none(i + 1u)), least(code_or_none(i + 2u), code_or_none(i + 3u))
  );
}
// The minimum of a lane's items of a group. Rows are written out, so that all loads are in flight together.
fn lane_minimum(group: u32, lane: u32) -> Key {
  if (group >= params.groups) { return NO_CODE; }
  let row_items = 4u << params.lanes_log2;
//$ if listed
  let first = place_of(group * ROWS * row_items) + 4u * lane;
//$ else
  let first = group * ROWS * row_items + 4u * lane;
//$ endif
  if (first + (ROWS - 1u) * row_items + 4u <= {{ used.n }}) {
//$ for r in range(rows)
    let row_{{ r }} = least_of_4(first + {{ r }}u * row_items);
//$ endfor
    var found = row_0;
//$ for r in range(1, rows)
    found = least(found, row_{{ r }});
//$ endfor
    return found;
  }
  var found = NO_CODE;
  for (var r = 0u; r < ROWS; r++) { found = least(found, least_of_some(first + r * row_items)); }
  return found;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  let lanes = 1u << params.lanes_log2;
  let lane = local & (lanes - 1u);
  let tile_groups = WORKGROUP_SIZE >> params.lanes_log2;
  let first_group = block * TILES * tile_groups;
  for (var t = 0u; t < TILES; t++) {
    minima[t * WORKGROUP_SIZE + local] = lane_minimum(first_group + t * tile_groups + (local >> params.lanes_log2), lane);
  }
  for (var d = lanes / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if (lane < d) {
      for (var t = 0u; t < TILES; t++) {
        let at = t * WORKGROUP_SIZE + local;
        minima[at] = least(minima[at], minima[at + d]);
      }
    }
  }
  workgroupBarrier();
  for (var g = local; g < TILES * tile_groups; g += WORKGROUP_SIZE) {
    if (first_group + g < params.groups) { store_minima(first_group + g, minima[g * lanes]); }
  }
}
