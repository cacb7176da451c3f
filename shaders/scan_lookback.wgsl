// Single-pass scan with decoupled look-back and fallback: each item is read once and written once.
// Sources: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (NVIDIA, 2016); the
// fallback is from Smith, Levien and Owens, "Decoupled Fallback" (SPAA 2025).
// A workgroup takes a tile, by its number or by a ticket, and publishes the tile's total. Then one subgroup looks back over
// several earlier tiles at a time, until it finds one that has published the total of all tiles up to itself.
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recomputes every unpublished
// tile from the input. So every loop is bounded, and the output must not share items with the input.
// In windows (`carried`), each dispatch starts from the total in carries[0], which the previous dispatch wrote, and
// writes the total up to its own end to carries[1].
// Bindings: params, input, output, control, states, and carries.
// Params: n (items of the window); tiles; flags (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/tile_scan.wgsl"
//$ include "lib/state.wgsl"

//$ set any_order = op.commutative
//$ include "lib/look_back.wgsl"

//$ if carried
//$ set raw, raw_written = ["carries"], ["carries"]
//$ include "lib/accumulators.wgsl"
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;

// The total of all earlier windows.
fn carry_in() -> Acc {
  if ((params.flags & HAS_CARRY) == 0u) { return identity(); }
  return load_acc_carries(0u);
}
//$ set before_tile_0 = "combine(carry_in(), before)"
//$ endif
//$ include "lib/look_back_resume.wgsl"

fn run(number: u32, lanes: Lanes) {
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
//$ if counted
  // Nobody looks at a tile without items. It publishes all the same: the epoch tells a word from that of the previous dispatch,
  // so no word may be older.
  if (tile * tile_size() >= item_count()) {
    if (is_leader()) {
      state_publish(tile, TOTAL, identity());
      if (state_count_finished(params.tiles)) { state_next_epoch(); }
    }
    return;
  }
//$ endif
  tile_load(tile);
  let sum = tile_sum();
  let total = {{ "global_of(sum.total)" if local else "sum.total" }};
  var before = identity();
//$ if carried
  if (tile == 0u) { before = carry_in(); }
  if (is_leader()) {
    if (tile > 0u) { state_publish(tile, TOTAL, total); } else { state_publish(tile, INCLUSIVE, combine(before, total)); }
  }
//$ else
  if (is_leader()) { state_publish(tile, select(TOTAL, INCLUSIVE, tile == 0u), total); }
//$ endif
  tile_scan(sum.before);

  if (tile > 0u) {
    before = look_back_from(tile);
    if (is_leader()) { state_publish(tile, INCLUSIVE, combine(before, total)); }
  }
//$ if carried
  if (is_leader() && tile == params.tiles - 1u) { store_acc_carries(1u, combine(before, total)); }
//$ endif
  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }
  tile_store(tile, before);
}
