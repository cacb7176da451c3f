// Counts the digits of all keys. Two uses:
//   histogram   of every digit at once, over all keys: where each bin of each pass begins, and which passes can be left
//               out because all keys agree in their digit; so it decides which buffers each pass reads and writes
//   offsets     of one digit, for each block of tiles, where passes do not look back
// Every bank of workgroup memory has counters of its own, a byte for each of four digits in a word, so that no two lanes of
// a subgroup meet, whatever the keys are. Before a byte can run over, counters are added up and emptied.
// Forward progress: no workgroup waits for another. The last one to finish knows that all counts were added, but WGSL does
// not promise that it sees them at once: if their sum is not n after some looks, it counts everything again.
// Bindings: params, keys, and routes and sums, or offsets.
//$ include "lib/bindings.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
const BANKS: u32 = {{ banks }}u;
const SETS: u32 = {{ (digits + 3) // 4 }}u;  // of four digits
const CHUNK_ITEMS: u32 = {{ chunk_items }}u;  // keys of an invocation between two reads of memory
// An invocation adds at most CHUNK_ITEMS to a byte per chunk, and WORKGROUP_SIZE / BANKS of them share one.
const CHUNKS_UNTIL_FULL: u32 = {{ chunks_until_full }}u;
var<workgroup> counters: array<atomic<u32>, SETS * BANKS * BINS>;

var<private> lane: u32;
var<private> totals: array<u32, {{ digits }}>;

fn counter(four: u32, bin: u32, bank: u32) -> u32 { return (four * BINS + bin) * BANKS + bank; }

fn count_key(key: Key) {
  let bank = lane & (BANKS - 1u);
//$ for d in range(digits)
  use_digit(params.digit_{{ d }});
  atomicAdd(&counters[counter({{ d // 4 }}u, key_digit(key), bank)], {{ 1 if digits == 1 else "%d" % (256 ** (d % 4)) }}u);
//$ endfor
}

// Adds the counters of this invocation's bin to its totals, and empties them.
fn add_up() {
  workgroupBarrier();
  if (lane < BINS) {
//$ for set in range((digits + 3) // 4)
    var even = 0u;
    var odd = 0u;
    for (var i = 0u; i < BANKS; i++) {
      let word = atomicExchange(&counters[counter({{ set }}u, lane, (lane + i) & (BANKS - 1u))], 0u);
//$ if digits == 1
      even += word;
//$ else
      even += word & 0x00ff00ffu;
      odd += (word >> 8u) & 0x00ff00ffu;
//$ endif
    }
//$ if digits == 1
    totals[0] += even;
//$ else
//$ for d in range(set * 4, [digits, set * 4 + 4] | min)
    totals[{{ d }}] += {{ "(%s%s) & 0xffffu" % ("even" if d % 2 == 0 else "odd", " >> 16u" if d % 4 >= 2 else " >> 0u") }};
//$ endfor
//$ endif
//$ endfor
  }
  workgroupBarrier();
}

// Counts the keys from `first` to before `end`; the bin of this invocation is in `totals`.
//$ for place in places
fn count_range_{{ place }}(first: u32, end: u32) {
  var full = 0u;
  for (var chunk = first; chunk < end; chunk += WORKGROUP_SIZE * CHUNK_ITEMS) {
//$ if vec4
    let i = chunk + lane * 4u;
    if (chunk + WORKGROUP_SIZE * CHUNK_ITEMS <= end) {
//$ for v in range(chunk_items // 4)
      let keys_{{ v }} = load4_keys_{{ place }}(i + {{ 4 * v }}u * WORKGROUP_SIZE);
//$ endfor
//$ for v in range(chunk_items // 4)
//$ for c in "xyzw"
      count_key(keys_{{ v }}.{{ c }});
//$ endfor
//$ endfor
    } else {
      for (var k = chunk + lane; k < end; k += WORKGROUP_SIZE) { count_key(load_keys_{{ place }}(k)); }
    }
//$ else
    let end_of_chunk = min(end, chunk + WORKGROUP_SIZE * CHUNK_ITEMS);
    for (var k = chunk + lane; k < end_of_chunk; k += WORKGROUP_SIZE) { count_key(load_keys_{{ place }}(k)); }
//$ endif
    full += 1u;
//$ if digits > 1
    if (full == CHUNKS_UNTIL_FULL) {
      add_up();
      full = 0u;
    }
//$ endif
  }
  add_up();
}
//$ endfor

fn wg_exclusive(x: u32) -> WorkgroupScan {
  let within = sg_scan(x);
  let before = wg_scan(sg_last(within.inclusive));
  return WorkgroupScan(before.before + within.exclusive, before.total);
}

fn count_begin(lanes: Lanes) {
  enter(lanes);
  lane = sg_id * sg_size + sg_lane;
  for (var i = lane; i < SETS * BANKS * BINS; i += WORKGROUP_SIZE) { atomicStore(&counters[i], 0u); }
  workgroupBarrier();
}

//$ if histogram
//$ include "lib/sort_routes.wgsl"
//$ else
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  let place = load_routes(params.route_index) & 3u;
  if (block >= params.blocks || place == 0u) { return; }
  count_begin(lanes);
  let first = block * params.block_items;
  let end = min(params.n, first + params.block_items);
//$ for place in places
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) { count_range_{{ place }}(first, end); }
//$ endfor
  if (lane < BINS) { store_offsets(lane * params.blocks + block, totals[0]); }
}
//$ endif
