// What a window has to know of those before it: the counts, and the last item.
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;
fn has_carry() -> bool { return (params.flags & HAS_CARRY) != 0u; }

// The counts of all tiles before one, from those in its window.
//$ if carried
fn carried_before(before: Acc) -> Acc {
//$ if runs
  let here = Acc(before.x, select(0u, params.first + before.y, before.y > 0u));
//$ else
  let here = before;
//$ endif
  if (!has_carry()) { return here; }
//$ if words == 1
  return combine(load_carries(0u), here);
//$ else
  return combine(Acc(load_carries(0u), load_carries(1u)), here);
//$ endif
}
//$ if heads
// The last item of the window before.
fn carried_item() -> {{ marks[0].item }} {
//$ if marks[0].bytes == 8
  return vec2<u32>(load_carries({{ words }}u), load_carries({{ words + 1 }}u));
//$ else
  return load_carries({{ words }}u);
//$ endif
}
//$ endif
//$ else
fn carried_before(before: Acc) -> Acc { return before; }
//$ endif

