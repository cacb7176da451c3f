// Compensated sum of floats in a fixed order: every addition is a TwoSum, whose rounding error is summed beside it and
// added at the end (lib/pair.wgsl). Two dispatches of this file: each workgroup leaves the pair (sum, error) of a block of
// tiles; then one workgroup adds up the pairs (`pairs`). A scan uses the first of them.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both).
//$ include "lib/bindings.wgsl"
//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"

//$ if pairs
fn own_total() -> Acc {
  var total = identity();
  for (var i = local; i < params.blocks; i += WORKGROUP_SIZE) {
    total = combine(total, Acc(bitcast<f32>(load_input(2u * i)), bitcast<f32>(load_input(2u * i + 1u))));
  }
  return total;
}
//$ else
// Any order will do, if it is fixed: here neighbouring invocations read neighbouring items.
fn own_total(block: u32) -> Acc {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
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
//$ endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
//$ if pairs
  enter(lanes);
  let total = wg_scan(own_total()).total;
  if (local == 0u) { store_output(0u, result(total)); }
//$ else
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  enter(lanes);
  let total = wg_scan(own_total(block)).total;
  if (local == 0u) {
    store_output(2u * block, bitcast<u32>(total.sum));
    store_output(2u * block + 1u, bitcast<u32>(total.error));
  }
//$ endif
}
