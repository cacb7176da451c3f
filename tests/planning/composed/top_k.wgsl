// The smallest code of each group of consecutive items. The k groups with the smallest minima, of equal ones the first, hold
// the k items that win: each of these groups has an item that comes before every item of the groups left out.
// Source: Gaihre, Zheng, Weitze, Li, Song, Ding, Li, Liu, "Dr. Top-k: delegate-centric top-k on GPUs" (2021).
// Several invocations, its lanes, read a group, row by row, and combine their minima in workgroup memory once a block.
// Forward progress: no workgroup waits for another. Bindings: params, input, minima.
// Params: n (items of the window); blocks (workgroups that have work); groups (groups
// to find the minimum of); lanes_log2 (of the lanes of a group); steps (in which these read it); tiles (of a block,
// at most TILES: a lane has a group of each); group_log2 (of the size of a listed group).

struct Params {
  n: u32,
  blocks: u32,
  groups: u32,
  lanes_log2: u32,
  steps: u32,
  tiles: u32,
  input_offset: u32,
  minima_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> words_2: array<u32>;

fn load_input(i: u32) -> u32 {
  let k = params.input_offset + i;
  return words_1[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_input(i: u32) -> vec4<u32> {
  return words_1[(params.input_offset + i) >> 2u];
}
fn load_minima(i: u32) -> u32 {
  let k = params.minima_offset + i;
  return words_2[k];
}
fn load4_minima(i: u32) -> vec4<u32> {
  return vec4<u32>(load_minima(i + 0u), load_minima(i + 1u), load_minima(i + 2u), load_minima(i + 3u));
}
fn store_minima(i: u32, word: u32) {
  let k = params.minima_offset + i;
  words_2[k] = word;
}
fn store4_minima(i: u32, words: vec4<u32>) {
  store_minima(i + 0u, words.x);
  store_minima(i + 1u, words.y);
  store_minima(i + 2u, words.z);
  store_minima(i + 3u, words.w);
}

override WORKGROUP_SIZE: u32 = 256u;

// The items among which a top-k looks, as codes of which the smallest win: all items of a window, or those of listed groups.
// Keys as codes: numbers whose unsigned order is the wanted order. A code holds every bit of its key, so it can be decoded.
// But floats that are equal in numpy's order have different codes (−0 and +0, and all NaNs), and in descending order a NaN
// would come first: key_fixed of a code gives such keys their place. A key of 8 or 16 bits is the upper part of its code,
// whose other bits are 0.
alias Key = u32;
fn key_encode(item: Key) -> Key {
  let key = item;
  return ~key;
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
const NO_CODE: Key = 0xffffffffu;
fn less(a: Key, b: Key) -> bool { return a < b; }
fn same(a: Key, b: Key) -> bool { return a == b; }
fn least(a: Key, b: Key) -> Key { return min(a, b); }
fn code_of(item: Key) -> Key { return key_fixed(key_encode(item)); }
const TILES: u32 = 2u;

var<workgroup> minima: array<Key, TILES * 256u>;

// The smallest code of what a lane reads of a group in a step.
const ROWS: u32 = 8u;  // vec4 of a lane in a step
fn code_or_none(i: u32) -> Key {
  if (i >= params.n) { return NO_CODE; }
  return code_of(load_input(i));
}
fn least_of_4(i: u32) -> Key {
  let items = load4_input(i);
  return least(least(code_of(items.x), code_of(items.y)), least(code_of(items.z), code_of(items.w)));
}
fn least_of_some(i: u32) -> Key {
  return least(
    least(code_or_none(i), code_or_none(i + 1u)), least(code_or_none(i + 2u), code_or_none(i + 3u))
  );
}
// The minimum of a lane's items of a step. Rows are written out, so that all loads are in flight together.
fn step_minimum(first: u32, row_items: u32) -> Key {
  if (first + (ROWS - 1u) * row_items + 4u <= params.n) {
    let row_0 = least_of_4(first + 0u * row_items);
    let row_1 = least_of_4(first + 1u * row_items);
    let row_2 = least_of_4(first + 2u * row_items);
    let row_3 = least_of_4(first + 3u * row_items);
    let row_4 = least_of_4(first + 4u * row_items);
    let row_5 = least_of_4(first + 5u * row_items);
    let row_6 = least_of_4(first + 6u * row_items);
    let row_7 = least_of_4(first + 7u * row_items);
    var found = row_0;
    found = least(found, row_1);
    found = least(found, row_2);
    found = least(found, row_3);
    found = least(found, row_4);
    found = least(found, row_5);
    found = least(found, row_6);
    found = least(found, row_7);
    return found;
  }
  var found = NO_CODE;
  for (var r = 0u; r < ROWS; r++) { found = least(found, least_of_some(first + r * row_items)); }
  return found;
}
// The minimum of a lane's items of a group.
fn lane_minimum(group: u32, lane: u32) -> Key {
  if (group >= params.groups) { return NO_CODE; }
  let row_items = 4u << params.lanes_log2;
  let step_items = ROWS * row_items;
  let first = group * params.steps * step_items + 4u * lane;
  var found = NO_CODE;
  for (var s = 0u; s < params.steps; s++) { found = least(found, step_minimum(first + s * step_items, row_items)); }
  return found;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  let lanes = 1u << params.lanes_log2;
  let lane = local & (lanes - 1u);
  let tile_groups = WORKGROUP_SIZE >> params.lanes_log2;
  let first_group = block * params.tiles * tile_groups;
  for (var t = 0u; t < params.tiles; t++) {
    minima[t * WORKGROUP_SIZE + local] = lane_minimum(first_group + t * tile_groups + (local >> params.lanes_log2), lane);
  }
  for (var d = lanes / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if (lane < d) {
      for (var t = 0u; t < params.tiles; t++) {
        let at = t * WORKGROUP_SIZE + local;
        minima[at] = least(minima[at], minima[at + d]);
      }
    }
  }
  workgroupBarrier();
  for (var g = local; g < params.tiles * tile_groups; g += WORKGROUP_SIZE) {
    if (first_group + g < params.groups) { store_minima(first_group + g, minima[g * lanes]); }
  }
}
