// The end of the histogram: the last workgroup to finish turns the counts into the places where bins begin, and decides
// which passes move keys, from where, and to where.
//$ include "lib/control.wgsl"
override SPIN_LIMIT: u32 = 256u;
var<workgroup> last_to_finish: u32;
var<workgroup> all_added: u32;
var<workgroup> agreeing: atomic<u32>;  // a bit for each digit in which all keys agree

// Where each pass reads and writes. The last one writes the output; in place, the first reads what the last writes, so
// that their number is even.
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

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  count_begin(lanes);
  let first = block * params.block_items;
  count_range_input(first, min(params.n, first + params.block_items));
  if (lane < BINS && !stalls(block)) {
//$ for d in range(digits)
    if (totals[{{ d }}] != 0u) { atomicAdd(&sums[4u + {{ d * 256 }}u + lane], totals[{{ d }}]); }
//$ endfor
  }
  if (lane == 0u) { atomicStore(&agreeing, 0u); }
  workgroupBarrier();
  if (unfixed != 0u) { atomicStore(&agreeing, 1u); }
  storageBarrier();
  workgroupBarrier();
  if (lane == 0u) {
    // Blocks in the upper half, so that the last one knows that it sees all.
    atomicAdd(&sums[3], (1u << 16u) | atomicLoad(&agreeing));
    last_to_finish = select(0u, 1u, state_count_finished(params.blocks));
  }
  if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }

  var spins = 0u;
  loop {
    var seen = 0u;
    if (lane < BINS) {
//$ for d in range(digits)
      totals[{{ d }}] = atomicLoad(&sums[4u + {{ d * 256 }}u + lane]);
      seen += totals[{{ d }}];
//$ endfor
    }
    let found = wg_exclusive(seen).total;
    if (lane == 0u) { all_added = select(0u, 1u, found == DIGITS * params.n && atomicLoad(&sums[3]) >> 16u == params.blocks); }
    if (workgroupUniformLoad(&all_added) == 1u) { break; }
    spins += 1u;
    if (spins >= SPIN_LIMIT) {
//$ for d in range(digits)
      totals[{{ d }}] = 0u;
//$ endfor
      count_range_input(0u, params.n);
      if (unfixed != 0u) { atomicAdd(&sums[3], 1u); }
      break;
    }
  }
  workgroupBarrier();
  if (lane == 0u) {
    store_routes(UNFIXED, atomicLoad(&sums[3]) & 0xffffu);
    atomicStore(&sums[3], 0u);
    atomicStore(&agreeing, 0u);
  }
//$ for d in range(digits)
  let before_{{ d }} = wg_exclusive(select(0u, totals[{{ d }}], lane < BINS)).before;
  if (lane < BINS) {
    store_routes(FIRST_BIN + {{ d * 256 }}u + lane, before_{{ d }});
    atomicStore(&sums[4u + {{ d * 256 }}u + lane], 0u);
    if (totals[{{ d }}] == params.n) { atomicOr(&agreeing, {{ 2 ** d }}u); }
  }
//$ endfor
  workgroupBarrier();
  if (lane == 0u) {
    write_routes(atomicLoad(&agreeing));
    state_next_epoch();
  }
}
