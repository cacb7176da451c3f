// Compensated prefix sums of floats in a fixed order (lib/pair.wgsl): each workgroup scans a block of tiles, with the pair of
// all blocks before it as carry. reduce_compensated.wgsl writes the pairs of the blocks, scan_compensated_totals.wgsl scans
// them. Each item is read twice and written once.
// Source: that of scan.wgsl.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both), carries.
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/tail.wgsl"

fn pair(i: u32) -> Acc {
  return Acc(bitcast<f32>(load_carries(2u * i)), bitcast<f32>(load_carries(2u * i + 1u)));
}

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
  var carry = pair(block);
  for (var tile = first; tile < end; tile++) {
    let start = 4u * VECS * (tile * WORKGROUP_SIZE + local);
    var own = identity();
//$ for r in range(vecs)
    let row_{{ r }} = items4(start + {{ 4 * r }}u);
    own = add(own, row_{{ r }}.{{ c }});  //$ for c in "xyzw"
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
}
