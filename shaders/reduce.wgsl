// Reduce in one dispatch: each workgroup combines a block of consecutive tiles and publishes its total. The last workgroup
// to finish combines the totals. Which invocation combines which items is fixed, so a result is the same in every run. A
// single block publishes nothing.
// Source: the last block's final step is that of the sample threadFenceReduction in NVIDIA's CUDA toolkit; here a total
// and its ready flag are one word, so no fence is needed.
// Forward progress: no workgroup waits for another. The last one to finish knows that all totals were published, but WGSL
// does not promise that it sees them at once. It recomputes a block whose total it has not seen after SPIN_LIMIT polls.
// Bindings: params, input, output, and control and states for the totals.
//$ if counted
// The GPU knows how many items there are: blocks behind them have none, publish the identity, and count as finished, since
// the epoch relies on every block publishing in every dispatch.
//$ endif
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/used_blocks.wgsl"
//$ include "lib/block_total_" ~ block_total ~ ".wgsl"
//$ set finished = "finished(%s)" if partial is defined and partial == "moments" else "%s"
//$ include "lib/state.wgsl"

//$ include "lib/combine_published.wgsl"
var<workgroup> last_to_finish: u32;

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  // Read before this workgroup counts as finished: the last one to finish increments the epoch.
  if (params.blocks > 1u) { state_begin(); }
  let total = block_total(block);
  if (params.blocks > 1u) {
    if (is_leader()) {
      state_publish(block, TOTAL, total);
      last_to_finish = select(0u, 1u, state_count_finished(params.blocks));
    }
//$ if counted
    // A single block is combined with nothing, as in an array of that length. The other blocks have read no item.
    if (block == 0u && used_blocks() <= 1u && local == 0u) { put(0u, {{ finished % "total" }}); }
//$ endif
    if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }
//$ if counted
    if (used_blocks() <= 1u) {
      if (is_leader()) { state_next_epoch(); }
      return;
    }
//$ endif
    let whole = combine_published(0u, {{ used.blocks }});
    if (is_leader()) {
      state_next_epoch();
      put(0u, {{ finished % "whole" }});
    }
    return;
  }
  if (local == 0u) { put(block, {{ finished % "total" }}); }
}
