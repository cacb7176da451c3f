// Counts one digit of the keys of each tile of the long segments.
// Forward progress: no workgroup waits for another. Bindings: params, keys, counts{{ "" if fixed else ", list" }}.

struct Params {
  n: u32,  // items
//$ include "lib/params_counted.wgsl"
  tiles: u32,
  workgroups: u32,
  tile_items: u32,
//$ if fixed
  length: u32,  // of each segment
  segment_tiles: u32,
//$ endif
  digit: u32,  // shift, width and word: see lib/segment_key.wgsl
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/segment_key.wgsl"
//$ include "lib/long_tile.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
// Several copies, so that lanes with equal digits collide less often.
const COPIES: u32 = {{ copies }}u;
var<workgroup> counters: array<atomic<u32>, COPIES * BINS>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let workgroup_number = workgroup_index(workgroup, grid);
  if (workgroup_number >= params.workgroups) { return; }
  use_digit(params.digit);
  for (var t = workgroup_number; t < params.tiles; t += params.workgroups) {
    let tile = long_tile(t);
//$ if not fixed
    // No tile behind it is used.
    if (tile.x >= tile.y) { break; }
//$ endif
    for (var i = local; i < COPIES * BINS; i += WORKGROUP_SIZE) { atomicStore(&counters[i], 0u); }
    workgroupBarrier();
    let copy = (local & (COPIES - 1u)) * BINS;
    for (var i = tile.x + local; i < tile.y; i += WORKGROUP_SIZE) {
      atomicAdd(&counters[copy + ranked_digit(key_encode(load_keys_input(i)))], 1u);
    }
    workgroupBarrier();
    for (var bin = local; bin < BINS; bin += WORKGROUP_SIZE) {
      var total = 0u;
//$ for c in range(copies)
      total += atomicLoad(&counters[{{ c }}u * BINS + bin]);
//$ endfor
      store_counts(t * BINS + bin, total);
    }
    workgroupBarrier();
  }
}
