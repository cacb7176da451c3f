// Compensated sums of blocks, for floats and in a fixed order: every addition is a TwoSum, whose rounding error is summed
// as well (lib/pair.wgsl). Each workgroup writes the pair (sum, error) of a block of tiles. This is the first kernel of
// compensated reductions and scans.
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
  identity_bits: u32,
  zero: u32,  // 0, unknown to the compiler: see lib/seal.wgsl
  {{ fields.input }}
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/used_blocks.wgsl"

// Any fixed order is right; in this one neighbouring invocations read neighbouring items.
fn own_total(block: u32) -> Acc {
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
  var sums = Acc4(vec4<f32>(), vec4<f32>());
  for (var tile = first; tile < end; tile++) {
    let row = tile * VECS * WORKGROUP_SIZE + local;
//$ for r in range(vecs)
    let row_{{ r }} = items4(4u * (row + {{ r }}u * WORKGROUP_SIZE));
//$ endfor
//$ for r in range(vecs)
    sums = add4(sums, row_{{ r }});
//$ endfor
  }
  return combine(
    combine(Acc(sums.sum.x, sums.error.x), Acc(sums.sum.y, sums.error.y)),
    combine(Acc(sums.sum.z, sums.error.z), Acc(sums.sum.w, sums.error.w)),
  );
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  enter(lanes);
  let total = wg_scan(own_total(block)).total;
  if (local == 0u) {
    store_output(2u * block, bitcast<u32>(total.sum));
    store_output(2u * block + 1u, bitcast<u32>(total.error));
  }
}
