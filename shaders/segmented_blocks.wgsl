// Segmented scan of blocks: each workgroup does a block of consecutive tiles, one after another.
// Forward progress: no workgroup waits for another. Bindings: params, the inputs, carries, the outputs.
// From the chain before the block, which segmented_carries.wgsl wrote, to the results.
// Source: Sengupta, Harris, Zhang and Owens, "Scan primitives for GPU computing" (2007).
// Params: n (items of this window and those before; the GPU may have counted them); first (item of the window);
// capacity (items of the window that there is room for); whole (items of the array, whatever a window has);
// max_blocks; blocks (workgroups); flags (sum of some of HAS_CARRY and MORE_FOLLOWS); size (runs that the outputs
// have room for); segments; search_steps.

//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segmented_subgroup.wgsl"
//$ include "lib/segmented_tile.wgsl"
//$ include "lib/emit_" ~ emission ~ ".wgsl"

//$ if carried
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;
//$ endif

//$ include "lib/segmented_blocks.wgsl"

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let first = block * tiles_per_block();
  let end = min(first + tiles_per_block(), used_tiles());
  var before = Chain(
    load_carries({{ 1 + acc.words }}u * block + {{ k }}u),  //$ for k in range(1 + acc.words)
  );
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    let sum = tile_scan();
    emit_closed(tile, sum);
    emit_open(tile, before, sum);
    before = chain_combine(before, sum.total);
  }
  if (local == 0u && first < end && end == used_tiles() && !more_follows()) { emit_end(before); }
}
