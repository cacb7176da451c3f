// What a window has to know of those before it: the counts, and the last item.
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;
fn has_carry() -> bool { return (params.flags & HAS_CARRY) != 0u; }

// The counts of all tiles before one, from those in its window.
//$ if carried
//$ set raw, raw_written = ["carries"], []
//$ include "lib/accumulators.wgsl"
fn carried_before(before: Acc) -> Acc {
  let here = from_window(before);
  if (!has_carry()) { return here; }
  return combine(load_acc_carries(0u), here);
}
//$ if heads
//$ set parts = ["load_carries(%du)" % words, "load_carries(%du)" % (words + 1)]
// The last item of the window before.
fn carried_item() -> {{ "vec2<u32>" if marks[0].bytes == 8 else "u32" }} {
  return {{ "vec2<u32>(%s, %s)" % (parts[0], parts[1]) if marks[0].bytes == 8 else parts[0] }};
}
//$ endif
//$ else
fn carried_before(before: Acc) -> Acc { return before; }
//$ endif
