// Compensated sums of blocks, for floats and in a fixed order: every addition is a TwoSum, whose rounding error is summed
// as well (lib/pair.wgsl). Each workgroup writes the pair (sum, error) of a block of tiles. This is the first kernel of
// compensated reductions and scans.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

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
    let row_{{ r }} = items4(4u * (row + {{ r }}u * WORKGROUP_SIZE));  //$ for r in range(vecs)
    sums = add4(sums, row_{{ r }});  //$ for r in range(vecs)
  }
  return combine(
    combine(Acc(sums.sum.x, sums.error.x), Acc(sums.sum.y, sums.error.y)),
    combine(Acc(sums.sum.z, sums.error.z), Acc(sums.sum.w, sums.error.w)),
  );
}

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let total = wg_scan(own_total(block)).total;
  if (local == 0u) {
    store_output(2u * block, bitcast<u32>(total.sum));
    store_output(2u * block + 1u, bitcast<u32>(total.error));
  }
}
