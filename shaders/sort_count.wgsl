// Counts one digit of all keys, for each block of tiles, in sorts without look-back. sort_offsets.wgsl turns the counts into
// offsets.
// Forward progress: no workgroup waits for another. Bindings: params, keys in three places, routes, counts.

struct Params {
  n: u32,  // keys
//$ include "lib/params_counted.wgsl"
  route_index: u32,  // index of this digit in the routes
  bins_index: u32,
  tiles: u32,
  blocks: u32,
  tiles_per_block: u32,
  block_items: u32,
  digit_0: u32,  // shift, width and word: see lib/sort_key.wgsl
  identity_bits: u32,
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_scan.wgsl"
//$ include "lib/sort_counters.wgsl"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup_index(workgroup, grid);
  let place = load_routes(params.route_index) & 3u;
  if (block >= params.blocks || place == 0u) { return; }
  count_begin(lanes);
  let first = block * params.block_items;
  let end = min({{ used.n }}, first + params.block_items);
//$ for place in places
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) { count_range_{{ place }}(first, end); }
//$ endfor
  if (lane < BINS) { store_counts(lane * params.blocks + block, totals[0]); }
}
