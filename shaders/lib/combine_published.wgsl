// What the last workgroup to finish does: it combines the totals that blocks have published, in their order. It needs
// block_total(block), for a block whose total is not seen after SPIN_LIMIT polls.
override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;
var<workgroup> unseen: atomic<u32>;
var<workgroup> unseen_block: u32;
// Each invocation takes a few consecutive blocks of those from `begin` to `end` - 1.
fn combine_published(begin: u32, end: u32) -> Acc {
  let each = (end - begin + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  var next = begin + (sg_id * sg_size + sg_lane) * each;
  let stop = min(next + each, end);
  var sum = identity();
  var again = NONE;  // the block that all invocations recompute together
  var again_total = identity();
  loop {
    var spins = 0u;
    while (next < stop && spins < SPIN_LIMIT) {
      var published = state_poll(next);
      let ahead = state_poll(min(next + 1u, stop - 1u));  // both loads are under way at once
      if (next == again) { published = Published(TOTAL, again_total); }
      if (published.flag == EMPTY) {
        spins += 1u;
        continue;
      }
      sum = combine(sum, published.value);
      next += 1u;
      if (next < stop && next != again && ahead.flag != EMPTY) {
        sum = combine(sum, ahead.value);
        next += 1u;
      }
    }
    if (local == 0u) { atomicStore(&unseen, NONE); }
    workgroupBarrier();
    if (next < stop) { atomicMin(&unseen, next); }
    workgroupBarrier();
    if (local == 0u) { unseen_block = atomicLoad(&unseen); }
    again = workgroupUniformLoad(&unseen_block);
    if (again == NONE) { break; }
    again_total = block_total(again);
  }
//$ set of = kinds[-1].suffix
  return {{ "best_of_all(sum)" if sides is defined else "wg_scan%s(sg_reduce%s(sum)).total" % (of, of) }};
}
