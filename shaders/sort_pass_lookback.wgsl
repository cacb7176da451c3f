// A pass of a radix sort: moves every key to the bin of its digit; keys of one bin keep their order.
// Each workgroup counts the digits of a tile, ranks its keys, puts them in order in workgroup memory, and writes them to a
// run per bin in the output. A tile publishes its counts as soon as it knows them. Each bin's invocation then looks back at
// several earlier tiles at a time, to learn where the tile's run begins.
// Source: Adinets and Merrill, "Onesweep: a faster least significant digit radix sort for GPUs" (2022).
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, the workgroup recounts unpublished tiles
// itself (the input of a pass does not change). So every loop is bounded.
// Bindings: params, keys (and values) in three places, routes, states.
// Params: n (keys); route_index (index of this digit in the routes); bins_index (index of its first bin in the
// routes); tiles; digit.

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_rank.wgsl"
//$ include "lib/sort_items.wgsl"
//$ include "lib/sort_write.wgsl"

//$ include "lib/sort_state.wgsl"
override SPIN_LIMIT: u32 = 256u;
var<workgroup> stalled: atomic<u32>;

// Recounts the digits of a full tile, and returns the count of this invocation's bin. Keys in registers stay.
fn count_again(tile: u32, place: u32) -> u32 {
  workgroupBarrier();
  if (lane < BINS) { atomicStore(&run_offsets[lane], 0u); }
  workgroupBarrier();
  for (var i = tile * TILE + lane; i < (tile + 1u) * TILE; i += WORKGROUP_SIZE) {
    var key: Key;
    if (place == {{ place | upper }}) { key = load_keys_{{ place }}(i); }  //$ for place in places
    let code = {{ "select(key_read(key), key_encode(key), place == INPUT)" if encodes else "key_encode(key)" }};
    atomicAdd(&run_offsets[ranked_digit(code)], 1u);
  }
  workgroupBarrier();
  return atomicLoad(&run_offsets[lane & (BINS - 1u)]);
}

// The sum of the bin's base and of the tiles added so far, the number of tiles left to add, and unsuccessful polls.
var<private> sum: u32;
var<private> remaining: u32;
var<private> spins: u32;

// Adds the published counts of earlier tiles, until none are left or `most_spins` polls were unsuccessful.
fn walk_back(most_spins: u32) {
  while (remaining > 0u && spins < most_spins) {
    // Positions before tile 0 repeat it. They are never used, because tile 0 publishes an inclusive count.
    let word_{{ j }} = digit_poll(max(remaining, {{ j + 1 }}u) - {{ j + 1 }}u, lane);  //$ for j in range(look)
    var on = true;
//$ for j in range(look)
    on = on && remaining > 0u && digit_is_published(word_{{ j }});
    if (on) {
      sum += digit_value(word_{{ j }});
      remaining = select(remaining - 1u, 0u, digit_inclusive(word_{{ j }}));
    }
//$ endfor
    spins += select(1u, 0u, on || remaining == 0u);
  }
}

// Begins to look back without waiting. A tile that finishes here shortens the walk of later tiles.
fn look_back_early(tile: u32, base: u32, count: u32) {
  sum = select(0u, base, tile == 0u);
  remaining = select(0u, tile, lane < BINS);
  spins = 0u;
  walk_back(1u);
  if (lane < BINS && tile > 0u && remaining == 0u) { digit_publish(tile, lane, INCLUSIVE, sum + count); }
}

// Where `tile` continues this invocation's bin; `base` is where the bin begins.
fn look_back(tile: u32, place: u32, base: u32) -> u32 {
  loop {
    walk_back(SPIN_LIMIT);
    if (remaining > 0u) { atomicMax(&stalled, remaining); }
    let again = workgroupUniformLoad(&stalled);
    if (again == 0u) { break; }
    let counted = count_again(again - 1u, place);
    if (remaining == again) {
      sum += counted;
      remaining -= 1u;
      if (remaining == 0u) { sum += base; }
    }
    if (lane == 0u) { atomicStore(&stalled, 0u); }
    workgroupBarrier();
  }
  return sum;
}

fn run(number: u32, lanes: Lanes) {
  let route = load_routes(params.route_index);
  if (route == 0u) { return; }
  rank_enter(lanes);
  use_digit(params.digit);
  let tile = state_enter(number);
  let place = route & 3u;
//$ if counted
  // Nobody looks at a tile without keys. It publishes all the same: with one bit of epoch no word may be older than the
  // previous dispatch.
  if (tile * TILE >= item_count()) {
    if (lane < BINS) {
      state_begin();
      digit_publish(tile, lane, COUNT, 0u);
    }
    workgroupBarrier();
    if (lane == 0u && state_count_finished(params.tiles)) { state_next_epoch(); }
    return;
  }
//$ endif
  read_codes(tile, place);
  if (local == 0u) { atomicStore(&stalled, 0u); }
  var base = 0u;
  if (lane < BINS) {
    state_begin();
    base = load_routes(params.bins_index + lane);
  }
  let count = tile_count();
  if (lane < BINS) {
    if (tile == 0u) { digit_publish(tile, lane, INCLUSIVE, base + count); } else { digit_publish(tile, lane, COUNT, count); }
  }
  let first = wg_exclusive(count).before;
  tile_rank(first);
  look_back_early(tile, base, count);
  stage_keys(0u);
  let before = look_back(tile, place, base);
  if (lane < BINS) {
    if (tile > 0u) { digit_publish(tile, lane, INCLUSIVE, before + count); }
    atomicStore(&run_offsets[lane], before - first);
  }
  workgroupBarrier();
  // Only invocations that look back have the epoch.
  if (lane == 0u && state_count_finished(params.tiles)) { state_next_epoch(); }
  tile_write(tile, route);
}
