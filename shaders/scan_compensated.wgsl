// Compensated prefix sums of floats in a fixed order (lib/pair.wgsl): each workgroup scans a block of tiles, with the pair of
// all blocks before it as carry. reduce_compensated.wgsl writes the pairs of the blocks, scan_compensated_totals.wgsl scans
// them. Each item is read twice and written once.
// Source: that of scan.wgsl.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both), carries.

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
  carries_offset: u32,
  {{ fields.output }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/tail.wgsl"

fn pair(i: u32) -> Acc {
  return Acc(bitcast<f32>(load_carries(2u * i)), bitcast<f32>(load_carries(2u * i + 1u)));
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
  let first = block * {{ used.tiles_per_block }};
  let end = min(first + {{ used.tiles_per_block }}, {{ used.tiles }});
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
}
