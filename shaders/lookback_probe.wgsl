// Self-test of look-back: uses the chained state as a single-pass scan does, on synthetic totals, and counts the faults.
// The totals differ in every epoch, so that a word of an earlier dispatch gives a wrong sum.
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recomputes every unpublished
// tile itself, and counts these tiles.
// Bindings: params, control, states, counts: [0] tiles with a wrong sum, [1] tiles that were computed again, [2] tiles that finished.
// Params: tiles.

override SPIN_LIMIT: u32 = 256u;

alias Acc = u32;
fn pack(x: Acc) -> u32 { return x; }
fn unpack(word: u32) -> Acc { return word; }
var<private> local: u32;

//$ include "lib/state.wgsl"

// Odd, and different in every epoch, in both halves of the word.
fn epoch_unit() -> u32 { return 0x9e3779b1u + epoch * 0x85ebca76u; }
fn total_of(tile: u32) -> u32 { return (tile + 1u) * epoch_unit(); }
fn sum_up_to(tile: u32) -> u32 { return (tile + 1u) * (tile + 2u) / 2u * epoch_unit(); }

// The sum before a tile, and how many of its tiles had to be recomputed here.
struct Before { sum: u32, computed: u32 }

fn look_back(tile: u32) -> Before {
  var before = Before(0u, 0u);
  var next = tile;
  var spins = 0u;
  while (next > 0u) {
    let published = state_poll(next - 1u);
    if (published.flag == EMPTY && spins < SPIN_LIMIT) {
      spins += 1u;
      continue;
    }
    next -= 1u;
    if (published.flag == EMPTY) {
      before = Before(before.sum + total_of(next), before.computed + 1u);
    } else {
      before.sum += published.value;
      if (published.flag == INCLUSIVE) { break; }
    }
  }
  return before;
}

fn run(number: u32, index: u32) {
  local = index;
  let tile = state_enter(number);
  if (local != 0u) { return; }
  state_begin();
  state_publish(tile, select(TOTAL, INCLUSIVE, tile == 0u), total_of(tile));
  let before = look_back(tile);
  let sum = before.sum + total_of(tile);
  state_publish(tile, INCLUSIVE, sum);
  if (sum != sum_up_to(tile)) { atomicAdd(&counts[0], 1u); }
  // Bounded, so that the sum over all dispatches cannot overflow.
  if (before.computed > 0u) { atomicAdd(&counts[1], min(before.computed, 4096u)); }
  atomicAdd(&counts[2], 1u);
  if (state_count_finished(params.tiles)) { state_next_epoch(); }
}
