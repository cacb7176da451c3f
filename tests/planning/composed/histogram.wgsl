// Combines items by bins, or counts them. Each workgroup does so for the items of its tiles in workgroup memory, and writes a
// table; histogram_totals.wgsl combines the tables. So nothing is added in global memory, and a repeated dispatch gives the
// same. Lanes that add to one counter wait for each other. Against that, lanes have different copies of the counters, in
// different banks, and an invocation whose items are all of one bin combines them first. Where workgroup memory does not hold
// all bins, workgroups take turns: `ranges` of them read the same tiles, at about the same time, and each takes its own bins.
// Source: privatised histograms as in Gómez-Luna et al., "An optimized approach to histogram computation on GPU" (2013).
// Forward progress: no workgroup waits for another. A compare-and-swap repeats only where that of another invocation
// succeeded. Bindings: params, input, input_edges, tables.
// Params: n (items of the window); blocks (workgroups that share the tiles, for each range); bins; ranges;
// range_bins (bins of a range; fewer in the last one); copies (of the counters of a range); stride (counters from a
// copy to the next).

struct Params {
  n: u32,
  blocks: u32,
  bins: u32,
  ranges: u32,
  range_bins: u32,
  copies: u32,
  stride: u32,
  workgroups: u32,
  identity_bits: u32,
  input_bins: u32,
  input_used: u32,
  input_low: u32,
  input_scale: u32,
  input_offset: u32,
  input_edges_offset: u32,
  tables_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> words_2: array<u32>;
@group(0) @binding(3) var<storage, read_write> words_3: array<u32>;

fn load_input(i: u32) -> u32 {
  let k = params.input_offset + i;
  return words_1[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_input(i: u32) -> vec4<u32> {
  return words_1[(params.input_offset + i) >> 2u];
}
fn load_input_edges(i: u32) -> u32 {
  let k = params.input_edges_offset + i;
  return words_2[k];
}
fn load4_input_edges(i: u32) -> vec4<u32> {
  return vec4<u32>(load_input_edges(i + 0u), load_input_edges(i + 1u), load_input_edges(i + 2u), load_input_edges(i + 3u));
}
fn load_tables(i: u32) -> u32 {
  let k = params.tables_offset + i;
  return words_3[k];
}
fn load4_tables(i: u32) -> vec4<u32> {
  return vec4<u32>(load_tables(i + 0u), load_tables(i + 1u), load_tables(i + 2u), load_tables(i + 3u));
}
fn store_tables(i: u32, word: u32) {
  let k = params.tables_offset + i;
  words_3[k] = word;
}
fn store4_tables(i: u32, words: vec4<u32>) {
  store_tables(i + 0u, words.x);
  store_tables(i + 1u, words.y);
  store_tables(i + 2u, words.z);
  store_tables(i + 3u, words.w);
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
const VECS: u32 = 4u;

var<workgroup> counters: array<atomic<u32>, 1024>;
var<private> range_first: u32;
var<private> range_length: u32;
var<private> copy_first: u32;

// The bin of an item, for each of the arguments that say it; NO_BIN where it is in none.
const NO_BIN: u32 = 0xffffffffu;
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
fn code_of(item: Key) -> Key { return key_fixed(key_encode(item)); }
fn less(a: Key, b: Key) -> bool { return a < b; }
// Bin k has what is not below edge k, but below edge k + 1; the last one also has what equals the last edge.
var<workgroup> table_input: array<Key, 1024>;
fn edge_input(k: u32) -> Key { return table_input[k]; }
fn bin_of_input(item: Key) -> u32 {
  let code = code_of(item);
  if (less(code, edge_input(0u)) || less(edge_input(params.input_used), code)) { return NO_BIN; }
  let last = params.input_used - 1u;
  // Even bins: a guess in floats, which the edges correct. It rounds, so it is off by few, if at all.
  let distance = f32(item - params.input_low);
  var k = min(u32(clamp(distance * bitcast<f32>(params.input_scale), 0.0, 16777216.0)), last);
  while (k > 0u && less(code, edge_input(k))) { k--; }
  while (k < last && !less(code, edge_input(k + 1u))) { k++; }
  return k;
}
fn bins_of_input(words: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(
    bin_of_input(words.x), bin_of_input(words.y), bin_of_input(words.z), bin_of_input(words.w),
  );
}
// Copies edges to workgroup memory.
fn bins_begin(local: u32) {
  for (var k = local; k <= params.input_used; k += WORKGROUP_SIZE) {
    table_input[k] = code_of(load_input_edges(k));
  }
}

// The bin of item i: of several arguments a combination of theirs, and each channel has its own bins.
fn bin_at(i: u32) -> u32 {
  var bin = bin_of_input(load_input(i));
  return bin;
}
// The bins of items i to i + 3; the words are those of the arguments.
fn bins_at(i: u32, input: vec4<u32>) -> vec4<u32> {
  let none = vec4<u32>(NO_BIN);
  var bins = bins_of_input(input);
  return bins;
}
fn add(k: u32, value: Acc) {
  atomicAdd(&counters[k], value);
}
fn read_counter(k: u32) -> Acc { return atomicLoad(&counters[k]); }
fn put(bin: u32, value: Acc) {
  let k = bin - range_first;
  if (k < range_length) { add(copy_first + k, value); }
}
fn put4(bins: vec4<u32>) {
  if (all(bins == bins.xxxx)) { put(bins.x, 4u); return; }
  put(bins.x, 1u);
  put(bins.y, 1u);
  put(bins.z, 1u);
  put(bins.w, 1u);
}
fn put_one(i: u32) { put(bin_at(i), 1u); }

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let number = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (number >= params.workgroups) { return; }
  let block = number / params.ranges;
  range_first = (number % params.ranges) * params.range_bins;
  range_length = min(params.bins - range_first, params.range_bins);
  copy_first = (local % params.copies) * params.stride;
  let nothing = bitcast<u32>(params.identity_bits);
  for (var k = local; k < params.copies * params.stride; k += WORKGROUP_SIZE) { atomicStore(&counters[k], nothing); }
  bins_begin(local);
  workgroupBarrier();

  let tile_items = VECS * WORKGROUP_SIZE * 4u;
  let tiles = params.n / tile_items;  // whole ones
  for (var tile = block; tile < tiles; tile += params.blocks) {
    let i = tile * tile_items + local * 4u;
    let input_0 = load4_input(i + 0u * WORKGROUP_SIZE);
    let input_1 = load4_input(i + 4u * WORKGROUP_SIZE);
    let input_2 = load4_input(i + 8u * WORKGROUP_SIZE);
    let input_3 = load4_input(i + 12u * WORKGROUP_SIZE);
    let bins_0 = bins_at(i + 0u * WORKGROUP_SIZE, input_0);
    let bins_1 = bins_at(i + 4u * WORKGROUP_SIZE, input_1);
    let bins_2 = bins_at(i + 8u * WORKGROUP_SIZE, input_2);
    let bins_3 = bins_at(i + 12u * WORKGROUP_SIZE, input_3);
    let bin = bins_0.xxxx;
    var differs = bins_0 ^ bin;
    differs |= bins_1 ^ bin;
    differs |= bins_2 ^ bin;
    differs |= bins_3 ^ bin;
    if (all(differs == vec4<u32>(0u))) {
      put(bin.x, 16u);
      continue;
    }
    put4(bins_0);
    put4(bins_1);
    put4(bins_2);
    put4(bins_3);
  }
  if (tiles % params.blocks == block) {
    for (var i = tiles * tile_items + local; i < params.n; i += WORKGROUP_SIZE) { put_one(i); }
  }

  workgroupBarrier();
  for (var k = local; k < range_length; k += WORKGROUP_SIZE) {
    var total = read_counter(k);
    for (var copy = 1u; copy < params.copies; copy++) { total = combine(total, read_counter(copy * params.stride + k)); }
    store_tables(block * params.bins + range_first + k, pack(total));
  }
}
