// Reduce in one dispatch: each workgroup combines a block of consecutive tiles and publishes its total. The last workgroup
// to finish combines the totals. Which invocation combines which items is fixed, so a result is the same in every run. A
// single block publishes nothing.
// Source: the last block's final step is that of the sample threadFenceReduction in NVIDIA's CUDA toolkit; here a total
// and its ready flag are one word, so no fence is needed.
// Forward progress: no workgroup waits for another. The last one to finish knows that all totals were published, but WGSL
// does not promise that it sees them at once. It recomputes a block whose total it has not seen after SPIN_LIMIT polls.
// Bindings: params, input, output, and control and states for the totals.
// Params: n (items of the window); max_blocks; tiles; tiles_per_block; blocks (workgroups that have work); flags
// (sum of some of RAW_INPUT, RAW_OUTPUT and HAS_CARRY).

struct Params {
  n: u32,
  tiles: u32,
  tiles_per_block: u32,
  blocks: u32,
  flags: u32,
  identity_bits: u32,
  input_offset: u32,
  output_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> words_2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> control: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> states: array<atomic<u64>>;

fn load_input(i: u32) -> u32 {
  let k = params.input_offset + i;
  return words_1[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_input(i: u32) -> vec4<u32> {
  return words_1[(params.input_offset + i) >> 2u];
}
fn load_output(i: u32) -> u32 {
  let k = params.output_offset + i;
  return words_2[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_output(i: u32) -> vec4<u32> {
  return words_2[(params.output_offset + i) >> 2u];
}
// A write to one component may touch the whole vec4: one invocation must write all items of a vec4.
fn store_output(i: u32, word: u32) {
  let k = params.output_offset + i;
  words_2[k >> 2u][k & 3u] = word;
}
fn store4_output(i: u32, words: vec4<u32>) {
  words_2[(params.output_offset + i) >> 2u] = words;
}

override WORKGROUP_SIZE: u32 = 256u;

// The operator on accumulators (Acc), and the conversion between items and accumulators.
alias T = u32;
alias Acc = u32;

alias Quad = vec4<Acc>;
fn quad_of(x: Acc) -> Quad { return vec4<Acc>(x); }
// From the parameters, because a constant infinity is an error in Tint.
fn identity() -> Acc { return bitcast<Acc>(params.identity_bits); }

// An accumulator as bits, for scratch memory.
fn pack(x: Acc) -> u32 { return bitcast<u32>(x); }
fn unpack(word: u32) -> Acc { return bitcast<Acc>(word); }
// rounded: a product by itself, which a compiler must not contract with an addition where the order is fixed.

fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
fn combine4(a: Quad, b: Quad) -> Quad { return a + b; }
// From items to accumulators of one word, and back, where both are of one datatype.
fn lift(word: u32) -> Acc { return bitcast<Acc>(word); }
fn lift4(words: vec4<u32>) -> vec4<Acc> { return bitcast<vec4<Acc>>(words); }
fn lower(x: Acc) -> u32 { return bitcast<u32>(x); }
fn lower4(x: vec4<Acc>) -> vec4<u32> { return bitcast<vec4<u32>>(x); }
// From subgroups to the workgroup: combines one value per subgroup, in order.
var<workgroup> wg_totals: array<Acc, WORKGROUP_SIZE>;

// Subgroup building blocks in three forms with one meaning:
//   native    the hardware's subgroups, of any size that divides the workgroup
//   none      no subgroups: every invocation is a subgroup of one (lib/workgroup.wgsl does the work with barriers)
//   emulated  subgroups of 32 in workgroup memory, to test sizes that no available adapter has
// All calls must be in control flow that is uniform over the workgroup, because the emulation has barriers. From
// `look_back_enter` to its end only the look_back_ functions may be called; only subgroup 0 needs their results.
struct Lanes {
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) lane: u32,
  @builtin(subgroup_id) id: u32,
  @builtin(num_subgroups) count: u32,
}
var<private> local: u32;
var<private> sg_size: u32;
var<private> sg_lane: u32;
var<private> sg_id: u32;
var<private> sg_count: u32;

struct SubgroupScan { exclusive: Acc, inclusive: Acc }

// The first lane of the subgroup that looks back. It need not be invocation 0.
fn is_leader() -> bool { return sg_id == 0u && sg_lane == 0u; }

fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_size = lanes.size;
  sg_lane = lanes.lane;
  sg_id = lanes.id;
  sg_count = lanes.count;
}
fn sg_last(x: Acc) -> Acc { return subgroupShuffle(x, sg_size - 1u); }
fn sg_scan(x: Acc) -> SubgroupScan {
  let exclusive = subgroupExclusiveAdd(x);
  return SubgroupScan(exclusive, combine(exclusive, x));
}
// Keeps the order of the lanes where the operator needs it.
fn sg_reduce(x: Acc) -> Acc {
  return subgroupAdd(x);
}
fn look_back_enter() -> bool { return sg_id == 0u; }
fn look_back_max(x: u32) -> u32 { return subgroupMax(x); }
fn look_back_reduce(x: Acc) -> Acc { return sg_reduce(x); }
struct WorkgroupScan { before: Acc, total: Acc }

// x is the total of the invocation's subgroup. Returns the total of the subgroups before it, and of all.
fn wg_scan(x: Acc) -> WorkgroupScan {
  workgroupBarrier();
  if (sg_lane == 0u) { wg_totals[sg_id] = x; }
  workgroupBarrier();
  var before = identity();
  var total = identity();
  for (var s = 0u; s < sg_count; s++) {
    if (s == sg_id) { before = total; }
    total = combine(total, wg_totals[s]);
  }
  return WorkgroupScan(before, total);
}
// A tile in registers: tile_load leaves behind its items as accumulators, with the identity for those past the end.
// The template writes out every row: a driver that does not unroll a loop over them keeps the items in slow memory
// instead of registers (half the speed with 8 rows on an H200).
// Where the items of a tile lie: WORKGROUP_SIZE × VECS × 4 consecutive items. A subgroup owns consecutive rows. A row is QUADS
// vec4 per lane, side by side, so loads and stores are contiguous over the lanes; and combining lane by lane, row by row,
// subgroup by subgroup keeps the order of the items.
const VECS: u32 = 2u;
const QUADS: u32 = 1u;
const ROWS: u32 = VECS / QUADS;

fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 {
  return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size * QUADS + sg_lane * QUADS) * 4u;
}
var<private> tile_items: array<Quad, VECS>;

// The input holds items, or accumulators packed by an earlier kernel.
const RAW_INPUT: u32 = 1u;
const RAW_OUTPUT: u32 = 2u;
fn item(i: u32) -> Acc { return lift(load_input(i)); }
fn item4(i: u32) -> vec4<Acc> { return lift4(load4_input(i)); }
fn result(x: Acc) -> u32 { return lower(x); }
fn result4(x: vec4<Acc>) -> vec4<u32> { return lower4(x); }
fn put(i: u32, x: Acc) { store_output(i, result(x)); }
fn put4(i: u32, x: Quad) { store4_output(i, result4(x)); }
// Items i to i + 3 as accumulators, with the identity for those past the end.
fn lifted4_guarded(i: u32) -> Quad {
  if (i + 4u <= params.n) { return item4(i); }
  var v = quad_of(identity());
  if (i < params.n) { v.x = item(i); }
  if (i + 1u < params.n) { v.y = item(i + 1u); }
  if (i + 2u < params.n) { v.z = item(i + 2u); }
  return v;
}

fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= params.n; }

fn tile_load(tile: u32) {
  if (tile_is_full(tile)) {
    tile_items[0] = item4(tile_item(tile, 0u));
    tile_items[1] = item4(tile_item(tile, 1u));
  } else {
    tile_items[0] = lifted4_guarded(tile_item(tile, 0u));
    tile_items[1] = lifted4_guarded(tile_item(tile, 1u));
  }
}

// The tile's total, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  var total = identity();
  for (var r = 0u; r < ROWS; r++) {
    let v = lifted4_guarded(tile_item(tile, r));
    total = combine(total, sg_reduce(combine(combine(v.x, v.y), combine(v.z, v.w))));
  }
  return wg_scan(total).total;
}
// The split of the items that count into blocks of tiles: that of an array with so many items.
// The total of a block of tiles; the same for every invocation. The order of the items does not matter, so every invocation
// keeps four separate sums until the end.
fn block_total(block: u32) -> Acc {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
  var sums = quad_of(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    sums = combine4(sums, tile_items[0]);
    sums = combine4(sums, tile_items[1]);
  }
  return wg_scan(sg_reduce(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
}
// The chained state of a single-pass scan: one word {epoch, flag, value} per tile. It is read and written as a whole,
// because WGSL's atomics are relaxed and promise no order between two words. Two forms:
//   u64     one 64-bit atomic: value in the low half, epoch and flag in the high half
//   u32x2   two 32-bit atomics, each with 16 bits of the value, the epoch and the flag; a pair whose tags differ is
//           being written and counts as unpublished
// The epoch tells this dispatch's words from those of the previous one. It lives in the buffer, and the last workgroup to
// finish increments it, so nothing needs clearing between dispatches. It may wrap: every dispatch publishes every tile, so
// a word of another epoch is of the previous one, never older.
const EMPTY: u32 = 0u;      // nothing published in this epoch
const TOTAL: u32 = 1u;      // the tile's own total
const INCLUSIVE: u32 = 2u;  // the total of all tiles up to this one

// Counters that the workgroups of a dispatch share: tickets, finished workgroups, and the epoch, which tells this dispatch's
// state from that of the previous one.
override EPOCH_BITS: u32 = 30u;
// Testing only: every STALL_EVERY-th tile never publishes (0: all publish).
override STALL_EVERY: u32 = 0u;

var<private> epoch: u32;

fn stalls(tile: u32) -> bool { return STALL_EVERY != 0u && (tile + 1u) % max(STALL_EVERY, 1u) == 0u; }

// control: [0] the next ticket, [1] finished workgroups, [2] the epoch.
// The tile of this workgroup is its number. That saves a ticket's trip to memory, but nothing promises that the workgroups
// of earlier tiles have started. If they have not, the fallback does their work.
fn state_enter(workgroup: u32) -> u32 { return workgroup; }
// Reads the epoch. Invocations call it before they publish or poll.
fn state_begin() { epoch = atomicLoad(&control[2]); }

// Counts the calling workgroup as finished; true for the last one of `workgroups`. One invocation calls it, after all
// invocations of the workgroup have published.
fn state_count_finished(workgroups: u32) -> bool { return atomicAdd(&control[1], 1u) == workgroups - 1u; }

// Prepares the next dispatch: first ticket, next epoch. One invocation of the last workgroup calls it, when no workgroup
// will read the state again.
fn state_next_epoch() {
  atomicStore(&control[0], 0u);
  atomicStore(&control[1], 0u);
  atomicStore(&control[2], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
}
struct Published { flag: u32, value: Acc }

fn state_tag(flag: u32) -> u32 { return (epoch << 2u) | flag; }

fn state_publish(tile: u32, flag: u32, value: Acc) {
  if (stalls(tile)) { return; }
  atomicStore(&states[tile], (u64(state_tag(flag)) << 32u) | u64(pack(value)));
}
fn state_poll(tile: u32) -> Published {
  let word = atomicLoad(&states[tile]);
  let tag = u32(word >> 32u);
  return Published(select(EMPTY, tag & 3u, (tag >> 2u) == epoch), unpack(u32(word & 0xfffffffflu)));
}
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
      if (next == again) { published = Published(TOTAL, again_total); }
      if (published.flag == EMPTY) {
        spins += 1u;
        continue;
      }
      sum = combine(sum, published.value);
      next += 1u;
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
  return wg_scan(sg_reduce(sum)).total;
}
var<workgroup> last_to_finish: u32;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  enter(lanes);
  // Read before this workgroup counts as finished: the last one to finish increments the epoch.
  if (params.blocks > 1u) { state_begin(); }
  let total = block_total(block);
  if (params.blocks > 1u) {
    if (is_leader()) {
      state_publish(block, TOTAL, total);
      last_to_finish = select(0u, 1u, state_count_finished(params.blocks));
    }
    if (workgroupUniformLoad(&last_to_finish) == 0u) { return; }
    let whole = combine_published(0u, params.blocks);
    if (is_leader()) {
      state_next_epoch();
      put(0u, whole);
    }
    return;
  }
  if (local == 0u) { put(block, total); }
}
