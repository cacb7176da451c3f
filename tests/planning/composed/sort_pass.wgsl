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

struct Params {
  n: u32,
  route_index: u32,
  bins_index: u32,
  tiles: u32,
  digit: u32,
  identity_bits: u32,
  keys_input_offset: u32,
  routes_offset: u32,
  keys_output_offset: u32,
  keys_temporary_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<u32>;
@group(0) @binding(2) var<storage, read> words_2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> words_3: array<u32>;
@group(0) @binding(4) var<storage, read_write> words_4: array<u32>;
@group(0) @binding(5) var<storage, read_write> states: array<atomic<u32>>;

fn load_keys_input(i: u32) -> u32 {
  let k = params.keys_input_offset + i;
  return words_1[k];
}
fn load4_keys_input(i: u32) -> vec4<u32> {
  return vec4<u32>(load_keys_input(i + 0u), load_keys_input(i + 1u), load_keys_input(i + 2u), load_keys_input(i + 3u));
}
fn load_routes(i: u32) -> u32 {
  let k = params.routes_offset + i;
  return words_2[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_routes(i: u32) -> vec4<u32> {
  return words_2[(params.routes_offset + i) >> 2u];
}
fn load_keys_output(i: u32) -> u32 {
  let k = params.keys_output_offset + i;
  return words_3[k];
}
fn load4_keys_output(i: u32) -> vec4<u32> {
  return vec4<u32>(load_keys_output(i + 0u), load_keys_output(i + 1u), load_keys_output(i + 2u), load_keys_output(i + 3u));
}
fn store_keys_output(i: u32, word: u32) {
  let k = params.keys_output_offset + i;
  words_3[k] = word;
}
fn store4_keys_output(i: u32, words: vec4<u32>) {
  store_keys_output(i + 0u, words.x);
  store_keys_output(i + 1u, words.y);
  store_keys_output(i + 2u, words.z);
  store_keys_output(i + 3u, words.w);
}
fn load_keys_temporary(i: u32) -> u32 {
  let k = params.keys_temporary_offset + i;
  return words_4[k];
}
fn load4_keys_temporary(i: u32) -> vec4<u32> {
  return vec4<u32>(load_keys_temporary(i + 0u), load_keys_temporary(i + 1u), load_keys_temporary(i + 2u), load_keys_temporary(i + 3u));
}
fn store_keys_temporary(i: u32, word: u32) {
  let k = params.keys_temporary_offset + i;
  words_4[k] = word;
}
fn store4_keys_temporary(i: u32, words: vec4<u32>) {
  store_keys_temporary(i + 0u, words.x);
  store_keys_temporary(i + 1u, words.y);
  store_keys_temporary(i + 2u, words.z);
  store_keys_temporary(i + 3u, words.w);
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
// The last of the bits, counted from 1; of 32 and of all lanes. Without branches, which are between subgroup operations here;
// drivers know the words that are always 0.
fn last_bit(bits: u32) -> u32 { return 32u - countLeadingZeros(bits); }
fn last_lane(votes: vec4<u32>) -> u32 {
  var last = last_bit(votes.x);
  last = select(last, 32u + last_bit(votes.y), votes.y != 0u);
  last = select(last, 64u + last_bit(votes.z), votes.z != 0u);
  return select(last, 96u + last_bit(votes.w), votes.w != 0u);
}
// The last lane with a vote, counted from 1; 0 if there is none.
fn look_back_last(vote: bool) -> u32 { return last_lane(subgroupBallot(vote)); }
fn look_back_reduce(x: Acc) -> Acc { return sg_reduce(x); }
// Votes of the 32 lanes around this lane (of all lanes in a smaller subgroup), and the value of another lane.
fn sg_ballot(vote: bool) -> u32 {
  let votes = subgroupBallot(vote);
  // Drivers know the size when they compile, so this is free where it is 32.
  if (sg_size > 32u) { return votes[sg_lane >> 5u]; }
  return votes.x;
}
fn sg_shuffle(x: u32, from_lane: u32) -> u32 { return subgroupShuffle(x, from_lane); }
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
// Keys as the radix sort sees them: as codes, of which it sorts by one digit after another. Digits are those of
// `key_fixed` of a code.
const BINS: u32 = 256u;

// The current digit: its first bit, its mask, and its word in the key.
var<private> digit_shift: u32;
var<private> digit_mask: u32;
fn use_digit(packed: u32) {
  digit_shift = packed & 31u;
  digit_mask = (1u << ((packed >> 5u) & 15u)) - 1u;
}

// Passes hand codes to one another: only the first one encodes, and only the last one decodes.
// Keys as codes: numbers whose unsigned order is the wanted order. A code holds every bit of its key, so it can be decoded.
// But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in descending order a NaN
// would come first: key_fixed of a code gives such keys their place. A key of 8 or 16 bits is the upper part of its code,
// whose other bits are 0.
alias Key = u32;
fn key_encode(item: Key) -> Key {
  let key = item;
  return key;
}
fn key_decode(code: Key) -> Key {
  return key_encode(code);
}
fn key_read(item: Key) -> Key { return item; }
fn key_written(code: Key) -> Key { return code; }
fn key_fixed(code: Key) -> Key {
  return code;
}
const LAST_CODE: Key = 0xffffffffu;
fn key_digit(code: Key) -> u32 { return (code >> digit_shift) & digit_mask; }
// Where a pass reads and writes: 0 for a pass that is skipped, because all keys agree in its digit; otherwise the place of
// its source plus 4 × that of its destination. sort_histogram.wgsl decides it on the GPU.
const INPUT: u32 = 1u;
const OUTPUT: u32 = 2u;
const TEMPORARY: u32 = 3u;
// As a destination: the output of the last pass, which writes keys instead of codes.
const LAST: u32 = 1u;
// Index in the routes: where the bins of each digit begin.
const FIRST_BIN: u32 = 8u;
// Stable ranking of a tile of keys by one digit, for subgroups of any size and for none.
// Row r of a tile is held by 32 neighbouring lanes: ITEMS rounds of 32 consecutive keys. Every row has a counter per
// bin in `stage`, which later holds the keys.
// Source: the ranking by matching lanes is that of Adinets and Merrill, "Onesweep" (2022). WGSL cannot match lanes, so
// eight ballots replace it.
const ITEMS: u32 = 2u;
const ROWS: u32 = 8u;
const ROW_ITEMS: u32 = 32u * ITEMS;
const TILE: u32 = ROWS * ROW_ITEMS;
// Counters of the rows, then keys.
var<workgroup> stage: array<atomic<u32>, 2048>;
var<workgroup> rank_steps: u32;
var<private> lane: u32;  // in the workgroup, in the order of the subgroups
var<private> row: u32;
var<private> keys: array<u32, ITEMS>;
// Ranks in the tile, two per word: registers decide how many workgroups fit on a multiprocessor.
var<private> ranks: array<u32, (ITEMS + 1u) / 2u>;

fn rank_of(k: u32) -> u32 { return (ranks[k >> 1u] >> (16u * (k & 1u))) & 0xffffu; }
fn set_rank(k: u32, rank: u32) {
  if ((k & 1u) == 0u) { ranks[k >> 1u] = rank; } else { ranks[k >> 1u] |= rank << 16u; }
}
fn add_to_rank(k: u32, more: u32) { ranks[k >> 1u] += more << (16u * (k & 1u)); }

fn ranked_digit(code: Key) -> u32 { return key_digit(key_fixed(code)); }

// Position in the tile of this invocation's key in round k.
fn tile_position(k: u32) -> u32 { return row * ROW_ITEMS + k * 32u + (lane & 31u); }

fn rank_enter(lanes: Lanes) {
  enter(lanes);
  lane = sg_id * sg_size + sg_lane;
  row = lane >> 5u;
  if (local == 0u) { rank_steps = max(1u, 32u / sg_size); }
}

// Scans a number of each invocation: the sum before this invocation, and the total.
fn wg_exclusive(x: u32) -> WorkgroupScan {
  let within = sg_scan(x);
  let before = wg_scan(sg_last(within.inclusive));
  return WorkgroupScan(before.before + within.exclusive, before.total);
}
// Ranks the tile's keys in their rows, and returns to invocation b < BINS the number of keys in bin b.
fn tile_count() -> u32 {
  atomicStore(&stage[lane + 0u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 1u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 2u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 3u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 4u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 5u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 6u * WORKGROUP_SIZE], 0u);
  atomicStore(&stage[lane + 7u * WORKGROUP_SIZE], 0u);
  workgroupBarrier();
  rank_rows();
  var total = 0u;
  if (lane < BINS) {
    total += atomicLoad(&stage[0u + lane]);
    total += atomicLoad(&stage[256u + lane]);
    total += atomicLoad(&stage[512u + lane]);
    total += atomicLoad(&stage[768u + lane]);
    total += atomicLoad(&stage[1024u + lane]);
    total += atomicLoad(&stage[1280u + lane]);
    total += atomicLoad(&stage[1536u + lane]);
    total += atomicLoad(&stage[1792u + lane]);
  }
  return total;
}

// Turns ranks in a row into ranks in the tile. `first` is the rank of the first key of this invocation's bin.
fn tile_rank(first: u32) {
  if (lane < BINS) {
    // Read a second time: kept in registers, these counts would cost the second workgroup on a multiprocessor.
    var next = first;
    let count_0 = atomicLoad(&stage[0u + lane]);
    atomicStore(&stage[0u + lane], next);
    next += count_0;
    let count_1 = atomicLoad(&stage[256u + lane]);
    atomicStore(&stage[256u + lane], next);
    next += count_1;
    let count_2 = atomicLoad(&stage[512u + lane]);
    atomicStore(&stage[512u + lane], next);
    next += count_2;
    let count_3 = atomicLoad(&stage[768u + lane]);
    atomicStore(&stage[768u + lane], next);
    next += count_3;
    let count_4 = atomicLoad(&stage[1024u + lane]);
    atomicStore(&stage[1024u + lane], next);
    next += count_4;
    let count_5 = atomicLoad(&stage[1280u + lane]);
    atomicStore(&stage[1280u + lane], next);
    next += count_5;
    let count_6 = atomicLoad(&stage[1536u + lane]);
    atomicStore(&stage[1536u + lane], next);
    next += count_6;
    let count_7 = atomicLoad(&stage[1792u + lane]);
    atomicStore(&stage[1792u + lane], next);
    next += count_7;
  }
  workgroupBarrier();
  add_to_rank(0u, atomicLoad(&stage[row * BINS + ranked_digit(keys[0])]));
  add_to_rank(1u, atomicLoad(&stage[row * BINS + ranked_digit(keys[1])]));
  workgroupBarrier();
}

// The lanes of the row and of the subgroup with the same digit.
fn matching_lanes(digit: u32, all: u32) -> u32 {
  var lanes = all;
  var votes = 0u;
  votes = sg_ballot((digit & 1u) != 0u);
  lanes &= select(~votes, votes, (digit & 1u) != 0u);
  votes = sg_ballot((digit & 2u) != 0u);
  lanes &= select(~votes, votes, (digit & 2u) != 0u);
  votes = sg_ballot((digit & 4u) != 0u);
  lanes &= select(~votes, votes, (digit & 4u) != 0u);
  votes = sg_ballot((digit & 8u) != 0u);
  lanes &= select(~votes, votes, (digit & 8u) != 0u);
  votes = sg_ballot((digit & 16u) != 0u);
  lanes &= select(~votes, votes, (digit & 16u) != 0u);
  votes = sg_ballot((digit & 32u) != 0u);
  lanes &= select(~votes, votes, (digit & 32u) != 0u);
  votes = sg_ballot((digit & 64u) != 0u);
  lanes &= select(~votes, votes, (digit & 64u) != 0u);
  votes = sg_ballot((digit & 128u) != 0u);
  lanes &= select(~votes, votes, (digit & 128u) != 0u);
  return lanes;
}

fn rank_lane() -> u32 { return sg_lane & 31u; }
fn leader_of(lanes: u32) -> u32 { return (sg_lane & ~31u) + countTrailingZeros(lanes); }

// A row that is (part of) one subgroup, whose lanes run in step. The shuffle depends on the addition's result, so the
// additions of a row keep the order of its rounds.
fn rank_in_step(key: Key, all: u32) -> u32 {
  let digit = ranked_digit(key);
  let lanes = matching_lanes(digit, all);
  let before = countOneBits(lanes & ((1u << rank_lane()) - 1u));
  var first = 0u;
  if (before == 0u) {
    // No other lane accesses this counter meanwhile; a load and a store are faster than an atomic addition.
    first = atomicLoad(&stage[row * BINS + digit]);
    atomicStore(&stage[row * BINS + digit], first + countOneBits(lanes));
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
}

// A row of several subgroups, which rank one after the other.
fn rank_in_turn(key: Key, all: u32, steps: u32) -> u32 {
  let digit = ranked_digit(key);
  let lanes = matching_lanes(digit, all);
  let before = countOneBits(lanes & ((1u << rank_lane()) - 1u));
  let turn = (lane & 31u) / sg_size;
  var first = 0u;
  for (var step = 0u; step < steps; step++) {
    if (step == turn && before == 0u) { first = atomicAdd(&stage[row * BINS + digit], countOneBits(lanes)); }
    workgroupBarrier();
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
}
fn rank_rows() {
  let all = select((1u << (sg_size & 31u)) - 1u, 0xffffffffu, sg_size >= 32u);
  let steps = workgroupUniformLoad(&rank_steps);
  if (steps == 1u) {
    set_rank(0u, rank_in_step(keys[0], all));
    set_rank(1u, rank_in_step(keys[1], all));
  } else {
    set_rank(0u, rank_in_turn(keys[0], all, steps));
    set_rank(1u, rank_in_turn(keys[1], all, steps));
  }
  workgroupBarrier();
}
// A ranked tile in workgroup memory, one part at a time, so that keys of one digit are contiguous.
// Puts the items of a part in the order of their ranks: the PART items from rank part × PART on. They are in registers; with
// several parts those of the other ones stay there.
const PARTS: u32 = 2u;
const PART: u32 = TILE / PARTS;
fn stage_keys(part: u32) {
  if (rank_of(0u) - part * PART < PART) {
    stage_one_keys(rank_of(0u) - part * PART, keys[0]);
  }
  if (rank_of(1u) - part * PART < PART) {
    stage_one_keys(rank_of(1u) - part * PART, keys[1]);
  }
  workgroupBarrier();
}
fn stage_one_keys(i: u32, word: u32) { atomicStore(&stage[i], word); }
fn staged_keys(i: u32) -> u32 { return atomicLoad(&stage[i]); }
// Loads the items of a tile into the registers of the invocations. A pass reads one of three buffers and writes another. The
// GPU chooses them, once for the whole dispatch (see the routes in lib/sort_key.wgsl). So each load stands here three times,
// and full and partial tiles share it, because long texts are slow: past the end the last item is loaded again.
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * TILE <= params.n; }

fn read_keys(tile: u32, place: u32) {
  let first = tile * TILE + tile_position(0u);
  let most = params.n - 1u;
  if (place == INPUT) {
    keys[0] = load_keys_input(min(first + 0u, most));
    keys[1] = load_keys_input(min(first + 32u, most));
  }
  else if (place == OUTPUT) {
    keys[0] = load_keys_output(min(first + 0u, most));
    keys[1] = load_keys_output(min(first + 32u, most));
  }
  else if (place == TEMPORARY) {
    keys[0] = load_keys_temporary(min(first + 0u, most));
    keys[1] = load_keys_temporary(min(first + 32u, most));
  }
}
// Keys past the end rank behind all others: they have the last digit and the last places in the tile.
// Keys that are their own codes (not `encodes`) need a separate text. With the common one, NVIDIA's compiler uses one
// register too many for pairs, which costs a third (docs/contribute/performance.md, Sorts).
fn read_codes(tile: u32, place: u32) {
  read_keys(tile, place);
  keys[0] = key_encode(keys[0]);
  keys[1] = key_encode(keys[1]);
  if (tile_is_full(tile)) { return; }
  let first = tile * TILE + tile_position(0u);
  if (first + 0u >= params.n) { keys[0] = LAST_CODE; }
  if (first + 32u >= params.n) { keys[1] = LAST_CODE; }
}
// Writes a ranked tile to the runs of its bins, in the output or in the temporary copy.
// By bin, the offset from the position of a key in the tile to its position in the output; before that, counts of an
// unpublished tile.
var<workgroup> run_offsets: array<atomic<u32>, BINS>;

// Pairs whose keys are not encoded, or are bytes, choose the place for each store; for others two texts are faster.
// Writes the ranked keys of a tile, whose first part is staged, to one place: the output or the temporary copy. Where a key
// went, its value goes. Values are loaded once, into the registers that the last keys leave, while those are written.
fn write_output(tile: u32, route: u32) {
  
  let valid = min(TILE, params.n - tile * TILE);
  
  
  if (0u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys(0u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + 0u * WORKGROUP_SIZE + lane;
    store_keys_output(to, key_decode(key));
    
  }
  workgroupBarrier(); stage_keys(1u);
  
  if (1u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys(0u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + 1u * WORKGROUP_SIZE + lane;
    store_keys_output(to, key_decode(key));
    
  }
}
// Writes the ranked keys of a tile, whose first part is staged, to one place: the output or the temporary copy. Where a key
// went, its value goes. Values are loaded once, into the registers that the last keys leave, while those are written.
fn write_temporary(tile: u32, route: u32) {
  
  let valid = min(TILE, params.n - tile * TILE);
  
  
  if (0u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys(0u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + 0u * WORKGROUP_SIZE + lane;
    store_keys_temporary(to, key_decode(key));
    
  }
  workgroupBarrier(); stage_keys(1u);
  
  if (1u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys(0u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + 1u * WORKGROUP_SIZE + lane;
    store_keys_temporary(to, key_decode(key));
    
  }
}
// Writes a tile whose keys are ranked and whose first part is staged.
fn tile_write(tile: u32, route: u32) {
  let to_output = (route >> 2u) != TEMPORARY;
  if (to_output) { write_output(tile, route); } else { write_temporary(tile, route); }
}
// The chained state of a pass: a word per tile and bin, {epoch: 1 bit, inclusive: 1 bit, keys: 30 bits}. One bit of epoch
// is enough, because every dispatch publishes every tile: a word of another epoch is of the previous one. The words lie
// behind the four of lib/control.wgsl in one buffer, so that a pass needs at most eight buffers.
// Counters that the workgroups of a dispatch share: tickets, finished workgroups, and the epoch, which tells this dispatch's
// state from that of the previous one.
override EPOCH_BITS: u32 = 30u;
// Testing only: every STALL_EVERY-th tile never publishes (0: all publish).
override STALL_EVERY: u32 = 0u;

var<private> epoch: u32;

fn stalls(tile: u32) -> bool { return STALL_EVERY != 0u && (tile + 1u) % max(STALL_EVERY, 1u) == 0u; }

// states: [0] the next ticket, [1] finished workgroups, [2] the epoch.
// The tile of this workgroup is its number. That saves a ticket's trip to memory, but nothing promises that the workgroups
// of earlier tiles have started. If they have not, the fallback does their work.
fn state_enter(workgroup: u32) -> u32 { return workgroup; }
// Reads the epoch. Invocations call it before they publish or poll.
fn state_begin() { epoch = atomicLoad(&states[2]); }

// Counts the calling workgroup as finished; true for the last one of `workgroups`. One invocation calls it, after all
// invocations of the workgroup have published.
fn state_count_finished(workgroups: u32) -> bool { return atomicAdd(&states[1], 1u) == workgroups - 1u; }

// Prepares the next dispatch: first ticket, next epoch. One invocation of the last workgroup calls it, when no workgroup
// will read the state again.
fn state_next_epoch() {
  atomicStore(&states[0], 0u);
  atomicStore(&states[1], 0u);
  atomicStore(&states[2], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
}
const COUNT: u32 = 0u;       // the keys of this tile
const INCLUSIVE: u32 = 1u;   // plus the start of the bin and the keys of all earlier tiles

fn digit_publish(tile: u32, bin: u32, flag: u32, value: u32) {
  // The first epoch is 0, and unwritten words are 0, too: so the bit is the inverse.
  let fresh = select(epoch ^ 1u, epoch, stalls(tile));
  atomicStore(&states[4u + tile * BINS + bin], (fresh << 31u) | (flag << 30u) | value);
}
fn digit_poll(tile: u32, bin: u32) -> u32 {
  return atomicLoad(&states[4u + tile * BINS + bin]);
}
fn digit_is_published(word: u32) -> bool { return (word >> 31u) == (epoch ^ 1u); }
fn digit_inclusive(word: u32) -> bool { return (word & 0x40000000u) != 0u; }
fn digit_value(word: u32) -> u32 { return word & 0x3fffffffu; }
override SPIN_LIMIT: u32 = 256u;
var<workgroup> stalled: atomic<u32>;

// Recounts the digits of a full tile, and returns the count of this invocation's bin. Keys in registers stay.
fn count_again(tile: u32, place: u32) -> u32 {
  workgroupBarrier();
  if (lane < BINS) { atomicStore(&run_offsets[lane], 0u); }
  workgroupBarrier();
  for (var i = tile * TILE + lane; i < (tile + 1u) * TILE; i += WORKGROUP_SIZE) {
    var key: Key;
    if (place == INPUT) { key = load_keys_input(i); }
    if (place == OUTPUT) { key = load_keys_output(i); }
    if (place == TEMPORARY) { key = load_keys_temporary(i); }
    let code = key_encode(key);
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
    let word_0 = digit_poll(max(remaining, 1u) - 1u, lane);
    let word_1 = digit_poll(max(remaining, 2u) - 2u, lane);
    let word_2 = digit_poll(max(remaining, 3u) - 3u, lane);
    var on = true;
    on = on && remaining > 0u && digit_is_published(word_0);
    if (on) {
      sum += digit_value(word_0);
      remaining = select(remaining - 1u, 0u, digit_inclusive(word_0));
    }
    on = on && remaining > 0u && digit_is_published(word_1);
    if (on) {
      sum += digit_value(word_1);
      remaining = select(remaining - 1u, 0u, digit_inclusive(word_1));
    }
    on = on && remaining > 0u && digit_is_published(word_2);
    if (on) {
      sum += digit_value(word_2);
      remaining = select(remaining - 1u, 0u, digit_inclusive(word_2));
    }
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

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let number = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (number >= params.tiles) { return; }
  let route = load_routes(params.route_index);
  if (route == 0u) { return; }
  rank_enter(lanes);
  use_digit(params.digit);
  let tile = state_enter(number);
  let place = route & 3u;
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
