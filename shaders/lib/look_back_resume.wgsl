// What comes before a tile, for all invocations of its workgroup. A tile that has not published in time is not waited for: its
// total is computed here, from the input, and the look-back goes on before it. Needs lib/look_back.wgsl and tile_total; the
// caller publishes the inclusive total. A kernel with windows says what comes before tile 0 (`before_tile_0`).
//$ if may_end is defined
// The look-back of this kernel can end at a tile's total. It needs
//   posted            what a tile publishes of a total
//   ends_look_back    whether nothing before a tile with this total reaches its end
//   with_carry        what comes before the first tile of the window, and what comes after that
// and the inclusive total of `own` and what comes before is published here, unless it `is_known` before.
//$ endif
//$ set chain = chain if chain is defined else {"type": "Acc", "combine": "combine", "identity": "identity()"}
//$ set may_end = may_end if may_end is defined else false
//$ set T = chain.type

fn look_back_from(tile: u32{{ ", own: %s, is_known: bool" % T if may_end }}) -> {{ T }} {
  var before = {{ chain.identity }};
  var next = tile - 1u;
  var spins = 0u;
//$ if may_end
  var stalled = NONE;
//$ endif
  loop {
//$ if may_end
    if (look_back_enter()) {
      look_back(next, before, spins);
      // Before the others know it: later tiles wait for it.
      if (is_leader() && !is_known && look_back_result.stalled == NONE) {
        state_publish(tile, INCLUSIVE, {{ chain.combine }}(look_back_result.sum, own));
      }
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
//$ else
    // One call less, and no variable more: with either, NVIDIA's compiler makes a select of 2^24 items slower by 4 %.
    if (look_back_enter()) { look_back(next, before, spins); }
    let found = workgroupUniformLoad(&look_back_result);
    before = found.sum;
    spins = found.spins;
    if (found.stalled == NONE) { break; }
    before = {{ chain.combine }}(tile_total(found.stalled), before);
    if (found.stalled == 0u) {
//$ if before_tile_0 is defined
      before = {{ before_tile_0 }};
//$ endif
      break;
    }
    next = found.stalled - 1u;
//$ endif
  }
//$ if may_end
  if (is_leader() && !is_known && stalled != NONE) { state_publish(tile, INCLUSIVE, {{ chain.combine }}(before, own)); }
//$ endif
  return before;
}
