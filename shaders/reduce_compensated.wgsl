// Compensated sum of floats in a fixed order: every addition is a TwoSum, whose rounding error is summed beside it and
// added at the end. Two dispatches of this file: each workgroup leaves the pair (sum, error) of a block of tiles; then
// one workgroup adds up the pairs (`pairs`).
// Sources: TwoSum is from Knuth, "The art of computer programming", volume 2, 4.2.2; the sum is Sum2 of Ogita, Rump and
// Oishi, "Accurate sum and dot product" (2005), here along a tree.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both).
//$ include "lib/bindings.wgsl"
//$ include "lib/seal.wgsl"
struct Acc { sum: f32, error: f32 }
struct Acc4 { sum: vec4<f32>, error: vec4<f32> }

//$ for suffix, kind in [("", "f32"), ("4", "vec4<f32>")]
// What rounding took from a + b, exactly, where s is the rounded sum.
fn rounding{{ suffix }}(a: {{ kind }}, b: {{ kind }}, s: {{ kind }}) -> {{ kind }} {
  let c = seal{{ suffix }}(s - a);
  return seal{{ suffix }}(seal{{ suffix }}(a - seal{{ suffix }}(s - c)) + seal{{ suffix }}(b - c));
}
//$ endfor

fn identity() -> Acc { return Acc(0.0, 0.0); }
fn combine(a: Acc, b: Acc) -> Acc {
  let sum = seal(a.sum + b.sum);
  return Acc(sum, seal(seal(a.error + b.error) + rounding(a.sum, b.sum, sum)));
}
fn add4(a: Acc4, x: vec4<f32>) -> Acc4 {
  let sum = seal4(a.sum + x);
  return Acc4(sum, seal4(a.error + rounding4(a.sum, x, sum)));
}

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
const VECS: u32 = {{ vecs }}u;

fn items4(i: u32) -> vec4<f32> {
  if (i + 4u <= params.n) { return bitcast<vec4<f32>>(load4_input(i)); }
  var words = vec4<u32>(0u);
  if (i < params.n) { words.x = load_input(i); }
  if (i + 1u < params.n) { words.y = load_input(i + 1u); }
  if (i + 2u < params.n) { words.z = load_input(i + 2u); }
  return bitcast<vec4<f32>>(words);
}

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
  if (local == 0u) {
    // An infinity or a NaN stays what plain additions made of it: its error is NaN.
    let exact = is_finite(total.sum) && is_finite(total.error);
    store_output(0u, settled(select(total.sum, seal(total.sum + total.error), exact)));
  }
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
