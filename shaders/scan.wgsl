// Scan of blocks: each workgroup scans a block of consecutive tiles, one after another, from a carry.
// Reduce-then-scan is three dispatches: reduce_blocks.wgsl writes the blocks' totals, one workgroup of this kernel scans
// them (exclusive), and this kernel scans the blocks from these carries. Each item is read twice and written once.
// A small input is one block without a carry.
// Source: Blelloch, "Prefix sums and their applications" (1990); the name is from Merrill and Grimshaw (2009).
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both), carries.
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/tile_scan.wgsl"
//$ set raw, raw_written = ["carries"], []
//$ include "lib/accumulators.wgsl"

const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
  var carry = identity();
  if ((params.flags & HAS_CARRY) != 0u) { carry = load_acc_carries(block); }
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    let sum = tile_sum();
//$ if local
    tile_scan(sum.before);
    tile_store(tile, carry);
    carry = combine(carry, global_of(sum.total));
//$ else
    tile_scan(combine(carry, sum.before));
    tile_store(tile, identity());
    carry = combine(carry, sum.total);
//$ endif
  }
}
