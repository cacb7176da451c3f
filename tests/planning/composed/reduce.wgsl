// Reduce in one dispatch: each workgroup combines a block of consecutive tiles and hands on its total. The last workgroup to
// finish writes the result. Which invocation combines which items is fixed, so a result is the same in every run. A single
// block hands on nothing. Forward progress: no workgroup waits for another.
// Sums of integers: one word holds the number of workgroups that have finished, and above it their sum, whose carries fall
// off. So whoever finds that it is the last one has the whole sum, too.
// Bindings: params, input, output, and states for that word, which is 0 between dispatches.
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
@group(0) @binding(3) var<storage, read_write> states: array<atomic<u64>>;

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
// The total of a block of tiles; the same for every invocation.
fn block_total(block: u32) -> Acc {
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, params.tiles);
  // The order of the items does not matter, so every invocation keeps four separate sums until the end.
  var sums = quad_of(identity());
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    sums = combine4(sums, tile_items[0]);
    sums = combine4(sums, tile_items[1]);
  }
  return wg_scan(sg_reduce(combine(combine(sums.x, sums.y), combine(sums.z, sums.w)))).total;
}
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  enter(lanes);
  var whole = block_total(block);
  if (params.blocks > 1u) {
    if (local != 0u) { return; }
    let before = atomicAdd(&states[0], (u64(pack(whole)) << 32u) | 1lu);
    if (u32(before & 0xfffffffflu) != params.blocks - 1u) { return; }
    whole = combine(whole, unpack(u32(before >> 32u)));
    atomicStore(&states[0], 0lu);
  }
  if (local == 0u) { put(0u, whole); }
}
