// Single-pass segmented scan with decoupled look-back and fallback: each item is read once. What begins a segment comes from
// keys or from offsets, and what is written from the emission: a result per item, per run of equal keys, or per segment.
// Sources: Sengupta, Harris, Zhang and Owens, "Scan primitives for GPU computing" (2007), section 4, for the operator on
// (head, value); for the look-back and its fallback see scan_lookback.wgsl.
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recomputes every unpublished
// tile from the inputs, so outputs must not share items with them.
// Bindings: params, the inputs, the outputs, control, states, and carries.
// A tile publishes the value of the segment that is open at its end. In a tile with a head that is final at once: nothing
// before the head reaches it, so most look-backs end at the tile before.
// In windows (`carried`), each dispatch starts from the chain in carries[0], which the previous dispatch wrote, and
// writes the chain up to its own end to carries[1].
// A count may come from the GPU (params.n): tiles without items publish the identity and leave, because an epoch tells
// only the words of the previous dispatch from those of this one.
// Params: n (items of this window and those before; the GPU may have counted them); first (item of the window);
// capacity (items of the window that there is room for); tiles (of the capacity); flags (sum of some of HAS_CARRY
// and MORE_FOLLOWS); size (runs that the outputs have room for); segments; search_steps.

struct Params {
  n: u32,
  first: u32,
  capacity: u32,
  tiles: u32,
  flags: u32,
  identity_bits: u32,
  segments: u32,
  search_steps: u32,
  items_offset: u32,
  offsets_offset: u32,
  output_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> words_2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> words_3: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> control: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> states: array<atomic<u64>>;

fn load_items(i: u32) -> u32 {
  let k = params.items_offset + i;
  return words_1[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_items(i: u32) -> vec4<u32> {
  return words_1[(params.items_offset + i) >> 2u];
}
fn load_offsets(i: u32) -> u32 {
  let k = params.offsets_offset + i;
  return words_2[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_offsets(i: u32) -> vec4<u32> {
  return words_2[(params.offsets_offset + i) >> 2u];
}
fn load_output(i: u32) -> u32 {
  let k = params.output_offset + i;
  return words_3[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_output(i: u32) -> vec4<u32> {
  return words_3[(params.output_offset + i) >> 2u];
}
// A write to one component may touch the whole vec4: one invocation must write all items of a vec4.
fn store_output(i: u32, word: u32) {
  let k = params.output_offset + i;
  words_3[k >> 2u][k & 3u] = word;
}
fn store4_output(i: u32, words: vec4<u32>) {
  words_3[(params.output_offset + i) >> 2u] = words;
}

// The items of the window: the GPU may know how many the call has.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }
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
// The chain of a segmented scan: how many runs begin in a range of items, and the value of the run that is open at its end.
// The words of the value are behind the count, in one vector, so that it is shuffled and selected as one value.
alias Chain = vec2<u32>;
fn chain_of(heads: u32, value: Acc) -> Chain { return Chain(heads, pack(value)); }
fn chain_value(x: Chain) -> Acc { return unpack(x.y); }
fn chain_identity() -> Chain { return chain_of(0u, identity()); }
// A head in `b` begins a new run: nothing of `a` reaches its value.
fn chain_combine(a: Chain, b: Chain) -> Chain {
  return chain_of(a.x + b.x, after_head(chain_value(a), chain_value(b), b.x != 0u));
}
// `before` and `here` combined, but `here` alone where a head lies between them, or in `here`.
fn after_head(before: Acc, here: Acc, is_head: bool) -> Acc { return select(combine(before, here), here, is_head); }
// From subgroups to the workgroup: combines one value per subgroup, in order.
var<workgroup> wg_totals_chain: array<Chain, WORKGROUP_SIZE>;
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

struct SubgroupScan_chain { exclusive: Chain, inclusive: Chain }
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
fn sg_last_chain(x: Chain) -> Chain { return subgroupShuffle(x, sg_size - 1u); }
fn sg_scan_chain(x: Chain) -> SubgroupScan_chain {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    if (sg_lane >= d) { y = chain_combine(left, y); }
  }
  let left = subgroupShuffleUp(y, 1u);
  return SubgroupScan_chain(select(left, chain_identity(), sg_lane == 0u), y);
}
// Keeps the order of the lanes where the operator needs it.
fn sg_reduce_chain(x: Chain) -> Chain {
  return sg_last_chain(sg_scan_chain(x).inclusive);
}
fn sg_last(x: Acc) -> Acc { return subgroupShuffle(x, sg_size - 1u); }
fn sg_scan(x: Acc) -> SubgroupScan {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    if (sg_lane >= d) { y = combine(left, y); }
  }
  let left = subgroupShuffleUp(y, 1u);
  return SubgroupScan(select(left, identity(), sg_lane == 0u), y);
}
// Keeps the order of the lanes where the operator needs it.
fn sg_reduce(x: Acc) -> Acc {
  return sg_last(sg_scan(x).inclusive);
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
struct WorkgroupScan_chain { before: Chain, total: Chain }

// x is the total of the invocation's subgroup. Returns the total of the subgroups before it, and of all.
fn wg_scan_chain(x: Chain) -> WorkgroupScan_chain {
  workgroupBarrier();
  // Without a branch for one lane; other lanes write where nobody reads.
  wg_totals_chain[select(sg_count + local - sg_id - 1u, sg_id, sg_lane == 0u)] = x;
  workgroupBarrier();
  var before = chain_identity();
  var total = chain_identity();
  for (var s = 0u; s < sg_count; s++) {
    if (s == sg_id) { before = total; }
    total = chain_combine(total, wg_totals_chain[s]);
  }
  return WorkgroupScan_chain(before, total);
}
struct WorkgroupScan { before: Acc, total: Acc }

// x is the total of the invocation's subgroup. Returns the total of the subgroups before it, and of all.
fn wg_scan(x: Acc) -> WorkgroupScan {
  workgroupBarrier();
  // Without a branch for one lane; other lanes write where nobody reads.
  wg_totals[select(sg_count + local - sg_id - 1u, sg_id, sg_lane == 0u)] = x;
  workgroupBarrier();
  var before = identity();
  var total = identity();
  for (var s = 0u; s < sg_count; s++) {
    if (s == sg_id) { before = total; }
    total = combine(total, wg_totals[s]);
  }
  return WorkgroupScan(before, total);
}
// Segmented scans of a row, one value per lane, in the three forms of lib/subgroup.wgsl. Heads are shared as bits, so a step
// of the scan moves the value alone.

// Lanes with a head, counted from 1: the nearest one up to this lane, the nearest one before it, and the last one of the
// subgroup; 0 where there is none.
struct LaneHeads { nearest: u32, before: u32, last: u32 }
struct SegmentedScan { exclusive: Acc, inclusive: Acc }
struct Ranks { before: u32, all: u32 }

fn sg_heads(has_head: bool) -> LaneHeads {
  let votes = subgroupBallot(has_head);
  let here = vec4<u32>(sg_lane >> 5u);
  let word = vec4<u32>(0u, 1u, 2u, 3u);
  let lower = vec4<u32>((1u << (sg_lane & 31u)) - 1u);
  let before = last_lane(votes & select(select(vec4<u32>(0u), lower, here == word), vec4<u32>(0xffffffffu), here > word));
  return LaneHeads(select(before, sg_lane + 1u, has_head), before, last_lane(votes));
}
// `heads` are those of the lanes: each lane combines from the nearest lane with a head on.
fn sg_segmented_scan(x: Acc, heads: LaneHeads) -> SegmentedScan {
  var y = x;
  let first = max(heads.nearest, 1u);
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    y = select(y, combine(left, y), sg_lane + 1u >= first + d);
  }
  let left = subgroupShuffleUp(y, 1u);
  return SegmentedScan(select(left, identity(), sg_lane == 0u), y);
}
// Of words that each lane has: the sum of those of lower lanes, and of all. By shuffles: with subgroupAdd of the heads that
// lanes count, these kernels gave wrong totals on an NVIDIA GPU (docs/contribute/algorithms.md, "Rules of all kernels").
fn sg_ranks(x: u32) -> Ranks {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) { y += select(0u, subgroupShuffleUp(y, d), sg_lane >= d); }
  return Ranks(y - x, subgroupShuffle(y, sg_size - 1u));
}
// A tile of items in segments. A row has QUADS × 4 consecutive items for each lane, so a tile needs few scans over lanes; the loads
// of a lane share their cache lines. What begins a segment, a head, is a bit; the values stay in registers from the load to
// the store. The template writes out every row.
// The tiles of a window that have items; item_count() says how many items it has.
// Where the items of a tile lie: WORKGROUP_SIZE × VECS × 4 consecutive items. A subgroup owns consecutive rows. A row is QUADS
// vec4 per lane, side by side, so loads and stores are contiguous over the lanes; and combining lane by lane, row by row,
// subgroup by subgroup keeps the order of the items.
const VECS: u32 = 2u;
const QUADS: u32 = 2u;
const ROWS: u32 = VECS / QUADS;

fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 {
  return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size * QUADS + sg_lane * QUADS) * 4u;
}
// Without any items tile 0 still writes what ends the window.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }
// Consecutive items of a lane in a row, and their bits.
const WIDTH: u32 = 4u * QUADS;
const WIDTH_BITS: u32 = 255u;
var<private> tile_values: array<Quad, VECS>;
var<private> tile_heads: array<u32, ROWS>;
// What the subgroup has before each row of the lane, from the last head on; and a bit for each row that no head of the
// subgroup precedes.
var<private> tile_before: array<Acc, ROWS>;
var<private> tile_open: u32;
const MORE_FOLLOWS: u32 = 8u;
fn more_follows() -> bool { return (params.flags & MORE_FOLLOWS) != 0u; }

// The items of segments as accumulators.
fn item(i: u32) -> Acc { return lift(load_items(i)); }
fn item4(i: u32) -> Quad { return lift4(load4_items(i)); }
// Items i to i + 3, with the identity for those past the end.
fn item4_guarded(i: u32) -> Quad {
  let n = item_count();
  let last = max(n, 1u) - 1u;
  return Quad(
    select(identity(), item(min(i, last)), i < n),
    select(identity(), item(min(i + 1u, last)), i + 1u < n),
    select(identity(), item(min(i + 2u, last)), i + 2u < n),
    select(identity(), item(min(i + 3u, last)), i + 3u < n),
  );
}

// Heads by offsets: segment s is items offsets[s] to offsets[s + 1] − 1. A bit is set for each place of a tile at which a
// segment ends or begins.
fn end_of(s: u32) -> u32 { return load_offsets(s + 1u); }
fn segments_in_all() -> u32 { return params.segments; }
fn items_in_all() -> u32 { return params.first + item_count(); }
// Item 0 of the tile, and the end of the items, as offsets count.
fn tile_begin(tile: u32) -> u32 { return params.first + tile * tile_size(); }
fn segment_end(s: u32) -> u32 { return min(end_of(s), items_in_all()); }
// The segments that end in a tile, found by its workgroup among the ends of all segments, `end_of(s)`, which never fall.
const PARTS: u32 = 1u;
const LANES: u32 = 64u;
// The searches: at most so many segments end up to the end of part p − 1 of the tile (before it, for p = 0), and at least
// so many. Steps take turns between two copies.
var<workgroup> search_least: array<atomic<u32>, 4>;
var<workgroup> search_most: array<atomic<u32>, 4>;
// Segments that end in part p of the tile: segment_bounds[p] to segment_bounds[p + 1] − 1.
var<workgroup> segment_bounds: array<u32, 2>;

// The segment that lane `j` of a search looks at next. At first around a guess, as if all segments were of one length: nearby
// in single steps, then ever further apart. Later steps cut what is left into equal parts.
fn probe(step: u32, limit: u32, least: u32, most: u32, j: u32) -> u32 {
  if (step > 0u || segments_in_all() <= LANES) {
    let chunk = (most - least + LANES) / (LANES + 1u);
    return least + (j + 1u) * chunk - 1u;
  }
  let guess = u32(f32(segments_in_all()) * (f32(limit) / f32(max(items_in_all(), 1u))));
  let distance = 1u << min(j >> 1u, 30u);
  if ((j & 1u) == 0u) { return guess + distance - 1u; }
  return max(guess, distance) - distance;
}

// Finds the segments that end in each part of a tile. All invocations of the workgroup take part.
fn find_segments(tile: u32) -> array<u32, PARTS + 1u> {
  let begin = tile_begin(tile);
  workgroupBarrier();
  if (local <= PARTS) {
    // Tile 0 also has the empty segments before item 0, and the last tile all that are left.
    let least = select(0u, segments_in_all(), local == PARTS && tile + 1u >= used_tiles() && !more_follows());
    let most = select(segments_in_all(), 0u, local == 0u && begin == 0u);
    atomicStore(&search_least[2u * local], least);
    atomicStore(&search_least[2u * local + 1u], least);
    atomicStore(&search_most[2u * local], most);
    atomicStore(&search_most[2u * local + 1u], most);
  }
  workgroupBarrier();

  let p = local / LANES;
  let limit = begin + p * (tile_size() / PARTS);
  for (var step = 0u; step < params.search_steps; step++) {
    if (p <= PARTS) {
      let here = 2u * p + (step & 1u);
      let next = here ^ 1u;
      let least = atomicLoad(&search_least[here]);
      let most = atomicLoad(&search_most[here]);
      atomicMax(&search_least[next], least);
      atomicMin(&search_most[next], most);
      if (least < most) {
        let s = probe(step, limit, least, most, local - p * LANES);
        if (s >= least && s < most) {
          if (end_of(s) <= limit) { atomicMax(&search_least[next], s + 1u); } else { atomicMin(&search_most[next], s); }
        }
      }
    }
    workgroupBarrier();
  }
  if (local <= PARTS) { segment_bounds[local] = atomicLoad(&search_least[2u * local + (params.search_steps & 1u)]); }
  return workgroupUniformLoad(&segment_bounds);
}
// Bit q: a segment ends before place q of the tile, or begins with it.
var<workgroup> head_bits: array<atomic<u32>, 33>;

fn heads_begin(tile: u32) {
  let begin = tile_begin(tile);
  workgroupBarrier();
  for (var word = local; word <= WORKGROUP_SIZE * VECS / 8u; word += WORKGROUP_SIZE) { atomicStore(&head_bits[word], 0u); }
  let bounds = find_segments(tile);
  if (local == 0u) {
    set_head(begin, load_offsets(0u));
    set_head(begin, load_offsets(bounds[0]));
    if (begin == 0u) { set_head(0u, 0u); }
  }
  for (var s = bounds[0] + local; s < bounds[PARTS]; s += WORKGROUP_SIZE) { set_head(begin, segment_end(s)); }
  workgroupBarrier();
}
fn set_head(begin: u32, i: u32) {
  let place = i - begin;
  if (i >= begin && place <= tile_size()) { atomicOr(&head_bits[place >> 5u], 1u << (place & 31u)); }
}
fn tile_heads_of(tile: u32, r: u32, full: bool) -> u32 { return heads_of(tile, r); }
fn heads_of(tile: u32, r: u32) -> u32 {
  let place = tile_item(tile, r) - tile * tile_size();
  return (atomicLoad(&head_bits[place >> 5u]) >> (place & 31u)) & WIDTH_BITS;
}
fn bits_of(a: bool, b: bool, c: bool, d: bool) -> u32 {
  return select(0u, 1u, a) | select(0u, 2u, b) | select(0u, 4u, c) | select(0u, 8u, d);
}

fn tile_load(tile: u32) {
  if (tile_is_full(tile)) {
    tile_values[0] = item4(tile_item(tile, 0u));
    tile_values[1] = item4(tile_item(tile, 0u) + 4u);
    heads_begin(tile);
    tile_heads[0] = tile_heads_of(tile, 0u, true);
  } else {
    tile_values[0] = item4_guarded(tile_item(tile, 0u));
    tile_values[1] = item4_guarded(tile_item(tile, 0u) + 4u);
    heads_begin(tile);
    tile_heads[0] = tile_heads_of(tile, 0u, false);
  }
}
// Makes values inclusive within the row of the lane, from the last head on.
fn tile_lane_scan() {
  {
    let heads = tile_heads[0];
    let v_0 = tile_values[0];
    let x_0 = v_0.x;
    let y_0 = after_head(x_0, v_0.y, (heads & 2u) != 0u);
    let z_0 = after_head(y_0, v_0.z, (heads & 4u) != 0u);
    let w_0 = after_head(z_0, v_0.w, (heads & 8u) != 0u);
    tile_values[0] = Quad(x_0, y_0, z_0, w_0);
    let v_1 = tile_values[1];
    let x_1 = after_head(w_0, v_1.x, (heads & 16u) != 0u);
    let y_1 = after_head(x_1, v_1.y, (heads & 32u) != 0u);
    let z_1 = after_head(y_1, v_1.z, (heads & 64u) != 0u);
    let w_1 = after_head(z_1, v_1.w, (heads & 128u) != 0u);
    tile_values[1] = Quad(x_1, y_1, z_1, w_1);
  }
}

// Scans the rows, in registers. Returns the chain of the subgroup, and of the subgroups before it.
fn tile_scan() -> WorkgroupScan_chain {
  tile_lane_scan();
  var carry = identity();
  var closed = false;
  tile_open = 0u;
  {
    let heads = sg_heads(tile_heads[0] != 0u);
    let row = sg_segmented_scan(tile_values[1].w, heads);
    tile_before[0] = after_head(carry, row.exclusive, heads.before != 0u);
    tile_open |= select(1u, 0u, closed || heads.before != 0u);
    carry = after_head(carry, sg_last(row.inclusive), heads.last != 0u);
    closed = closed || heads.last != 0u;
  }
  // Of heads, only whether there are any matters.
  let count = select(0u, 1u, closed);
  return wg_scan_chain(chain_of(count, carry));
}

// The chain of a tile, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Chain {
  var total = chain_identity();
  heads_begin(tile);
  for (var r = 0u; r < ROWS; r++) {
    let heads_here = heads_of(tile, r);
    var w = identity();
    for (var q = 0u; q < WIDTH / 4u; q++) {
      let v = item4_guarded(tile_item(tile, r) + 4u * q);
      let h = heads_here >> (4u * q);
      w = after_head(w, v.x, (h & 1u) != 0u);
      w = after_head(w, v.y, (h & 2u) != 0u);
      w = after_head(w, v.z, (h & 4u) != 0u);
      w = after_head(w, v.w, (h & 8u) != 0u);
    }
    let heads = sg_heads(heads_here != 0u);
    let row = sg_segmented_scan(w, heads);
    let count = select(0u, 1u, heads.last != 0u);
    total = chain_combine(total, chain_of(count, sg_last(row.inclusive)));
  }
  return wg_scan_chain(total).total;
}
// What comes before this lane in row r, from the last head on, given what comes before the subgroup.
fn tile_carry(r: u32, before: Chain) -> Acc {
  return after_head(chain_value(before), tile_before[r], (tile_open & (1u << r)) == 0u);
}
// Emission of a segmented scan: a result for each item.
fn put(i: u32, x: Acc) {
  store_output(i, lower(x));
}
// Results of row 0; p comes before the lane.
fn emit_row_0(tile: u32, p: Acc) {
  let heads = tile_heads[0];
  let v_0 = tile_values[0];
  let v_1 = tile_values[1];
  // Exclusive: a head begins with the identity; the others have what the item before them has, the `last` one.
  let results_0 = Quad(
    after_head(p, v_0.x, (heads & 1u) != 0u),
    after_head(p, v_0.y, (heads & 3u) != 0u),
    after_head(p, v_0.z, (heads & 7u) != 0u),
    after_head(p, v_0.w, (heads & 15u) != 0u),
  );
  // Exclusive: a head begins with the identity; the others have what the item before them has, the `last` one.
  let results_1 = Quad(
    after_head(p, v_1.x, (heads & 31u) != 0u),
    after_head(p, v_1.y, (heads & 63u) != 0u),
    after_head(p, v_1.z, (heads & 127u) != 0u),
    after_head(p, v_1.w, (heads & 255u) != 0u),
  );
  let i = tile_item(tile, 0u);
  if ((tile + 1u) * tile_size() <= item_count()) {
// Stores the results of a row that is whole.
    // Pairs of lanes swap quads, so that a store of a pair fills sectors of 32 bytes.
    let is_odd = (sg_lane & 1u) != 0u;
    let low = i + select(0u, 4u, is_odd) - select(0u, WIDTH, is_odd);
    let words_0 = lower4(results_0);
    let words_1 = lower4(results_1);
    let swapped_0 = subgroupShuffleXor(select(words_1, words_0, is_odd), 1u);
    store4_output(low, select(words_0, swapped_0, is_odd));
    store4_output(low + WIDTH, select(swapped_0, words_1, is_odd));
  } else {
    let n = item_count();
    if (i + 0u < n) { put(i + 0u, results_0.x); }
    if (i + 1u < n) { put(i + 1u, results_0.y); }
    if (i + 2u < n) { put(i + 2u, results_0.z); }
    if (i + 3u < n) { put(i + 3u, results_0.w); }
    if (i + 4u < n) { put(i + 4u, results_1.x); }
    if (i + 5u < n) { put(i + 5u, results_1.y); }
    if (i + 6u < n) { put(i + 6u, results_1.z); }
    if (i + 7u < n) { put(i + 7u, results_1.w); }
  }
}
fn emit_closed(tile: u32, sum: WorkgroupScan_chain) {}
// Writes the results of the tile; `before` is what comes before it.
fn emit_open(tile: u32, before: Chain, sum: WorkgroupScan_chain) {
  let before_here = chain_combine(before, sum.before);
  emit_row_0(tile, tile_carry(0u, before_here));
}
fn emit_end(total: Chain) {}
// The chained state of a single-pass scan: one word {epoch, flag, value} per tile. It is read and written as a whole,
// because WGSL's atomics are relaxed and promise no order between two words. Two forms:
//   u64     one 64-bit atomic: value in the low half, epoch and flag in the high half
//   u32x2   two 32-bit atomics, each with 16 bits of the value, the epoch and the flag; a pair whose tags differ is
//           being written and counts as unpublished
// The epoch tells this dispatch's words from those of the previous one. It lives in the buffer, and the last workgroup to
// finish increments it, so nothing needs clearing between dispatches. It may wrap: every dispatch publishes every tile, so
// a word of another epoch is of the previous one, never older.
// States of many tiles are `spread`: while some tiles publish, others poll their neighbours.
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
  atomicStore(&states[4u * tile + 0u], (u64(state_tag(flag)) << 32u) | u64(pack(value)));
}
fn state_poll(tile: u32) -> Published {
  let word_0 = atomicLoad(&states[4u * tile + 0u]);
  let tag_0 = u32(word_0 >> 32u);
  let ready = (tag_0 >> 2u) == epoch
  ;
  return Published(select(EMPTY, tag_0 & 3u, ready), unpack(
    u32(word_0 & 0xfffffffflu),
  ));
}
// The look-back of a chained scan: one subgroup combines the published totals of several earlier tiles at a time, until
// it finds one that has published the total of all tiles up to itself. Needs lib/state.wgsl and lib/workgroup.wgsl.
override SPIN_LIMIT: u32 = 256u;
const NONE: u32 = 0xffffffffu;

struct LookBack { sum: Acc, stalled: u32, spins: u32 }
var<workgroup> look_back_result: LookBack;

// Combines the published totals of tiles `start` and earlier with `sum_so_far`, which comes after them. Writes to
// look_back_result the sum, the tile that did not publish in time (or NONE), and the number of unsuccessful polls.
fn look_back(start: u32, sum_so_far: Acc, spins_so_far: u32) {
  var nearest = start;
  var sum = sum_so_far;
  var spins = spins_so_far;
  var stalled = NONE;
  loop {
    // Windows of a tile for each lane, whose last lane has the nearest tile. Without branches: a lane waits for all of its polls
    // together. Before tile 0 everything is known. Tile 0 says so, too; but without these selections a scan of 2^20 items takes
    // 6.2 µs on an H200, with them 5.7.
    let back_0 = 0u * sg_size + (sg_size - 1u - sg_lane);
    var published_0 = state_poll(nearest - min(back_0, nearest));
    published_0.flag = select(published_0.flag, INCLUSIVE, back_0 > nearest);
    published_0.value = select(published_0.value, identity(), back_0 > nearest);
    var moved = 0u;
    var is_open = true;
    var is_found = false;
    {
      let done = look_back_last(published_0.flag == INCLUSIVE);
      let empty = look_back_last(published_0.flag == EMPTY);
      // The lanes behind the nearest empty tile, from the nearest inclusive one on.
      let is_used = is_open && sg_lane + 1u >= max(done, empty + 1u);
      let here = select(identity(), published_0.value, is_used);
      sum = combine(look_back_reduce(here), sum);
      is_found = is_found || (is_open && done > empty);
      moved += select(0u, sg_size - empty, is_open);
      is_open = is_open && (done | empty) == 0u;
    }
    if (is_found) { break; }
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
alias Posted = Acc;
fn posted(total: Chain) -> Posted { return chain_value(total); }
fn chain_of_posted(x: Posted) -> Chain { return chain_of(0u, x); }
fn is_final(total: Chain) -> bool { return total.x != 0u; }
var<workgroup> stalled_is_final: u32;
fn ends_look_back(total: Chain) -> bool {
  if (local == 0u) { stalled_is_final = select(0u, 1u, is_final(total)); }
  return workgroupUniformLoad(&stalled_is_final) != 0u;
}
fn with_carry(before: Posted) -> Posted { return before; }
// What comes before a tile, for all invocations of its workgroup. A tile that has not published in time is not waited for: its
// total is computed here, from the input, and the look-back goes on before it. Needs lib/look_back.wgsl and tile_total; the
// caller publishes the inclusive total. A kernel with windows says what comes before tile 0 (`before_tile_0`).
// The look-back of this kernel can end at a tile's total. It needs
//   posted            what a tile publishes of a total
//   ends_look_back    whether nothing before a tile with this total reaches its end
//   with_carry        what comes before the first tile of the window, and what comes after that
// and the inclusive total of `own` and what comes before is published here, unless it `is_known` before.
fn look_back_from(tile: u32, own: Acc, is_known: bool) -> Acc {
  var before = identity();
  var next = tile - 1u;
  var spins = 0u;
  var stalled = NONE;
  loop {
    if (look_back_enter()) {
      look_back(next, before, spins);
      // Before the others know it: later tiles wait for it.
      if (is_leader() && !is_known && look_back_result.stalled == NONE) {
        state_publish(tile, INCLUSIVE, combine(look_back_result.sum, own));
      }
    }
    let found = workgroupUniformLoad(&look_back_result);
    before = found.sum;
    spins = found.spins;
    stalled = found.stalled;
    if (stalled == NONE) { break; }
    let total = tile_total(stalled);
    before = combine(posted(total), before);
    if (ends_look_back(total)) { break; }
    if (stalled == 0u) {
      before = with_carry(before);
      break;
    }
    next = stalled - 1u;
  }
  if (is_leader() && !is_known && stalled != NONE) { state_publish(tile, INCLUSIVE, combine(before, own)); }
  return before;
}
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let number = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (number >= params.tiles) { return; }
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
  if (tile >= used_tiles()) {
    if (is_leader()) {
      state_publish(tile, TOTAL, posted(chain_identity()));
      if (state_count_finished(params.tiles)) { state_next_epoch(); }
    }
    return;
  }
  tile_load(tile);
  let sum = tile_scan();
  var before = chain_identity();
  let is_known = tile == 0u || is_final(sum.total);
  if (is_leader()) {
    if (is_known) {
      state_publish(tile, INCLUSIVE, posted(chain_combine(before, sum.total)));
    } else {
      state_publish(tile, TOTAL, posted(sum.total));
    }
  }
  emit_closed(tile, sum);
  if (tile > 0u) { before = chain_of_posted(look_back_from(tile, posted(sum.total), is_known)); }
  if (is_leader() && tile == used_tiles() - 1u) {
    let total = chain_combine(before, sum.total);
    if (!more_follows()) { emit_end(total); }
  }
  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }
  emit_open(tile, before, sum);
}
