// The end of a segmented reduction in one dispatch: the last workgroup to finish scans the chains of all blocks, and
// completes the one segment of each block that ends there and began earlier.
// A block publishes two entries: what comes after its last head, as a chain; and the segment that it leaves open to its
// left, in the place of the count of heads, with what it has of it.
// Source: the last block's step is that of the sample threadFenceReduction in NVIDIA's CUDA toolkit, as in reduce.wgsl.
override SPIN_LIMIT: u32 = 256u;
const NO_BLOCK: u32 = 0xffffffffu;
var<workgroup> last_to_finish: u32;
var<workgroup> first_unseen: atomic<u32>;
var<workgroup> unseen_block: u32;

// Whether both entries of a block were seen within SPIN_LIMIT polls.
fn wait_for(block: u32) -> bool {
  for (var spins = 0u; spins < SPIN_LIMIT; spins++) {
    if (state_poll(2u * block).flag != EMPTY && state_poll(2u * block + 1u).flag != EMPTY) { return true; }
  }
  return false;
}
fn publish_block(block: u32, chain: Chain) {
  state_publish(2u * block, TOTAL, chain);
  state_publish(2u * block + 1u, TOTAL, chain_of(unfinished, unfinished_value));
}
// What the items from `first` to `end` - 1 combine to, in their order. All invocations of the workgroup take part.
fn value_of_items(first: u32, end: u32) -> Acc {
  let each = (max(end, first) - first + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let begin = min(first + (sg_id * sg_size + sg_lane) * each, end);
  var x = identity();
  for (var i = begin; i < min(begin + each, end); i++) { x = combine(x, item(i - params.first)); }
  return chain_value(wg_scan_chain(sg_last_chain(sg_scan_chain(chain_of(0u, x)).inclusive)).total);
}
// The first of all offsets that is at least `i`.
fn offset_from(i: u32) -> u32 {
  var least = 0u;
  var most = params.segments + 1u;
  while (least < most) {
    let middle = (least + most) / 2u;
    if (load_offsets(middle) < i) { least = middle + 1u; } else { most = middle; }
  }
  return least;
}
// Finds the two entries of a block from its items and the offsets, and publishes them. By steps of its own, which are slow: a
// second use of block_chain, in a loop or beside the first one, made a compiler slow down the first one, too (H200, 2^28 items
// in segments of 1,024: 603 µs instead of 416), and no GPU tried has needed it. Sums of floats may round in another way.
fn complete_again(block: u32) {
  let first_tile = min(block * tiles_per_block(), used_tiles());
  let end_tile = min(first_tile + tiles_per_block(), used_tiles());
  let begin = min(tile_begin(first_tile), items_in_all());
  let end = min(tile_begin(end_tile), items_in_all());
  // The segment that is open to the left ends in the block, and began earlier.
  let next = offset_from(begin + 1u);
  let left_end = min(load_offsets(min(next, params.segments)), items_in_all());
  let has_left = begin < end && next > 0u && next <= params.segments && load_offsets(max(next, 1u) - 1u) < begin && left_end <= end;
  let left = value_of_items(begin, select(begin, left_end, has_left));
  // The last head; of several segments that begin there, all but one are empty.
  let behind = offset_from(end);
  let head = load_offsets(max(behind, 1u) - 1u);
  let has_head = behind > 0u && head >= begin && begin < end;
  let after = value_of_items(select(begin, head, has_head), end);
  if (is_leader()) {
    // Also where tests make the block stall: it may not be forgotten once more.
    state_store(2u * block, TOTAL, chain_of(select(0u, 1u, has_head), after));
    state_store(2u * block + 1u, TOTAL, chain_of(select(NO_SEGMENT, next - 1u, has_left), left));
  }
  storageBarrier();  // so that the others of this workgroup see it
}
// Completes all segments, and returns NO_BLOCK; or returns a block that was published but not seen. All invocations of the
// workgroup take part.
fn complete_segments() -> u32 {
  let each = (params.blocks + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  // In the order of subgroups and lanes, which need not be that of the invocations' numbers.
  let first = min((sg_id * sg_size + sg_lane) * each, params.blocks);
  let end = min(first + each, params.blocks);
  if (local == 0u) { atomicStore(&first_unseen, NO_BLOCK); }
  workgroupBarrier();
  var sum = chain_identity();
  // Some blocks at a time, so that their loads are on their way at once.
  for (var b = first; b < end; b += {{ at_a_time }}u) {
    var are_seen = true;
//$ for j in range(at_a_time)
    let b_{{ j }} = min(b + {{ j }}u, end - 1u);
    var total_{{ j }} = state_poll(2u * b_{{ j }});
    let left_{{ j }} = state_poll(2u * b_{{ j }} + 1u);
    are_seen = are_seen && total_{{ j }}.flag != EMPTY && left_{{ j }}.flag != EMPTY;
//$ endfor
    if (!are_seen) {
//$ for j in range(at_a_time)
      if (!wait_for(b_{{ j }})) { atomicMin(&first_unseen, b_{{ j }}); }
      total_{{ j }} = state_poll(2u * b_{{ j }});
//$ endfor
    }
    if (b + {{ j }}u < end) { sum = chain_combine(sum, total_{{ j }}.value); }  //$ for j in range(at_a_time)
  }
  workgroupBarrier();
  if (local == 0u) { unseen_block = atomicLoad(&first_unseen); }
  let unseen = workgroupUniformLoad(&unseen_block);
  if (unseen != NO_BLOCK) { return unseen; }
  let lanes_here = sg_scan_chain(sum);
  let whole = wg_scan_chain(sg_last_chain(lanes_here.inclusive));
  var before = chain_combine(whole.before, lanes_here.exclusive);
  for (var b = first; b < end; b += {{ at_a_time }}u) {
//$ for j in range(at_a_time)
    let b_{{ j }} = min(b + {{ j }}u, end - 1u);
    let total_{{ j }} = state_poll(2u * b_{{ j }}).value;
    let left_{{ j }} = state_poll(2u * b_{{ j }} + 1u).value;
//$ endfor
//$ for j in range(at_a_time)
    if (b + {{ j }}u < end) {
      if (left_{{ j }}.x != NO_SEGMENT) { put_segment(left_{{ j }}.x, combine(chain_value(before), chain_value(left_{{ j }}))); }
      before = chain_combine(before, total_{{ j }});
    }
//$ endfor
  }
  return NO_BLOCK;
}
