// Single-pass segmented scan with decoupled look-back and fallback: each item is read once. What begins a segment comes from
// keys or from offsets, and what is written from the emission: a result per item, per run of equal keys, or per segment.
// Sources: Sengupta, Harris, Zhang and Owens, "Scan primitives for GPU computing" (2007), section 4, for the operator on
// (head, value); for the look-back and its fallback see scan_lookback.wgsl.
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recomputes every unpublished
// tile from the inputs, so outputs must not share items with them.
// Bindings: params, the inputs, the outputs, control, states, and carries.
//$ if emission == "runs"
// A tile publishes how many runs begin in it, and the value of the run that is open at its end.
//$ else
// A tile publishes the value of the segment that is open at its end. In a tile with a head that is final at once: nothing
// before the head reaches it, so most look-backs end at the tile before.
//$ endif
// In windows (`carried`), each dispatch starts from the chain in carries[0], which the previous dispatch wrote, and
// writes the chain up to its own end to carries[1].
// A count may come from the GPU (params.n): tiles without items publish the identity and leave, because an epoch tells
// only the words of the previous dispatch from those of this one.
// Params: n (items of this window and those before; the GPU may have counted them); first (item of the window);
// capacity (items of the window that there is room for); tiles (of the capacity); flags (sum of some of HAS_CARRY
// and MORE_FOLLOWS); size (runs that the outputs have room for); segments; search_steps.

//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segmented_subgroup.wgsl"
//$ include "lib/segmented_tile.wgsl"
//$ include "lib/emit_" ~ emission ~ ".wgsl"
//$ include "lib/state.wgsl"

//$ set may_end = true
//$ if emission == "runs" and subgroups == "native"
//$ set heads_close = true
//$ endif
//$ include "lib/look_back.wgsl"

//$ if carried
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;

// The chain of all earlier windows.
fn carry_in() -> Chain {
  if ((params.flags & HAS_CARRY) == 0u) { return chain_identity(); }
  return Chain(
    load_carries({{ k }}u),  //$ for k in range(1 + acc.words)
  );
}
fn carry_out(total: Chain) {
  store_carries({{ 1 + acc.words + k }}u, total[{{ k }}]);  //$ for k in range(1 + acc.words)
}

//$ endif
//$ if emission == "runs"
alias Posted = Chain;
fn posted(total: Chain) -> Posted { return total; }
// The chain of what was looked back over, and a tile behind it.
fn chain_of_posted(x: Posted) -> Chain { return x; }
fn is_final(total: Chain) -> bool { return false; }
fn ends_look_back(total: Chain) -> bool { return false; }
//$ else
alias Posted = Acc;
fn posted(total: Chain) -> Posted { return chain_value(total); }
fn chain_of_posted(x: Posted) -> Chain { return chain_of(0u, x); }
fn is_final(total: Chain) -> bool { return total.x != 0u; }
var<workgroup> stalled_is_final: u32;
fn ends_look_back(total: Chain) -> bool {
  if (local == 0u) { stalled_is_final = select(0u, 1u, is_final(total)); }
  return workgroupUniformLoad(&stalled_is_final) != 0u;
}
//$ endif
//$ if carried
fn with_carry(before: Posted) -> Posted { return posted(chain_combine(carry_in(), chain_of_posted(before))); }
//$ else
fn with_carry(before: Posted) -> Posted { return before; }
//$ endif
//$ include "lib/look_back_resume.wgsl"

fn run(number: u32, lanes: Lanes) {
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
  if (tile >= used_tiles()) {
    if (is_leader()) {
      state_publish(tile, TOTAL, posted(chain_identity()));
      if (state_count_finished(params.tiles)) { state_next_epoch(); }
    }
    return;
  }
  tile_load(tile);
  let sum = tile_scan();
  var before = chain_identity();
//$ if carried
  if (tile == 0u) { before = carry_in(); }
//$ endif
  let is_known = tile == 0u || is_final(sum.total);
  if (is_leader()) {
    if (is_known) {
      state_publish(tile, INCLUSIVE, posted(chain_combine(before, sum.total)));
    } else {
      state_publish(tile, TOTAL, posted(sum.total));
    }
  }
  emit_closed(tile, sum);
  if (tile > 0u) { before = chain_of_posted(look_back_from(tile, posted(sum.total), is_known)); }
  if (is_leader() && tile == used_tiles() - 1u) {
    let total = chain_combine(before, sum.total);
//$ if carried
    carry_out(total);
//$ endif
    if (!more_follows()) { emit_end(total); }
  }
  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }
  emit_open(tile, before, sum);
}
