// Reduce in one dispatch: each workgroup combines a block of consecutive tiles and posts its total; the last one to
// finish combines the totals. Which invocation combines what is fixed, so a result is the same from run to run. A single
// block posts nothing. In phases, for a reduction in windows and for reduce-then-scan: `blocks` leaves the totals of the
// blocks as its output, and one workgroup of `totals` combines such totals as the last one to finish would.
// Source: the last block's final step is that of the sample threadFenceReduction in NVIDIA's CUDA toolkit; here a total
// and its readiness are one word, so that no fence is needed.
// Forward progress: no workgroup waits for another. The last one to finish knows that all totals were posted, but WGSL
// does not promise that it sees them at once: one that it has not seen after some looks is computed again.
// Bindings: params, input, output, and control and states where totals are posted.
//$ include "lib/bindings.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"

//$ if phase != "totals"
// The total of a block of tiles; the same for every invocation.
fn block_total(block: u32) -> Acc {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
//$ if op.commutative
  // Order does not matter: every invocation keeps four sums of its own until the end.
  var sums = vec4<Acc>(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
//$ for r in range(vecs)
    sums = combine4(sums, tile_items[{{ r }}]);
//$ endfor
  }
  return wg_scan(sg_reduce(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
//$ else
  var total = identity();
  for (var tile = first; tile < end; tile++) { total = combine(total, tile_total(tile)); }
  return total;
//$ endif
}

//$ endif
//$ if phase == "totals"

fn combine_totals() -> Acc {
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = (sg_id * sg_size + sg_lane) * each;
  let end = min(first + each, params.blocks);
  var sum = identity();
  for (var i = first; i < end; i++) { sum = combine(sum, unpack(load_input(i))); }
  return wg_scan(sg_reduce(sum)).total;
}
//$ elif phase == "whole"

//$ include "lib/state.wgsl"

override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;
var<workgroup> last_to_finish: u32;
var<workgroup> unseen: atomic<u32>;
var<workgroup> unseen_block: u32;

// Combines the totals of all blocks, in order: each invocation takes some neighbouring ones.
fn combine_totals() -> Acc {
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let first = (sg_id * sg_size + sg_lane) * each;
  let end = min(first + each, params.blocks);
  var sum = identity();
  var next = first;
  var again = NONE;  // the block that all invocations compute together
  var again_total = identity();
  loop {
    var spins = 0u;
    while (next < end && spins < SPIN_LIMIT) {
      var posted = state_peek(next);
      if (next == again) { posted = Posted(TOTAL, again_total); }
      if (posted.flag == EMPTY) {
        spins += 1u;
        continue;
      }
      sum = combine(sum, posted.value);
      next += 1u;
    }
    if (local == 0u) { atomicStore(&unseen, NONE); }
    workgroupBarrier();
    if (next < end) { atomicMin(&unseen, next); }
    workgroupBarrier();
    if (local == 0u) { unseen_block = atomicLoad(&unseen); }
    again = workgroupUniformLoad(&unseen_block);
    if (again == NONE) { break; }
    again_total = block_total(again);
  }
  return wg_scan(sg_reduce(sum)).total;
}
//$ endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
//$ if phase == "totals"
  enter(lanes);
  let whole = combine_totals();
  if (local == 0u) { store_output(0u, result(whole)); }
//$ else
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  enter(lanes);
//$ if phase == "whole"
  // Read before the count of finished workgroups goes up: the last one moves it on.
  if (params.blocks > 1u) { state_begin(); }
//$ endif
  let total = block_total(block);
//$ if phase == "whole"
  if (params.blocks > 1u) {
    if (is_leader()) {
      state_post(block, TOTAL, total);
      last_to_finish = select(0u, 1u, state_count_finished(params.blocks));
    }
    if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }
    let whole = combine_totals();
    if (is_leader()) {
      state_next_epoch();
      store_output(0u, result(whole));
    }
    return;
  }
//$ endif
  if (local == 0u) { store_output(block, result(total)); }
//$ endif
}
