// Exclusive scan of the pairs (sum, error) of blocks, in one workgroup: the carry of each block.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one for both).
// Params: n (items of the window); first (item of the window); capacity (items of the window that there is room
// for); max_blocks; blocks (pairs); flags (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/pair.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/used_blocks.wgsl"

fn pair(i: u32) -> Acc {
  return Acc(bitcast<f32>(load_input(2u * i)), bitcast<f32>(load_input(2u * i + 1u)));
}

fn run(lanes: Lanes) {
  enter(lanes);
  let each = ({{ used.blocks }} + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = local * each;
  let end = min(first + each, {{ used.blocks }});
  var own = identity();
  for (var i = first; i < end; i++) { own = combine(own, pair(i)); }
//$ if has_initial
  var running = combine(pair(params.blocks), wg_scan(own).before);  // the pair behind all is the value to start from
//$ else
  var running = wg_scan(own).before;
//$ endif
  for (var i = first; i < end; i++) {
    store_output(2u * i, bitcast<u32>(running.sum));
    store_output(2u * i + 1u, bitcast<u32>(running.error));
    running = combine(running, pair(i));
  }
}
