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

struct Params {
  n: u32,  // items of the window
  tiles: u32,
  flags: u32,  // sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY
  identity_bits: u32,
//$ for k in range(1, acc.words)
  identity_bits_{{ k }}: u32,
//$ endfor
  input_offset: u32,
  output_offset: u32,
//$ if carried
  carries_offset: u32,
//$ endif
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/tile.wgsl"
//$ include "lib/tile_scan.wgsl"
//$ include "lib/state.wgsl"

override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;

struct LookBack { sum: Acc, stalled: u32, spins: u32 }
var<workgroup> look_back_result: LookBack;

// Tiles that each lane polls per round: a round costs one trip to memory, however many tiles it covers.
const LOOK: u32 = {{ look }}u;

// Combines the published totals of tiles `start` and earlier with `sum_so_far`, which comes after them. Writes to
// look_back_result the sum, the tile that did not publish in time (or NONE), and the number of unsuccessful polls.
fn look_back(start: u32, sum_so_far: Acc, spins_so_far: u32) {
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
//$ for j in range(look)
    var published_{{ j }} = Published(INCLUSIVE, identity());  // before tile 0
    if (sg_id == 0u && window - first - {{ j }}u <= nearest) {
      published_{{ j }} = state_poll(nearest - (window - first - {{ j }}u));
    }
//$ endfor
//$ for j in range(look)
    done_here = select(done_here, first + {{ j }}u, published_{{ j }}.flag == INCLUSIVE);
    empty_here = select(empty_here, first + {{ j }}u, published_{{ j }}.flag == EMPTY);
//$ endfor
    let done = look_back_max(done_here);
    let empty = look_back_max(empty_here);
    // Use the positions after the nearest empty tile, from the nearest inclusive one on.
    let use_from = max(done, empty + 1u);
    var here = identity();
//$ for j in range(look)
    here = combine(here, select(identity(), published_{{ j }}.value, first + {{ j }}u >= use_from));
//$ endfor
    sum = combine(look_back_reduce(here), sum);
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

//$ if carried
//$ set raw, raw_written = ["carries"], ["carries"]
//$ include "lib/accumulators.wgsl"
const HAS_CARRY: u32 = {{ constants.HAS_CARRY }}u;

// The total of all earlier windows.
fn carry_in() -> Acc {
  if ((params.flags & HAS_CARRY) == 0u) { return identity(); }
  return load_acc_carries(0u);
}

//$ endif
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  // Surplus workgroups of the grid must not take a ticket: the last one to finish may have reset the counter.
  let number = workgroup_index(workgroup, grid);
  if (number >= params.tiles) { return; }
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
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
    var next = tile - 1u;
    var spins = 0u;
    loop {
      if (look_back_enter()) { look_back(next, before, spins); }
      let found = workgroupUniformLoad(&look_back_result);
      before = found.sum;
      spins = found.spins;
      if (found.stalled == NONE) { break; }
      before = combine(tile_total(found.stalled), before);
      if (found.stalled == 0u) {
//$ if carried
        before = combine(carry_in(), before);
//$ endif
        break;
      }
      next = found.stalled - 1u;
    }
    if (is_leader()) { state_publish(tile, INCLUSIVE, combine(before, total)); }
  }
//$ if carried
  if (is_leader() && tile == params.tiles - 1u) { store_acc_carries(1u, combine(before, total)); }
//$ endif
  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }
  tile_store(tile, before);
}
