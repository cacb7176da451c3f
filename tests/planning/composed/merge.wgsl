// Merges two sorted runs of keys into one; of equal keys those of the first run come first.
// Here the runs are two inputs.
// Source: O. Green, R. McColl, D. Bader, "GPU Merge Path - A GPU Merging Algorithm" (2012).
// merge_partition.wgsl has found which parts of the two make each tile. A workgroup copies both into workgroup memory and
// merges them there (lib/merge_path.wgsl).
// Forward progress: no workgroup waits for another.
// Bindings: params, a, b, splits, output, and of pairs the values of each.
// Params: tiles.

struct Params {
  n_a: u32,
  n_b: u32,
  capacity_a: u32,
  capacity_b: u32,
  tiles: u32,
  a_offset: u32,
  b_offset: u32,
  a_values_offset: u32,
  b_values_offset: u32,
  splits_offset: u32,
  output_offset: u32,
  output_values_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<u32>;
@group(0) @binding(2) var<storage, read> words_2: array<u32>;
@group(0) @binding(3) var<storage, read> words_3: array<u32>;
@group(0) @binding(4) var<storage, read> words_4: array<u32>;
@group(0) @binding(5) var<storage, read> words_5: array<u32>;
@group(0) @binding(6) var<storage, read_write> words_6: array<u32>;
@group(0) @binding(7) var<storage, read_write> words_7: array<u32>;

fn load_a(i: u32) -> u32 {
  let k = params.a_offset + i;
  return words_1[k];
}
fn load4_a(i: u32) -> vec4<u32> {
  return vec4<u32>(load_a(i + 0u), load_a(i + 1u), load_a(i + 2u), load_a(i + 3u));
}
fn load_b(i: u32) -> u32 {
  let k = params.b_offset + i;
  return words_2[k];
}
fn load4_b(i: u32) -> vec4<u32> {
  return vec4<u32>(load_b(i + 0u), load_b(i + 1u), load_b(i + 2u), load_b(i + 3u));
}
fn load_a_values(i: u32) -> u32 {
  let k = params.a_values_offset + i;
  return words_3[k];
}
fn load4_a_values(i: u32) -> vec4<u32> {
  return vec4<u32>(load_a_values(i + 0u), load_a_values(i + 1u), load_a_values(i + 2u), load_a_values(i + 3u));
}
fn load_b_values(i: u32) -> u32 {
  let k = params.b_values_offset + i;
  return words_4[k];
}
fn load4_b_values(i: u32) -> vec4<u32> {
  return vec4<u32>(load_b_values(i + 0u), load_b_values(i + 1u), load_b_values(i + 2u), load_b_values(i + 3u));
}
fn load_splits(i: u32) -> u32 {
  let k = params.splits_offset + i;
  return words_5[k];
}
fn load4_splits(i: u32) -> vec4<u32> {
  return vec4<u32>(load_splits(i + 0u), load_splits(i + 1u), load_splits(i + 2u), load_splits(i + 3u));
}
fn load_output(i: u32) -> u32 {
  let k = params.output_offset + i;
  return words_6[k];
}
fn load4_output(i: u32) -> vec4<u32> {
  return vec4<u32>(load_output(i + 0u), load_output(i + 1u), load_output(i + 2u), load_output(i + 3u));
}
fn store_output(i: u32, word: u32) {
  let k = params.output_offset + i;
  words_6[k] = word;
}
fn store4_output(i: u32, words: vec4<u32>) {
  store_output(i + 0u, words.x);
  store_output(i + 1u, words.y);
  store_output(i + 2u, words.z);
  store_output(i + 3u, words.w);
}
fn load_output_values(i: u32) -> u32 {
  let k = params.output_values_offset + i;
  return words_7[k];
}
fn load4_output_values(i: u32) -> vec4<u32> {
  return vec4<u32>(load_output_values(i + 0u), load_output_values(i + 1u), load_output_values(i + 2u), load_output_values(i + 3u));
}
fn store_output_values(i: u32, word: u32) {
  let k = params.output_values_offset + i;
  words_7[k] = word;
}
fn store4_output_values(i: u32, words: vec4<u32>) {
  store_output_values(i + 0u, words.x);
  store_output_values(i + 1u, words.y);
  store_output_values(i + 2u, words.z);
  store_output_values(i + 3u, words.w);
}

override WORKGROUP_SIZE: u32 = 256u;

// The order of a merge, is_before(a, b), and keys in memory: key_NAME(i) of each input, store_key(i, key) of the output.
// Keys are held as their codes.
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
fn is_before(a: Key, b: Key) -> bool {
  let x = key_fixed(a);
  let y = key_fixed(b);
  return x < y;
}
fn key_a(i: u32) -> Key { return key_encode(load_a(i)); }
fn key_b(i: u32) -> Key { return key_encode(load_b(i)); }
fn store_key(i: u32, key: Key) { store_output(i, key_decode(key)); }
// As expressions give their items.
alias Acc = Key;
struct Quad { x: Acc, y: Acc, z: Acc, w: Acc }
// Which sorted runs a tile merges: two inputs, or two neighbouring runs of one. The GPU may know their lengths better than
// the host.
// Params: n_a, n_b (keys) and capacity_a, capacity_b (keys that there is room for); or of a sort n (keys), run_items (keys of a
// sorted run) and pair_items (of two runs, a multiple of a tile; or more than all keys).
struct Runs {
  first: u32,  // item of the output with which they begin
  length_a: u32,
  length_b: u32,
}
fn runs_of(first: u32) -> Runs {
  return Runs(0u, min(params.n_a, params.capacity_a), min(params.n_b, params.capacity_b));
}
fn total() -> u32 {
  let runs = runs_of(0u);
  return runs.length_a + runs.length_b;
}
// Merges two neighbouring runs in workgroup memory: each invocation finds where the path of the merge crosses its own
// diagonal, and merges ITEMS keys from that place on, one by one, into registers. Of equal keys those of the first run come
// first. ITEMS is odd: neighbouring invocations then write to different banks.
const ITEMS: u32 = 11u;
const TILE: u32 = 2816u;
// Three standard deviations of where the path of two random runs of a tile lies.
const GUESS_STEP: u32 = 64u;

// An invocation may read up to ITEMS keys behind the end.
var<workgroup> keys: array<Key, 2828>;
var<private> merged: array<Key, ITEMS>;
// The places in `keys` where they were.
var<private> sources: array<u32, ITEMS>;
fn merge_runs(first_a: u32, first_b: u32, end_b: u32, diagonal: u32) {
  let count_a = first_b - first_a;
  let count_b = end_b - first_b;
  var low = max(diagonal, count_b) - count_b;
  var high = min(diagonal, count_a);
  // The first probe is where the path would be if both runs were spread alike, and the second one a step beside it: mostly the
  // path lies between the two, and a third of the steps is saved.
  var probe = u32(f32(diagonal) * (f32(count_a) / f32(max(count_a + count_b, 1u))));
  for (var k = 0u; low < high; k++) {
    probe = clamp(probe, low, high - 1u);
    if (is_before(keys[first_b + diagonal - 1u - probe], keys[first_a + probe])) {
      high = probe;
      probe = max(probe, GUESS_STEP) - GUESS_STEP;
    } else {
      low = probe + 1u;
      probe += GUESS_STEP;
    }
    if (k > 0u) { probe = (low + high) >> 1u; }
  }
  var at_a = first_a + low;
  var at_b = first_b + diagonal - low;
  var next_a = keys[at_a];
  var next_b = keys[at_b];
  let is_a_0 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[0] = select(next_b, next_a, is_a_0);
  sources[0] = select(at_b, at_a, is_a_0);
  at_a += select(0u, 1u, is_a_0);
  at_b += select(1u, 0u, is_a_0);
  let following_0 = keys[select(at_b, at_a, is_a_0)];
  next_a = select(next_a, following_0, is_a_0);
  next_b = select(following_0, next_b, is_a_0);
  let is_a_1 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[1] = select(next_b, next_a, is_a_1);
  sources[1] = select(at_b, at_a, is_a_1);
  at_a += select(0u, 1u, is_a_1);
  at_b += select(1u, 0u, is_a_1);
  let following_1 = keys[select(at_b, at_a, is_a_1)];
  next_a = select(next_a, following_1, is_a_1);
  next_b = select(following_1, next_b, is_a_1);
  let is_a_2 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[2] = select(next_b, next_a, is_a_2);
  sources[2] = select(at_b, at_a, is_a_2);
  at_a += select(0u, 1u, is_a_2);
  at_b += select(1u, 0u, is_a_2);
  let following_2 = keys[select(at_b, at_a, is_a_2)];
  next_a = select(next_a, following_2, is_a_2);
  next_b = select(following_2, next_b, is_a_2);
  let is_a_3 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[3] = select(next_b, next_a, is_a_3);
  sources[3] = select(at_b, at_a, is_a_3);
  at_a += select(0u, 1u, is_a_3);
  at_b += select(1u, 0u, is_a_3);
  let following_3 = keys[select(at_b, at_a, is_a_3)];
  next_a = select(next_a, following_3, is_a_3);
  next_b = select(following_3, next_b, is_a_3);
  let is_a_4 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[4] = select(next_b, next_a, is_a_4);
  sources[4] = select(at_b, at_a, is_a_4);
  at_a += select(0u, 1u, is_a_4);
  at_b += select(1u, 0u, is_a_4);
  let following_4 = keys[select(at_b, at_a, is_a_4)];
  next_a = select(next_a, following_4, is_a_4);
  next_b = select(following_4, next_b, is_a_4);
  let is_a_5 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[5] = select(next_b, next_a, is_a_5);
  sources[5] = select(at_b, at_a, is_a_5);
  at_a += select(0u, 1u, is_a_5);
  at_b += select(1u, 0u, is_a_5);
  let following_5 = keys[select(at_b, at_a, is_a_5)];
  next_a = select(next_a, following_5, is_a_5);
  next_b = select(following_5, next_b, is_a_5);
  let is_a_6 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[6] = select(next_b, next_a, is_a_6);
  sources[6] = select(at_b, at_a, is_a_6);
  at_a += select(0u, 1u, is_a_6);
  at_b += select(1u, 0u, is_a_6);
  let following_6 = keys[select(at_b, at_a, is_a_6)];
  next_a = select(next_a, following_6, is_a_6);
  next_b = select(following_6, next_b, is_a_6);
  let is_a_7 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[7] = select(next_b, next_a, is_a_7);
  sources[7] = select(at_b, at_a, is_a_7);
  at_a += select(0u, 1u, is_a_7);
  at_b += select(1u, 0u, is_a_7);
  let following_7 = keys[select(at_b, at_a, is_a_7)];
  next_a = select(next_a, following_7, is_a_7);
  next_b = select(following_7, next_b, is_a_7);
  let is_a_8 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[8] = select(next_b, next_a, is_a_8);
  sources[8] = select(at_b, at_a, is_a_8);
  at_a += select(0u, 1u, is_a_8);
  at_b += select(1u, 0u, is_a_8);
  let following_8 = keys[select(at_b, at_a, is_a_8)];
  next_a = select(next_a, following_8, is_a_8);
  next_b = select(following_8, next_b, is_a_8);
  let is_a_9 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[9] = select(next_b, next_a, is_a_9);
  sources[9] = select(at_b, at_a, is_a_9);
  at_a += select(0u, 1u, is_a_9);
  at_b += select(1u, 0u, is_a_9);
  let following_9 = keys[select(at_b, at_a, is_a_9)];
  next_a = select(next_a, following_9, is_a_9);
  next_b = select(following_9, next_b, is_a_9);
  let is_a_10 = at_b >= end_b || (at_a < first_b && !is_before(next_b, next_a));
  merged[10] = select(next_b, next_a, is_a_10);
  sources[10] = select(at_b, at_a, is_a_10);
}

// Keys in registers go to their places in workgroup memory.
fn stage_merged(local: u32) {
  keys[local * ITEMS + 0u] = merged[0];
  keys[local * ITEMS + 1u] = merged[1];
  keys[local * ITEMS + 2u] = merged[2];
  keys[local * ITEMS + 3u] = merged[3];
  keys[local * ITEMS + 4u] = merged[4];
  keys[local * ITEMS + 5u] = merged[5];
  keys[local * ITEMS + 6u] = merged[6];
  keys[local * ITEMS + 7u] = merged[7];
  keys[local * ITEMS + 8u] = merged[8];
  keys[local * ITEMS + 9u] = merged[9];
  keys[local * ITEMS + 10u] = merged[10];
}
// The same of the places that registers hold.
fn stage_places(local: u32) {
  keys[local * ITEMS + 0u] = sources[0];
  keys[local * ITEMS + 1u] = sources[1];
  keys[local * ITEMS + 2u] = sources[2];
  keys[local * ITEMS + 3u] = sources[3];
  keys[local * ITEMS + 4u] = sources[4];
  keys[local * ITEMS + 5u] = sources[5];
  keys[local * ITEMS + 6u] = sources[6];
  keys[local * ITEMS + 7u] = sources[7];
  keys[local * ITEMS + 8u] = sources[8];
  keys[local * ITEMS + 9u] = sources[9];
  keys[local * ITEMS + 10u] = sources[10];
}
fn staged_place(i: u32) -> u32 { return keys[i]; }
// The tile's keys leave workgroup memory for the output, from item `first` on.
fn store_keys(first: u32, count: u32, local: u32) {
  for (var i = local; i < count; i += WORKGROUP_SIZE) { store_key(first + i, keys[i]); }
}
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let tile = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (tile >= params.tiles) { return; }
  let first = tile * TILE;
  if (first >= total()) { return; }
  let runs = runs_of(first);
  let diagonal = first - runs.first;
  let count = min(runs.length_a + runs.length_b - diagonal, TILE);
  let split = load_splits(tile);
  var end = runs.length_a;
  if (diagonal + count < runs.length_a + runs.length_b) {
    // In runs that are not sorted a path may go back: what is read and written stays in range.
    end = clamp(load_splits(tile + 1u), split, split + count);
  }
  let count_a = end - split;
  let count_b = count - count_a;
  let first_a = split;
  let first_b = first - split;
  let at_0 = local + 0u;
  var key_0: Key;
  if (at_0 < count_a) {
    key_0 = key_a(first_a + at_0);
  } else if (at_0 < count) {
    key_0 = key_b(first_b + at_0 - count_a);
  }
  let at_1 = local + 256u;
  var key_1: Key;
  if (at_1 < count_a) {
    key_1 = key_a(first_a + at_1);
  } else if (at_1 < count) {
    key_1 = key_b(first_b + at_1 - count_a);
  }
  let at_2 = local + 512u;
  var key_2: Key;
  if (at_2 < count_a) {
    key_2 = key_a(first_a + at_2);
  } else if (at_2 < count) {
    key_2 = key_b(first_b + at_2 - count_a);
  }
  let at_3 = local + 768u;
  var key_3: Key;
  if (at_3 < count_a) {
    key_3 = key_a(first_a + at_3);
  } else if (at_3 < count) {
    key_3 = key_b(first_b + at_3 - count_a);
  }
  let at_4 = local + 1024u;
  var key_4: Key;
  if (at_4 < count_a) {
    key_4 = key_a(first_a + at_4);
  } else if (at_4 < count) {
    key_4 = key_b(first_b + at_4 - count_a);
  }
  let at_5 = local + 1280u;
  var key_5: Key;
  if (at_5 < count_a) {
    key_5 = key_a(first_a + at_5);
  } else if (at_5 < count) {
    key_5 = key_b(first_b + at_5 - count_a);
  }
  let at_6 = local + 1536u;
  var key_6: Key;
  if (at_6 < count_a) {
    key_6 = key_a(first_a + at_6);
  } else if (at_6 < count) {
    key_6 = key_b(first_b + at_6 - count_a);
  }
  let at_7 = local + 1792u;
  var key_7: Key;
  if (at_7 < count_a) {
    key_7 = key_a(first_a + at_7);
  } else if (at_7 < count) {
    key_7 = key_b(first_b + at_7 - count_a);
  }
  let at_8 = local + 2048u;
  var key_8: Key;
  if (at_8 < count_a) {
    key_8 = key_a(first_a + at_8);
  } else if (at_8 < count) {
    key_8 = key_b(first_b + at_8 - count_a);
  }
  let at_9 = local + 2304u;
  var key_9: Key;
  if (at_9 < count_a) {
    key_9 = key_a(first_a + at_9);
  } else if (at_9 < count) {
    key_9 = key_b(first_b + at_9 - count_a);
  }
  let at_10 = local + 2560u;
  var key_10: Key;
  if (at_10 < count_a) {
    key_10 = key_a(first_a + at_10);
  } else if (at_10 < count) {
    key_10 = key_b(first_b + at_10 - count_a);
  }
  keys[at_0] = key_0;
  keys[at_1] = key_1;
  keys[at_2] = key_2;
  keys[at_3] = key_3;
  keys[at_4] = key_4;
  keys[at_5] = key_5;
  keys[at_6] = key_6;
  keys[at_7] = key_7;
  keys[at_8] = key_8;
  keys[at_9] = key_9;
  keys[at_10] = key_10;
  workgroupBarrier();
  merge_runs(0u, count_a, count, min(local * ITEMS, count));
  workgroupBarrier();
  stage_merged(local);
  workgroupBarrier();
  store_keys(first, count, local);
  workgroupBarrier();
  stage_places(local);
  workgroupBarrier();
  for (var i = local; i < count; i += WORKGROUP_SIZE) {
    let place = staged_place(i);
    if (place < count_a) {
      store_output_values(first + i, load_a_values(first_a + place));
    } else {
      store_output_values(first + i, load_b_values(first_b + place - count_a));
    }
  }
}
