// Counts every digit of all keys at once. The counts say where each bin of each pass begins, and which passes can be skipped
// because all keys agree in their digit. From that the last workgroup to finish decides which buffers each pass reads and writes.
// Forward progress: no workgroup waits for another. The last one to finish knows that all counts were added, but WGSL does
// not promise that it sees them at once. If their sum is not n after SPIN_LIMIT polls, it recounts all keys.
// Bindings: params, keys, routes, sums.
// Params: n (keys); blocks; block_items; digit_0, … (shift, width and word: see lib/sort_key.wgsl).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_scan.wgsl"
//$ include "lib/sort_counters.wgsl"
//$ include "lib/control.wgsl"
override SPIN_LIMIT: u32 = 256u;
var<workgroup> last_to_finish: u32;
var<workgroup> all_added: u32;
var<workgroup> agreeing: atomic<u32>;  // a bit for each digit in which all keys agree

// Writes where each pass reads and writes. The last one writes the output. In place, the first one reads the buffer that the
// last one writes, so their number is even.
fn write_routes(agree: u32) {
  var skip = agree;
  let moving = DIGITS - countOneBits(skip);
//$ if in_place
  if ((moving & 1u) == 1u) { skip &= skip - 1u; }
//$ else
  if (moving == 0u) { skip &= skip - 1u; }
//$ endif
  var left = DIGITS - countOneBits(skip);
  var place = INPUT;
  for (var d = 0u; d < DIGITS; d++) {
    if (((skip >> d) & 1u) == 1u) {
      store_routes(d, 0u);
    } else {
      left -= 1u;
      let to = select(TEMPORARY, OUTPUT, (left & 1u) == 0u);
      store_routes(d, place | ({{ "select(to, LAST, left == 0u)" if encodes else "to" }} << 2u));
      place = to;
    }
  }
}

fn run(block: u32, lanes: Lanes) {
  count_begin(lanes);
  let first = block * params.block_items;
  count_range_input(first, min({{ used.n }}, first + params.block_items));
  if (lane < BINS && !stalls(block)) {
//$ for d in range(digits)
    if (totals[{{ d }}] != 0u) { atomicAdd(&sums[{{ constants.CONTROL_WORDS }}u + {{ d * constants.BINS }}u + lane], totals[{{ d }}]); }
//$ endfor
  }
  if (lane == 0u) { atomicStore(&agreeing, 0u); }
  storageBarrier();
  workgroupBarrier();
  if (lane == 0u) { last_to_finish = select(0u, 1u, state_count_finished(params.blocks)); }
  if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }

  var spins = 0u;
  loop {
    var seen = 0u;
    if (lane < BINS) {
//$ for d in range(digits)
      totals[{{ d }}] = atomicLoad(&sums[{{ constants.CONTROL_WORDS }}u + {{ d * constants.BINS }}u + lane]);
      seen += totals[{{ d }}];
//$ endfor
    }
    let found = wg_exclusive(seen).total;
    if (lane == 0u) { all_added = select(0u, 1u, found == DIGITS * {{ used.n }}); }
    if (workgroupUniformLoad(&all_added) == 1u) { break; }
    spins += 1u;
    if (spins >= SPIN_LIMIT) {
      totals[{{ d }}] = 0u;  //$ for d in range(digits)
      count_range_input(0u, {{ used.n }});
      break;
    }
  }
//$ for d in range(digits)
  let before_{{ d }} = wg_exclusive(select(0u, totals[{{ d }}], lane < BINS)).before;
  if (lane < BINS) {
    store_routes(FIRST_BIN + {{ d * constants.BINS }}u + lane, before_{{ d }});
    atomicStore(&sums[{{ constants.CONTROL_WORDS }}u + {{ d * constants.BINS }}u + lane], 0u);
    if (totals[{{ d }}] == {{ used.n }}) { atomicOr(&agreeing, {{ 2 ** d }}u); }
  }
//$ endfor
  workgroupBarrier();
  if (lane == 0u) {
    write_routes(atomicLoad(&agreeing));
    state_next_epoch();
  }
}
