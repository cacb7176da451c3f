// Counts one digit of the keys of each tile of the long segments.
// Forward progress: no workgroup waits for another. Bindings: params, keys, counts{{ "" if fixed else ", list" }}.
// Params: n (items); tiles; workgroups; tile_items; length (of each segment); segment_tiles; digit (shift, width and
// word: see lib/segment_key.wgsl).

//$ include "lib/segment_key.wgsl"
//$ include "lib/long_tile.wgsl"
// Several copies, so that lanes with equal digits collide less often.
const COPIES: u32 = {{ copies }}u;
var<workgroup> counters: array<atomic<u32>, COPIES * BINS>;

fn run(workgroup_number: u32, local: u32) {
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
      total += atomicLoad(&counters[{{ c }}u * BINS + bin]);  //$ for c in range(copies)
      store_counts(t * BINS + bin, total);
    }
    workgroupBarrier();
  }
}
