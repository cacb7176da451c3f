// A pass of a radix sort: moves every key to the bin of its digit; keys of one bin keep their order.
// Each workgroup does a block of tiles, one after the other. It counts the digits of a tile, ranks its keys, puts them in
// order in workgroup memory, and writes them to a run per bin in the output. sort_offsets.wgsl says where the runs begin.
// Forward progress: no workgroup waits for another.
// Bindings: params, keys (and values) in three places, routes, offsets.
// Params: n (keys); route_index (index of this digit in the routes); bins_index; tiles; digit; blocks;
// tiles_per_block.

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_rank.wgsl"
//$ include "lib/sort_items.wgsl"
//$ include "lib/sort_write.wgsl"

//$ if counted
fn used_tiles() -> u32 { return (item_count() + TILE - 1u) / TILE; }

//$ endif
fn run(block: u32, lanes: Lanes) {
  let route = load_routes(params.route_index);
  if (route == 0u) { return; }
  rank_enter(lanes);
  use_digit(params.digit);
  var next = 0u;
  if (lane < BINS) { next = load_offsets(lane * params.blocks + block); }
  let end = min((block + 1u) * params.tiles_per_block, {{ "used_tiles()" if counted else "params.tiles" }});
  for (var tile = block * params.tiles_per_block; tile < end; tile++) {
    read_codes(tile, route & 3u);
    let count = tile_count();
    let first = wg_exclusive(count).before;
    tile_rank(first);
    if (lane < BINS) { atomicStore(&run_offsets[lane], next - first); }
    next += count;
    stage_keys(0u);
    tile_write(tile, route);
    workgroupBarrier();
  }
}
