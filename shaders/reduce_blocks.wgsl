// The totals of blocks: each workgroup combines a block of consecutive tiles into one item of the output. This is the first
// kernel of reduce-then-scan, and of a reduction in windows.
// Source: Blelloch, "Prefix sums and their applications" (1990).
// Forward progress: no workgroup waits for another. Bindings: params, input, output.

struct Params {
  n: u32,  // items of the window
//$ include "lib/params_counted.wgsl"
//$ if counted
  max_blocks: u32,
//$ else
  tiles: u32,
  tiles_per_block: u32,
//$ endif
  blocks: u32,  // workgroups that have work
  flags: u32,  // sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY
//$ include "lib/params_operator.wgsl"
  {{ fields.input }}
  {{ fields.output }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/reduce_block.wgsl"
//$ set finished = "finished(%s)" if partial is defined and partial == "moments" else "%s"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  enter(lanes);
  let total = block_total(block);
  if (local == 0u) { put(block, {{ finished % "total" }}); }
}
