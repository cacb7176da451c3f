// Marked items, in order: selects, partitions, finds the heads of runs. Each item is read once, in one dispatch.
// A workgroup takes a tile, marks its items, and publishes how many have a mark. One subgroup looks back over several earlier
// tiles at a time, until it finds one that has published the count of all tiles up to itself. Then the workgroup writes.
// Sources: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (NVIDIA, 2016), of which
// this is the stream compaction; the fallback is from Smith, Levien and Owens, "Decoupled Fallback" (SPAA 2025).
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recounts every unpublished
// tile from the inputs. So every loop is bounded, and the outputs must not share items with the inputs.
// The number of items may come from the GPU. A workgroup whose tile has no items publishes a count of 0 and leaves: so
// that every dispatch publishes every tile.
// In windows (`carried`), counts start at 0 in each; carries has the counts of all earlier windows.
// Bindings: params, inputs, outputs, count, states, and carries.
// Params: n (items of all windows; those behind the last window do not count); first (the window's first item); capacity (items
// of the window); room (items of an output); tiles; tiles_per_block; blocks (workgroups that have work); flags (HAS_CARRY or 0).

struct Params {
  n: u32,
  first: u32,
  capacity: u32,
  room: u32,
  flags: u32,
  tiles: u32,
  flags_offset: u32,
  input_offset: u32,
  first_offset: u32,
  rest_offset: u32,
  counts_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> words_2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> words_3: array<u32>;
@group(0) @binding(4) var<storage, read_write> words_4: array<u32>;
@group(0) @binding(5) var<storage, read_write> words_5: array<u32>;
@group(0) @binding(6) var<storage, read_write> states: array<atomic<u32>>;

fn load_flags(i: u32) -> u32 {
  let k = params.flags_offset + i;
  return words_1[k >> 2u][k & 3u];
}
fn load_row_flags(i: u32) -> vec4<u32> {
  let k = params.flags_offset + i;
  let words = words_1[k >> 2u];
  return words;
}
fn load4_flags(i: u32) -> vec4<u32> {
  return load_row_flags(i);
}
fn load_input(i: u32) -> u32 {
  let k = params.input_offset + i;
  return words_2[k >> 2u][k & 3u];
}
fn load_row_input(i: u32) -> vec4<u32> {
  let k = params.input_offset + i;
  let words = words_2[k >> 2u];
  return words;
}
fn load4_input(i: u32) -> vec4<u32> {
  return load_row_input(i);
}
fn load_first(i: u32) -> u32 {
  let k = params.first_offset + i;
  return words_3[k];
}
fn load_row_first(i: u32) -> vec4<u32> {
  let k = params.first_offset + i;
  let first = k;
  let words = vec4<u32>(words_3[first], words_3[first + 1u], words_3[first + 2u], words_3[first + 3u]);
  return words;
}
fn load4_first(i: u32) -> vec4<u32> {
  return load_row_first(i);
}
fn store_first(i: u32, item: u32) {
  let k = params.first_offset + i;
  words_3[k] = item;
}
fn store_row_first(i: u32, row: vec4<u32>) {
  store_first(i + 0u, row.x);
  store_first(i + 1u, row.y);
  store_first(i + 2u, row.z);
  store_first(i + 3u, row.w);
}
fn store4_first(i: u32, items: vec4<u32>) {
  store_row_first(i, items);
}
fn load_rest(i: u32) -> u32 {
  let k = params.rest_offset + i;
  return words_4[k];
}
fn load_row_rest(i: u32) -> vec4<u32> {
  let k = params.rest_offset + i;
  let first = k;
  let words = vec4<u32>(words_4[first], words_4[first + 1u], words_4[first + 2u], words_4[first + 3u]);
  return words;
}
fn load4_rest(i: u32) -> vec4<u32> {
  return load_row_rest(i);
}
fn store_rest(i: u32, item: u32) {
  let k = params.rest_offset + i;
  words_4[k] = item;
}
fn store_row_rest(i: u32, row: vec4<u32>) {
  store_rest(i + 0u, row.x);
  store_rest(i + 1u, row.y);
  store_rest(i + 2u, row.z);
  store_rest(i + 3u, row.w);
}
fn store4_rest(i: u32, items: vec4<u32>) {
  store_row_rest(i, items);
}
fn load_counts(i: u32) -> u32 {
  let k = params.counts_offset + i;
  return words_5[k];
}
fn load_row_counts(i: u32) -> vec4<u32> {
  let k = params.counts_offset + i;
  let first = k;
  let words = vec4<u32>(words_5[first], words_5[first + 1u], words_5[first + 2u], words_5[first + 3u]);
  return words;
}
fn load4_counts(i: u32) -> vec4<u32> {
  return load_row_counts(i);
}
fn store_counts(i: u32, item: u32) {
  let k = params.counts_offset + i;
  words_5[k] = item;
}
fn store_row_counts(i: u32, row: vec4<u32>) {
  store_counts(i + 0u, row.x);
  store_counts(i + 1u, row.y);
  store_counts(i + 2u, row.z);
  store_counts(i + 3u, row.w);
}
fn store4_counts(i: u32, items: vec4<u32>) {
  store_row_counts(i, items);
}

// The items of the window: the GPU may know how many the call has.
fn item_count() -> u32 { return min(max(params.n, params.first) - params.first, params.capacity); }
override WORKGROUP_SIZE: u32 = 256u;

// What the tiles of a stream add up, and what is counted within a tile. Leaves behind the types Acc and Counts:
//   one mark    both are the number of marked items
//   two marks   both are the numbers of items with the first and with the second mark
//   runs        Acc is the number of heads, and the position of the last one, plus 1; Counts is the number of heads
alias Acc = u32;
alias Counts = u32;
fn identity() -> Acc { return Acc(); }
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
fn counts_of(x: Acc) -> Counts { return x; }
fn with_counts(before: Acc, more: Counts) -> Acc { return before + more; }
fn from_window(x: Acc) -> Acc { return x; }
fn add(a: Counts, b: Counts) -> Counts { return a + b; }
// Items with any mark.
fn sum_of(x: Counts) -> u32 { return x; }
// As words in memory, see lib/accumulators.wgsl.
fn pack(x: Acc) -> u32 { return x; }
fn unpack(word: u32) -> Acc { return word; }
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
// The tiles of a window that have items; item_count() says how many items it has.
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
// Without any items tile 0 still writes what ends the window.
fn used_tiles() -> u32 { return max((item_count() + tile_size() - 1u) / tile_size(), 1u); }
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }
// The marks of a stream's items, four of a row as bits: an item has a mark or none, or one of two. Leaves behind row_marks(i), the
// marks of items i to i + 3; row_marks_guarded(i, n), without those from item n on; and what tiles add up.
// Four consecutive items as they are loaded, a quad, by the size of an item in bytes. Leaves behind for each size the type of an
// item, the quad of three items and 0, and item j of a quad; j is a constant wherever it is called.
alias Item1 = u32;
alias Item2 = u32;
alias Item4 = u32;
alias Item8 = vec2<u32>;
fn quad1(x: Item1, y: Item1, z: Item1) -> u32 { return x | (y << 8u) | (z << 16u); }
fn quad2(x: Item2, y: Item2, z: Item2) -> vec2<u32> { return vec2<u32>(x | (y << 16u), z); }
fn quad4(x: Item4, y: Item4, z: Item4) -> vec4<u32> { return vec4<u32>(x, y, z, 0u); }
// The array has no name of its own: naga would take it for another type than that of the loads.
fn quad8(x: Item8, y: Item8, z: Item8) -> array<vec4<u32>, 2> {
  return array<vec4<u32>, 2>(vec4<u32>(x, y), vec4<u32>(z, 0u, 0u));
}
fn item1(quad: u32, j: u32) -> Item1 { return (quad >> (8u * j)) & 0xffu; }
fn item2(quad: vec2<u32>, j: u32) -> Item2 { return (quad[j >> 1u] >> (16u * (j & 1u))) & 0xffffu; }
fn item4(quad: vec4<u32>, j: u32) -> Item4 { return quad[j]; }
fn item8(quad: array<vec4<u32>, 2>, j: u32) -> Item8 {
  let pair = select(quad[0], quad[1], j >= 2u);
  return select(pair.xy, pair.zw, (j & 1u) == 1u);
}
// The bits of the items among i to i + 3 that lie before item n.
fn within(i: u32, n: u32) -> u32 { return (1u << min(4u, max(n, i) - i)) - 1u; }

// Mark 0 is that flags is true: a flag that is not 0, or a predicate that holds.
fn is_true_0(flag: Item1) -> bool {
  return any(flag != Item1());
}
fn marks_0(i: u32) -> u32 {
  let flags = load4_flags(i);
  // The lowest bit of every byte that is not 0, brought together by a product.
  var bits = flags | (flags >> 4u);
  bits |= bits >> 2u;
  bits |= bits >> 1u;
  return ((bits & 0x01010101u) * 0x10204080u) >> 28u;
}
fn marks_0_guarded(i: u32, n: u32) -> u32 {
  if (i + 4u <= n) { return marks_0(i); }
  var bits = 0u;
  if (i < n) { bits |= select(0u, 1u, is_true_0(load_flags(i))); }
  if (i + 1u < n) { bits |= select(0u, 2u, is_true_0(load_flags(i + 1u))); }
  if (i + 2u < n) { bits |= select(0u, 4u, is_true_0(load_flags(i + 2u))); }
  return bits;
}
fn row_marks(i: u32) -> Counts { return marks_0(i); }
fn row_marks_guarded(i: u32, n: u32) -> Counts { return marks_0_guarded(i, n); }
// What a lane has with the marks of its row r, or with those of several rows from r on, four bits each.
fn with_marks(before: Acc, marks: Counts, tile: u32, r: u32) -> Acc {
  var lane = with_counts(before, countOneBits(marks));
  return lane;
}

// The total of another tile, counted from the inputs; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  let n = item_count();
  var lane = identity();
  for (var r = 0u; r < VECS; r++) { lane = with_marks(lane, row_marks_guarded(tile_item(tile, r), n), tile, r); }
  return wg_scan(sg_reduce(lane)).total;
}
// A tile of a stream in registers. tile_load leaves behind the marks of its items and the items that are written from registers,
// tile_count what the tile adds up, tile_rank the ranks of the marks within their rows. The template writes out every row, see
// lib/tile.wgsl: a function of a row r is called with constants, and arrays are indexed by constants.
// Ranking: a lane has at most 4 marks in a row, so the counts of PACK rows are packed into one word, and one exclusive sum over
// the subgroup ranks PACK rows: of up to 32 lanes 4 rows, since a sum of at most 128 fits a byte; of more lanes 2.
const PACK: u32 = 4u;
const COUNT_BITS: u32 = 32u / PACK;
const COUNT_MASK: u32 = (1u << COUNT_BITS) - 1u;
var<private> marks: array<Counts, (VECS + 7u) / 8u>;  // four bits for each row
var<private> ranks: array<Counts, (VECS + PACK - 1u) / PACK>;  // marks of earlier lanes in the row
var<private> row_counts: array<Counts, (VECS + PACK - 1u) / PACK>;  // marks of all lanes in the row
// load4_input_guarded(i, n): four items as load4_input, with 0 for those from item n on. Included once for each field f.
fn load4_input_guarded(i: u32, n: u32) -> vec4<u32> {
  if (i + 4u <= n) { return load4_input(i); }
  var x = Item4();
  var y = Item4();
  var z = Item4();
  if (i < n) { x = load_input(i); }
  if (i + 1u < n) { y = load_input(i + 1u); }
  if (i + 2u < n) { z = load_input(i + 2u); }
  return quad4(x, y, z);
}
fn tile_load(tile: u32) {
  marks[0] = Counts();
  if (tile_is_full(tile)) {
    tile_load_row(tile, 0u);
    tile_load_row(tile, 1u);
  } else {
    tile_load_row_guarded(tile, 0u);
    tile_load_row_guarded(tile, 1u);
  }
}
fn tile_load_row(tile: u32, r: u32) {
  let i = tile_item(tile, r);
  keep_marks(r, row_marks(i));
}
fn tile_load_row_guarded(tile: u32, r: u32) {
  let i = tile_item(tile, r);
  let n = item_count();
  keep_marks(r, row_marks_guarded(i, n));
}
fn keep_marks(r: u32, of_row: Counts) { marks[r / 8u] |= of_row << Counts(4u * (r % 8u)); }

// Returns what the subgroups before this one have, and what the tile has.
fn tile_count(tile: u32) -> WorkgroupScan {
  var lane = identity();
  lane = with_marks(lane, marks[0], tile, 0u);
  return wg_scan(sg_reduce(lane));
}

// Ranks the tile's marks within their rows, without barriers.
fn tile_rank() {
  tile_rank_rows(0u);
}
fn tile_rank_rows(g: u32) {
  let counts = packed_counts(marks[g * PACK / 8u] >> Counts(4u * (g * PACK % 8u)));
  ranks[g] = sg_scan(counts).exclusive;
  row_counts[g] = sg_last(ranks[g] + counts);
}
// The counts of PACK rows, whose marks are the low 4 × PACK bits, as bytes or halves of a word.
fn packed_counts(marks: Counts) -> Counts {
  var x = marks & Counts(0xffffu);
  x = (x | (x << Counts(8u))) & Counts(0x00ff00ffu);
  x = (x | (x << Counts(4u))) & Counts(0x0f0f0f0fu);
  x -= (x >> Counts(1u)) & Counts(0x05050505u);
  return (x & Counts(0x03030303u)) + ((x >> Counts(2u)) & Counts(0x03030303u));
}

// After tile_rank: the marks of this lane in row r; the marks of earlier lanes there; and those of all lanes.
fn row_bits(r: u32) -> Counts { return (marks[r / 8u] >> Counts(4u * (r % 8u))) & Counts(15u); }
fn row_rank(r: u32) -> Counts { return (ranks[r / PACK] >> Counts(COUNT_BITS * (r % PACK))) & Counts(COUNT_MASK); }
fn row_count(r: u32) -> Counts { return (row_counts[r / PACK] >> Counts(COUNT_BITS * (r % PACK))) & Counts(COUNT_MASK); }
// Of item j of a row: whether it has a mark, and the same as a number. Ranks of the items of a row are running sums of these, since
// population counts are slow (15 % of a select on an H200).
fn has_mark(bits: u32, j: u32) -> bool { return (bits & (1u << j)) != 0u; }
fn bit_of(bits: Counts, j: u32) -> Counts { return (bits >> Counts(j)) & Counts(1u); }
// Where items go if all are kept: those with the first mark to the first output, those with the second one to the second, the
// others to the last. Within the items that are written together, a tile or a round, they lie in this order.
struct Place { output: u32, at: u32 }
// The rank, among those written together, of item i of them; `rank` is that which it has, or would have, among those with a mark.
fn rank_of(i: u32, bits: Counts, j: u32, rank: Counts, count: Counts) -> u32 {
  return select(count + i - rank, rank, has_mark(bits, j));
}
fn place_in_output(rank: u32, first: u32, before: Acc, count: Counts) -> Place {
  if (rank < count) { return Place(0u, before + rank); }
  return Place(1u, params.first + first - before + rank - count);
}
// How many of `most` items from item `first` on are written: those that there are.
fn written_of(first: u32, most: u32, count: Counts) -> u32 { return min(most, max(item_count(), first) - first); }

// Writes what a stream gives for an item to place `at` of an output: an item from registers, the item i as it is loaded, or its
// position. What does not fit is only counted. The plan knows what is written: of each field in `moved` where it is stored, and
// what, once for each element of the item.
fn write_to_first(at: u32, item: Item4) {
  if (at < params.room) {
    store_first(at, item);
  }
}
fn write_to_rest(at: u32, item: Item4) {
  if (at < params.room) {
    store_rest(at, item);
  }
}
fn write_input(to: Place, item: Item4) {
  if (to.output == 0u) { write_to_first(to.at, item); }
  else { write_to_rest(to.at, item); }
}
// Emission of a stream through workgroup memory, of which each subgroup has its own part, ROUND_ROWS rows of the tile in a round:
// lanes stage items in the order in which they are written, then neighbouring lanes write neighbouring items. Every item is staged
// once, itself or its position in the tile, and there is room for all of a round, whatever the marks. A tile has a round for each
// pass (what is staged) and each ROUND_ROWS rows; while one is written, the items of the next one are loaded.
// With lib/stream_emit_parts.wgsl beside it, names have a prefix, and the memory is that one's.
const ROUND_ROWS: u32 = 2u;
const STAGE_ITEMS: u32 = 2048u;
// Workgroup memory for STAGE_ITEMS items of one or two words; the second words lie behind all first ones.
var<workgroup> stage: array<u32, 1u * STAGE_ITEMS>;
fn stage1(at: u32, item: u32) { stage[at] = item; }
fn staged1(at: u32) -> u32 { return stage[at]; }
fn stage_begin() -> u32 { return sg_id * sg_size * 4u * ROUND_ROWS; }
// The marks of a round.
fn round_count(round: u32) -> Counts {
  var count = row_count(round * ROUND_ROWS);
  count += row_count(round * ROUND_ROWS + 1u);
  return count;
}
// The first item of a subgroup's round, and the most that are written of it.
fn round_begin(tile: u32, round: u32) -> u32 { return tile * tile_size() + (sg_id * VECS + round * ROUND_ROWS) * sg_size * 4u; }
fn round_length(tile: u32, round: u32) -> u32 {
  return written_of(round_begin(tile, round), 4u * ROUND_ROWS * sg_size, round_count(round));
}

// What is staged for item j of row k of a round, which is item i of the tile.
var<private> round_input: array<vec4<u32>, ROUND_ROWS>;
fn load_input_of_round(tile: u32, round: u32) {
  if (tile_is_full(tile)) {
    round_input[0] = load4_input(tile_item(tile, round * ROUND_ROWS + 0u));
    round_input[1] = load4_input(tile_item(tile, round * ROUND_ROWS + 1u));
  } else {
    round_input[0] = load4_input_guarded(tile_item(tile, round * ROUND_ROWS + 0u), item_count());
    round_input[1] = load4_input_guarded(tile_item(tile, round * ROUND_ROWS + 1u), item_count());
  }
}
fn item_of_input(i: u32, round: u32, k: u32, j: u32) -> u32 { return item4(round_input[k], j); }
fn stage_input(tile: u32, round: u32) {
  var rank = Counts();  // in the round, of the first mark of a row
  stage_row_of_input(tile, round, 0u, rank);
  rank += row_count(round * ROUND_ROWS + 0u);
  stage_row_of_input(tile, round, 1u, rank);
  rank += row_count(round * ROUND_ROWS + 1u);
}
fn stage_row_of_input(tile: u32, round: u32, k: u32, first_rank: Counts) {
  let bits = row_bits(round * ROUND_ROWS + k);
  let i = tile_item(tile, round * ROUND_ROWS + k) - tile * tile_size();
  var rank = first_rank + row_rank(round * ROUND_ROWS + k);
  let i_of_round = (k * sg_size + sg_lane) * 4u;
  stage1(stage_begin() + rank_of(i_of_round + 0u, bits, 0u, rank, round_count(round)), item_of_input(i + 0u, round, k, 0u));
  rank += bit_of(bits, 0u);
  stage1(stage_begin() + rank_of(i_of_round + 1u, bits, 1u, rank, round_count(round)), item_of_input(i + 1u, round, k, 1u));
  rank += bit_of(bits, 1u);
  stage1(stage_begin() + rank_of(i_of_round + 2u, bits, 2u, rank, round_count(round)), item_of_input(i + 2u, round, k, 2u));
  rank += bit_of(bits, 2u);
  stage1(stage_begin() + rank_of(i_of_round + 3u, bits, 3u, rank, round_count(round)), item_of_input(i + 3u, round, k, 3u));
  rank += bit_of(bits, 3u);
}
// Writes a round; `before` has the counts of all items before it.
fn write_input_of_round(tile: u32, round: u32, before: Acc) {
  let length = round_length(tile, round);
  if (length > 0u * sg_size) { write_row_of_input(tile, round, 0u, before); }
  if (length > 4u * sg_size) { write_row_of_input(tile, round, 1u, before); }
}
// Writes as many items as a row has, four for each lane. What is loaded for them is loaded before any of them is written, so that
// they wait for memory together.
fn write_row_of_input(tile: u32, round: u32, k: u32, before: Acc) {
  let length = round_length(tile, round);
  let rank_0 = sg_lane + (4u * k + 0u) * sg_size;
  let item_0 = staged1(stage_begin() + rank_0);
  let rank_1 = sg_lane + (4u * k + 1u) * sg_size;
  let item_1 = staged1(stage_begin() + rank_1);
  let rank_2 = sg_lane + (4u * k + 2u) * sg_size;
  let item_2 = staged1(stage_begin() + rank_2);
  let rank_3 = sg_lane + (4u * k + 3u) * sg_size;
  let item_3 = staged1(stage_begin() + rank_3);
  if (rank_0 < length) {
    let to = place_in_output(rank_0, round_begin(tile, round), before, round_count(round));
    write_input(to, item_0);
  }
  if (rank_1 < length) {
    let to = place_in_output(rank_1, round_begin(tile, round), before, round_count(round));
    write_input(to, item_1);
  }
  if (rank_2 < length) {
    let to = place_in_output(rank_2, round_begin(tile, round), before, round_count(round));
    write_input(to, item_2);
  }
  if (rank_3 < length) {
    let to = place_in_output(rank_3, round_begin(tile, round), before, round_count(round));
    write_input(to, item_3);
  }
}

fn announce_total(total: Acc) {}
// Stages what needs not wait for what comes before the tile.
fn stage_first(tile: u32, count: WorkgroupScan) {
  load_input_of_round(tile, 0u);
  stage_input(tile, 0u);
}

// Writes the tile; stage_first has staged the first round.
fn emit_tile(tile: u32, before_tile: Acc, count: WorkgroupScan) {
  let before_subgroup = with_counts(before_tile, counts_of(count.before));
  var before = before_subgroup;
  workgroupBarrier();
  write_input_of_round(tile, 0u, before);
}
// What a window has to know of those before it: the counts, and the last item.
const HAS_CARRY: u32 = 4u;
fn has_carry() -> bool { return (params.flags & HAS_CARRY) != 0u; }

// The counts of all tiles before one, from those in its window.
fn carried_before(before: Acc) -> Acc { return before; }
// The end of a window: the counts, the run that is open, and what the next window has to know.
// One invocation calls it, with the counts of the window.
fn emit_end(here: Acc) {
  let total = carried_before(here);
  let n = min(params.n, params.first + params.capacity);
  let counts = counts_of(total);
  store_counts(0u, counts);
  store_counts(1u, n - sum_of(counts));
}
// The chained state of a kernel that counts: for each tile a word per counter, {epoch: 1 bit, inclusive: 1 bit, value: 30 bits}.
// One bit of epoch is enough, because every dispatch publishes every tile, idle ones too: a word of another epoch is of the
// previous dispatch. A tile publishes one value for each flag, so words with equal tags belong together. The words lie
// behind the four of lib/control.wgsl in one buffer; those of many tiles are `spread`, see lib/state.wgsl.
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
const EMPTY: u32 = 0u;      // nothing published in this epoch
const TOTAL: u32 = 1u;      // the tile's own total
const INCLUSIVE: u32 = 2u;  // the total of all tiles up to this one

struct Published { flag: u32, value: Acc }

// Testing only: the value that a tile writes which never publishes; even then every dispatch must write every word.
const NOTHING: u32 = 0x3fffffffu;
fn is_nothing(word: u32) -> bool { return STALL_EVERY > 0u && (word & NOTHING) == NOTHING; }

fn state_publish(tile: u32, flag: u32, value: Acc) {
  // The first epoch is 0, and unwritten words are 0, too: so the bit is the inverse.
  let tag = ((epoch ^ 1u) << 31u) | ((flag - TOTAL) << 30u) | select(0u, NOTHING, stalls(tile));
  atomicStore(&states[4u + 8u * tile], tag | value);
}
fn state_poll(tile: u32) -> Published {
  let word_0 = atomicLoad(&states[4u + 8u * tile]);
  let is_of_epoch = (word_0 >> 31u) == (epoch ^ 1u);
  let ready = is_of_epoch && !is_nothing(word_0);
  let value = word_0 & NOTHING;
  return Published(select(EMPTY, TOTAL + ((word_0 >> 30u) & 1u), ready), value);
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
  var of_lane = identity();  // combined over the lanes in the end, once
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
      of_lane = combine(here, of_lane);
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
  sum = combine(look_back_reduce(of_lane), sum);
  if (is_leader()) { look_back_result = LookBack(sum, stalled, spins); }
}
// What comes before a tile, for all invocations of its workgroup. A tile that has not published in time is not waited for: its
// total is computed here, from the input, and the look-back goes on before it. Needs lib/look_back.wgsl and tile_total; the
// caller publishes the inclusive total. A kernel with windows says what comes before tile 0 (`before_tile_0`).
fn look_back_from(tile: u32) -> Acc {
  var before = identity();
  var next = tile - 1u;
  var spins = 0u;
  loop {
    // One call less, and no variable more: with either, NVIDIA's compiler makes a select of 2^24 items slower by 4 %.
    if (look_back_enter()) { look_back(next, before, spins); }
    let found = workgroupUniformLoad(&look_back_result);
    before = found.sum;
    spins = found.spins;
    if (found.stalled == NONE) { break; }
    before = combine(tile_total(found.stalled), before);
    if (found.stalled == 0u) {
      break;
    }
    next = found.stalled - 1u;
  }
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
  // Surplus workgroups of the grid must not take a ticket: the last one to finish may have reset the counter.
  if (number >= params.tiles) { return; }
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
  if (tile >= used_tiles()) {
    if (is_leader()) {
      state_publish(tile, TOTAL, identity());
      if (state_count_finished(params.tiles)) { state_next_epoch(); }
    }
    return;
  }
  tile_load(tile);
  let count = tile_count(tile);
  if (is_leader()) {
    state_publish(tile, select(TOTAL, INCLUSIVE, tile == 0u), count.total);
    announce_total(count.total);
  }
  tile_rank();
  stage_first(tile, count);
  var before = identity();
  if (tile > 0u) {
    before = look_back_from(tile);
    if (is_leader()) { state_publish(tile, INCLUSIVE, combine(before, count.total)); }
  }
  if (is_leader()) {
    if (tile == used_tiles() - 1u) { emit_end(combine(before, count.total)); }
    if (state_count_finished(params.tiles)) { state_next_epoch(); }
  }
  emit_tile(tile, carried_before(before), count);
}
