// Merges two sorted runs of keys into one, in registers: for integer keys without values, of which equal ones are the same.
// Source: K. E. Batcher, "Sorting networks and their applications" (1968), for the bitonic merge; Green, McColl and Bader, "GPU
// Merge Path" (2012), for the parts. merge_partition.wgsl has found which parts of the two make each tile.
// A subgroup merges chunks of ROWS keys for each lane, one after another. It finds where the next chunk ends in both runs: lanes
// test places side by side, at first around the place where the path would be if both runs were spread alike. Then it loads the
// part of the first run forwards and that of the second one backwards, so that the chunk rises and then falls, and merges it by
// exchanges between registers and between lanes. Neighbouring lanes load and store neighbouring keys, and nothing goes through
// workgroup memory.
// Forward progress: no workgroup and no subgroup waits for another. Bindings: params, a, b, splits, output.
// Params: tiles.

//$ include "lib/merge_order.wgsl"
//$ include "lib/merge_runs.wgsl"
const ROWS: u32 = {{ rows }}u;
const CHUNKS: u32 = {{ chunks }}u;
const TILE: u32 = {{ workgroup_size * rows * chunks }}u;

struct Lanes {
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) lane: u32,
  @builtin(subgroup_id) id: u32,
}
var<private> sg_size: u32;
var<private> sg_lane: u32;
// The tile's part of each run.
var<private> first_a: u32;
var<private> first_b: u32;
var<private> count_a: u32;
var<private> count_b: u32;

fn lanes_of(votes: vec4<u32>) -> u32 {
  let bits = countOneBits(votes);
  return bits.x + bits.y + bits.z + bits.w;
}
// Whether the path crosses a diagonal at place `p` of the first run, or before.
fn is_behind(diagonal: u32, p: u32) -> bool { return is_before(key_b(first_b + diagonal - 1u - p), key_a(first_a + p)); }

// Where the path crosses a diagonal: how many of its keys are of the first run, from `least` to `most`. At first lanes test two
// places each, `apart` from one another, around `guess`; then they cut what is left into equal parts.
fn crossing(diagonal: u32, least: u32, most: u32, guess: u32, apart: u32) -> u32 {
  var low = least;
  var high = most;
  var begin = max(guess, low + sg_size * apart) - sg_size * apart;
  var step = apart;
  loop {
    if (low >= high) { break; }
    // Places rise from lane to lane, so those before the path are those of the first lanes.
    let p = begin + 2u * sg_lane * step;
    let q = p + step;
    let before_p = p < low || (p < high && !is_behind(diagonal, min(p, high - 1u)));
    let before_q = q < low || (q < high && !is_behind(diagonal, min(q, high - 1u)));
    let before = lanes_of(subgroupBallot(before_p)) + lanes_of(subgroupBallot(before_q));
    if (before > 0u) { low = max(low, begin + (before - 1u) * step + 1u); }
    if (before < 2u * sg_size) { high = min(high, begin + before * step); }
    step = (high - low + 2u * sg_size) / (2u * sg_size + 1u);
    begin = low + step - 1u;
  }
  return low;
}

fn run(tile: u32, lanes: Lanes) {
  let first = tile * TILE;
  if (first >= total()) { return; }
  sg_size = lanes.size;
  sg_lane = lanes.lane;
  let runs = runs_of(first);
  let count = min(total() - first, TILE);
  let split = load_splits(tile);
  var end = runs.length_a;
  if (first + count < total()) {
    // In runs that are not sorted a path may go back: what is read and written stays in range.
    end = clamp(load_splits(tile + 1u), split, split + count);
  }
  first_a = split;
  first_b = first - split;
  count_a = end - split;
  count_b = count - count_a;

  let width = sg_size * ROWS;
  let share = f32(count_a) / f32(count);
  var start = lanes.id * width * CHUNKS;
  if (start >= count) { return; }
  // Three standard deviations of the path of two random runs, over as many places as two tests of all lanes.
  var at = crossing(start, max(start, count_b) - count_b, min(start, count_a), u32(f32(start) * share), max({{ guess_step }}u / sg_size, 1u));
  for (var chunk = 0u; chunk < CHUNKS; chunk++) {
    if (start >= count) { break; }
    let stop = min(start + width, count);
    let least = max(at, max(stop, count_b) - count_b);
    let most = min(at + (stop - start), count_a);
    let next = crossing(stop, least, most, at + u32(f32(stop - start) * share), 1u);
    let here_a = next - at;
    let here_b = (stop - start) - here_a;
    let begin_a = first_a + at;
    let last_b = first_b + (start - at) + width - 1u;
//$ for r in range(rows)
    let i_{{ r }} = {{ r }}u * sg_size + sg_lane;
    var key_{{ r }} = ~Key(0u);
    if (i_{{ r }} < here_a) {
      key_{{ r }} = key_a(begin_a + i_{{ r }});
    } else if (i_{{ r }} >= width - here_b) {
      key_{{ r }} = key_b(last_b - i_{{ r }});
    }
//$ endfor
//$ set network = namespace(half=rows // 2)
//$ for stage in range(row_stages)
    // Between registers, {{ network.half }} rows apart.
//$ for r in range(rows) if (r // network.half) % 2 == 0
    let low_{{ stage }}_{{ r }} = min(key_{{ r }}, key_{{ r + network.half }});
    key_{{ r + network.half }} = max(key_{{ r }}, key_{{ r + network.half }});
    key_{{ r }} = low_{{ stage }}_{{ r }};
//$ endfor
//$ set network.half = network.half // 2
//$ endfor
    for (var d = sg_size >> 1u; d > 0u; d >>= 1u) {
      let is_upper = (sg_lane & d) != 0u;
      let other_{{ r }} = subgroupShuffleXor(key_{{ r }}, d);  //$ for r in range(rows)
      key_{{ r }} = select(key_{{ r }}, other_{{ r }}, (other_{{ r }} < key_{{ r }}) != is_upper);  //$ for r in range(rows)
    }
    if (i_{{ r }} < stop - start) { store_key(first + start + i_{{ r }}, key_{{ r }}); }  //$ for r in range(rows)
    start = stop;
    at = next;
  }
}
