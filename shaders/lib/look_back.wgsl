// The look-back of a chained scan: one subgroup combines the published totals of several earlier tiles at a time, until
// it finds one that has published the total of all tiles up to itself. Needs lib/state.wgsl and lib/workgroup.wgsl.
//$ set chain = chain if chain is defined else {"type": "Acc", "combine": "combine", "identity": "identity()"}
override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;

struct LookBack { sum: {{ chain.type }}, stalled: u32, spins: u32 }
var<workgroup> look_back_result: LookBack;

// Tiles that each lane polls per round: a round costs one trip to memory, however many tiles it covers.
const LOOK: u32 = {{ look }}u;

// Combines the published totals of tiles `start` and earlier with `sum_so_far`, which comes after them. Writes to
// look_back_result the sum, the tile that did not publish in time (or NONE), and the number of unsuccessful polls.
fn look_back(start: u32, sum_so_far: {{ chain.type }}, spins_so_far: u32) {
  let window = sg_size * LOOK;
  // Positions 1 to `window` are in the order of the tiles; the last one is the nearest tile.
  let first = sg_lane * LOOK + 1u;
  var nearest = start;
  var sum = sum_so_far;
  var spins = spins_so_far;
  var stalled = NONE;
  loop {
    var done_here = 0u;
    var empty_here = 0u;
//$ if look == 1 or look > 4 or may_end is defined
//$ for j in range(look)
    var published_{{ j }} = Published(INCLUSIVE, {{ chain.identity }});  // before tile 0
    if (sg_id == 0u && window - first - {{ j }}u <= nearest) { published_{{ j }} = state_poll(nearest - (window - first - {{ j }}u)); }
//$ endfor
//$ else
    // Without branches, so that a lane waits for all of its polls together.
    let back_{{ j }} = window - first - {{ j }}u;  //$ for j in range(look)
    var published_{{ j }} = state_poll(nearest - min(back_{{ j }}, nearest));  //$ for j in range(look)
    published_{{ j }}.flag = select(published_{{ j }}.flag, INCLUSIVE, back_{{ j }} > nearest);  //$ for j in range(look)
    published_{{ j }}.value = select(published_{{ j }}.value, {{ chain.identity }}, back_{{ j }} > nearest);  //$ for j in range(look)
//$ endif
    done_here = select(done_here, first + {{ j }}u, published_{{ j }}.flag == INCLUSIVE);  //$ for j in range(look)
    empty_here = select(empty_here, first + {{ j }}u, published_{{ j }}.flag == EMPTY);  //$ for j in range(look)
    let done = look_back_max(done_here);
    let empty = look_back_max(empty_here);
    // Use the positions after the nearest empty tile, from the nearest inclusive one on.
    let use_from = max(done, empty + 1u);
    var here = {{ chain.identity }};
    here = {{ chain.combine }}(here, select({{ chain.identity }}, published_{{ j }}.value, first + {{ j }}u >= use_from));  //$ for j in range(look)
    sum = {{ chain.combine }}(look_back_reduce(here), sum);
    if (done > empty) { break; }
    if (empty == 0u) {
      nearest -= window;
      continue;
    }
    let moved = window - empty;
    nearest -= moved;
    if (moved > 0u) { continue; }
    spins += 1u;
    if (spins >= SPIN_LIMIT) {
      stalled = nearest;
      break;
    }
  }
  if (is_leader()) { look_back_result = LookBack(sum, stalled, spins); }
}
