// Compensated prefix sums of floats in a fixed order (lib/pair.wgsl). reduce_compensated.wgsl leaves the pairs of the
// blocks, one workgroup of this kernel scans them (`pairs`, exclusive), and then each workgroup scans a block of tiles
// with its pair as carry. Each item is read twice and written once.
// Source: as scan.wgsl.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both), carries.
//$ include "lib/bindings.wgsl"
//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"

//$ set operand = "input" if pairs else "carries"
fn pair(i: u32) -> Acc {
  return Acc(bitcast<f32>(load_{{ operand }}(2u * i)), bitcast<f32>(load_{{ operand }}(2u * i + 1u)));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
//$ if pairs
  enter(lanes);
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = local * each;
  let end = min(first + each, params.blocks);
  var own = identity();
  for (var i = first; i < end; i++) { own = combine(own, pair(i)); }
  var running = wg_scan(own).before;
  for (var i = first; i < end; i++) {
    store_output(2u * i, bitcast<u32>(running.sum));
    store_output(2u * i + 1u, bitcast<u32>(running.error));
    running = combine(running, pair(i));
  }
//$ else
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  enter(lanes);
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
  var carry = pair(block);
  for (var tile = first; tile < end; tile++) {
    let start = 4u * VECS * (tile * WORKGROUP_SIZE + local);
    var own = identity();
//$ for r in range(vecs)
    let row_{{ r }} = items4(start + {{ 4 * r }}u);
//$ for c in "xyzw"
    own = add(own, row_{{ r }}.{{ c }});
//$ endfor
//$ endfor
    let sum = wg_scan(own);
    var running = combine(carry, sum.before);
    var words: vec4<u32>;
//$ for r in range(vecs)
//$ for c in "xyzw"
//$ if exclusive
    words.{{ c }} = result(running);
    running = add(running, row_{{ r }}.{{ c }});
//$ else
    running = add(running, row_{{ r }}.{{ c }});
    words.{{ c }} = result(running);
//$ endif
//$ endfor
    store4_guarded(start + {{ 4 * r }}u, words);
//$ endfor
    carry = combine(carry, sum.total);
  }
//$ endif
}
//$ if not pairs

fn store4_guarded(i: u32, words: vec4<u32>) {
  if (i + 4u <= params.n) {
    store4_output(i, words);
  } else {
    if (i < params.n) { store_output(i, words.x); }
    if (i + 1u < params.n) { store_output(i + 1u, words.y); }
    if (i + 2u < params.n) { store_output(i + 2u, words.z); }
  }
}
//$ endif
