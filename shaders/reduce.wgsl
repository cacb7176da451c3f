// Reduce in one dispatch: each workgroup combines a block of consecutive tiles and hands on its total. The last workgroup to
// finish writes the result. Which invocation combines which items is fixed, so a result is the same in every run. A single
// block hands on nothing. Forward progress: no workgroup waits for another.
//$ if sums is defined
// Sums of integers: one word holds the number of workgroups that have finished, and above it their sum, whose carries fall
// off. So whoever finds that it is the last one has the whole sum, too.
// Bindings: params, input, output, and states for that word, which is 0 between dispatches.
//$ else
// Source: the last block's final step is that of the sample threadFenceReduction in NVIDIA's CUDA toolkit; here a total
// and its ready flag are one word, so no fence is needed.
// The last one to finish knows that all totals were published, but WGSL does not promise that it sees them at once. It
// recomputes a block whose total it has not seen after SPIN_LIMIT polls.
// Bindings: params, input, output, and control and states for the totals.
//$ endif
//$ if counted
// The GPU knows how many items there are: blocks behind them have none. Their totals are the identity, and they count.
//$ endif
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/block_total.wgsl"
//$ set finished = "finished(%s)" if partial is defined and partial == "moments" else "%s"
//$ if sums is not defined
//$ include "lib/state.wgsl"

//$ include "lib/combine_published.wgsl"
var<workgroup> last_to_finish: u32;
//$ endif

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
//$ if sums is not defined
  // Read before this workgroup counts as finished: the last one to finish increments the epoch.
  if (params.blocks > 1u) { state_begin(); }
//$ endif
  var whole = block_total(block);
  if (params.blocks > 1u) {
//$ if sums is defined
    if (local != 0u) { return; }
    let before = atomicAdd(&states[0], (u64(pack(whole)) << 32u) | 1lu);
    if (u32(before & 0xfffffffflu) != params.blocks - 1u) { return; }
    whole = combine(whole, unpack(u32(before >> 32u)));
    atomicStore(&states[0], 0lu);
//$ else
    if (is_leader()) {
      state_publish(block, TOTAL, whole);
      last_to_finish = select(0u, 1u, state_count_finished(params.blocks));
    }
    if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }
    whole = combine_published(0u, {{ used.blocks }});
    if (is_leader()) { state_next_epoch(); }
//$ endif
  }
  if (local == 0u) { put(0u, {{ finished % "whole" }}); }
}
