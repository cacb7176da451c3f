// Counts one digit of all keys, for each block of tiles, in sorts without look-back. sort_offsets.wgsl turns the counts into
// offsets.
// Forward progress: no workgroup waits for another. Bindings: params, keys in three places, routes, counts.
// Params: n (keys); route_index (index of this digit in the routes); bins_index; tiles; blocks; tiles_per_block;
// block_items; digit_0 (shift, width and word: see lib/sort_key.wgsl).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_scan.wgsl"
//$ include "lib/sort_counters.wgsl"

fn run(block: u32, lanes: Lanes) {
  let place = load_routes(params.route_index) & 3u;
  if (place == 0u) { return; }
  count_begin(lanes);
  let first = block * params.block_items;
  let end = min({{ used.n }}, first + params.block_items);
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) { count_range_{{ place }}(first, end); }  //$ for place in places
  if (lane < BINS) { store_counts(lane * params.blocks + block, totals[0]); }
}
