// What comes before a tile, for all invocations of its workgroup; leaves the tile's inclusive total published. A tile that has not
// published in time is not waited for: its total is computed here, from the input, and the look-back goes on before it.
// Needs lib/look_back.wgsl, tile_total, and of the kernel's file
//   posted            what a tile publishes of a total
//   ends_look_back    whether nothing before a tile with this total reaches its end
//   with_carry        what comes before the first tile of the window, and what comes after that
//$ set chain = chain if chain is defined else {"type": "Acc", "combine": "combine", "identity": "identity()"}
//$ set T = chain.type
//$ set at_once = at_once if at_once is defined else false

// `own` is what the tile publishes of its own total, unless its inclusive one is known before.
fn look_back_from(tile: u32, own: {{ T }}, is_known: bool, spins_so_far: u32) -> {{ T }} {
  var before = {{ chain.identity }};
  var next = tile - 1u;
  var spins = spins_so_far;
  var stalled = NONE;
  loop {
    if (look_back_enter()) {
      look_back(next, before, spins);
//$ if at_once
      // Before the others know it: later tiles wait for it.
      if (is_leader() && !is_known && look_back_result.stalled == NONE) {
        state_publish(tile, INCLUSIVE, {{ chain.combine }}(look_back_result.sum, own));
      }
//$ endif
    }
    let found = workgroupUniformLoad(&look_back_result);
    before = found.sum;
    spins = found.spins;
    stalled = found.stalled;
    if (stalled == NONE) { break; }
    let total = tile_total(stalled);
    before = {{ chain.combine }}(posted(total), before);
    if (ends_look_back(total)) { break; }
    if (stalled == 0u) {
      before = with_carry(before);
      break;
    }
    next = stalled - 1u;
  }
  if (is_leader() && !is_known{{ " && stalled != NONE" if at_once }}) { state_publish(tile, INCLUSIVE, {{ chain.combine }}(before, own)); }
  return before;
}
