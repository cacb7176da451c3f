// The look-back of a chained scan: one subgroup combines the published totals of several earlier tiles at a time, until
// it finds one that has published the total of all tiles up to itself. Needs lib/state.wgsl and lib/workgroup.wgsl.
//$ set chain = chain if chain is defined else {"type": "Acc", "combine": "combine", "identity": "identity()"}
//$ set by_lanes = any_order is defined and any_order or heads_close is defined
override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;

struct LookBack { sum: {{ chain.type }}, stalled: u32, spins: u32 }
var<workgroup> look_back_result: LookBack;

// Combines the published totals of tiles `start` and earlier with `sum_so_far`, which comes after them. Writes to
// look_back_result the sum, the tile that did not publish in time (or NONE), and the number of unsuccessful polls.
fn look_back(start: u32, sum_so_far: {{ chain.type }}, spins_so_far: u32) {
  var nearest = start;
  var sum = sum_so_far;
  var spins = spins_so_far;
  var stalled = NONE;
//$ if by_lanes
  var of_lane = {{ "0u" if heads_close is defined else chain.identity }};  // combined over the lanes in the end, once
//$ endif
  loop {
    // Windows of a tile for each lane, whose last lane has the nearest tile. Without branches: a lane waits for all of its polls
    // together. Before tile 0 everything is known. Tile 0 says so, too; but without these selections a scan of 2^20 items takes
    // 6.2 µs on an H200, with them 5.7.
    let back_{{ j }} = {{ j }}u * sg_size + (sg_size - 1u - sg_lane);  //$ for j in range(look)
    var published_{{ j }} = state_poll(nearest - min(back_{{ j }}, nearest));  //$ for j in range(look)
    published_{{ j }}.flag = select(published_{{ j }}.flag, INCLUSIVE, back_{{ j }} > nearest);  //$ for j in range(look)
    published_{{ j }}.value = select(published_{{ j }}.value, {{ chain.identity }}, back_{{ j }} > nearest);  //$ for j in range(look)
    var moved = 0u;
    var is_open = true;
    var is_found = false;
//$ for j in range(look)
    {
      let done = look_back_last(published_{{ j }}.flag == INCLUSIVE);
      let empty = look_back_last(published_{{ j }}.flag == EMPTY);
      // The lanes behind the nearest empty tile, from the nearest inclusive one on.
      let is_used = is_open && sg_lane + 1u >= max(done, empty + 1u);
      let here = select({{ chain.identity }}, published_{{ j }}.value, is_used);
//$ if heads_close is defined
      // Behind a head only the heads count.
      if (sum.x == 0u) { sum = {{ chain.combine }}(look_back_reduce(here), sum); } else { of_lane += here.x; }
//$ elif by_lanes
      of_lane = {{ chain.combine }}(here, of_lane);
//$ else
      sum = {{ chain.combine }}(look_back_reduce(here), sum);
//$ endif
      is_found = is_found || (is_open && done > empty);
      moved += select(0u, sg_size - empty, is_open);
      is_open = is_open && (done | empty) == 0u;
    }
//$ endfor
    if (is_found) { break; }
    nearest -= moved;
    if (moved > 0u) { continue; }
    spins += 1u;
    if (spins >= SPIN_LIMIT) {
      stalled = nearest;
      break;
    }
  }
//$ if heads_close is defined
  sum.x += look_back_reduce(chain_of(of_lane, identity())).x;
//$ elif by_lanes
  sum = {{ chain.combine }}(look_back_reduce(of_lane), sum);
//$ endif
  if (is_leader()) { look_back_result = LookBack(sum, stalled, spins); }
}
