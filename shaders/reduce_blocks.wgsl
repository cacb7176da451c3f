// The totals of blocks: each workgroup combines a block of consecutive tiles into one item of the output. This is the first
// kernel of reduce-then-scan, and of a reduction in windows.
// Source: Blelloch, "Prefix sums and their applications" (1990).
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/block_total.wgsl"
//$ set finished = "finished(%s)" if partial is defined and partial == "moments" else "%s"

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let total = block_total(block);
  if (local == 0u) { put(block, {{ finished % "total" }}); }
}
