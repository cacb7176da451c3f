// Sorts short segments: a workgroup takes whole ones that lie side by side, at most a tile of items, and sorts all of them
// at once, by key and then by the number of the segment. All passes run in workgroup memory; each item is read and written
// once.
// With offsets a workgroup has the segments of several windows, and takes as many windows together as a tile holds.
// Forward progress: no workgroup waits for another.
// Bindings: params, keys (and values), in and out{{ "" if fixed else ", offsets, windows" }}.
// Params: n (items); tiles; windows; group_windows (of a workgroup); length (of each segment); tile_length (of all
// segments of a tile); digit_0, … (shift, width and word: see lib/segment_key.wgsl).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segment_key.wgsl"
//$ include "lib/sort_rank.wgsl"

//$ set components = "xyz"[:key_words + 1]
//$ set tag = components[-1]
const PASSES: u32 = {{ passes }}u;
const HAS_VALUES: bool = {{ "true" if values else "false" }};
//$ if not fixed
// A bit for each place of the tile at which a segment begins, in `stage`; behind them, how many bits earlier words have.
const HEAD_WORDS: u32 = TILE / 32u;
var<workgroup> segments: u32;

fn offset_at(s: u32) -> u32 { return min(load_offsets(s), {{ used.n }}); }
fn set_head(place: u32, count: u32) {
  if (place < count) { atomicOr(&stage[place >> 5u], 1u << (place & 31u)); }
}
// Whether one of the segments from `least` up to but without `most` begins at item i.
fn begins(i: u32, least: u32, most: u32) -> bool {
  var low = least;
  var high = most;
  while (low < high) {
    let middle = (low + high) >> 1u;
    if (offset_at(middle) < i) { low = middle + 1u; } else { high = middle; }
  }
  return low < most && offset_at(low) == i;
}
fn find_heads(least: u32, most: u32, begin: u32, count: u32) {
  for (var i = lane; i < HEAD_WORDS; i += WORKGROUP_SIZE) { atomicStore(&stage[i], 0u); }
  workgroupBarrier();
  if (most - least <= 2u * TILE) {
    for (var s = least + lane; s < most; s += WORKGROUP_SIZE) { set_head(offset_at(s) - begin, count); }
  } else {  // almost all of them are empty
    for (var i = lane; i < count; i += WORKGROUP_SIZE) {
      if (begins(begin + i, least, most)) { set_head(i, count); }
    }
  }
  workgroupBarrier();
  var heads = 0u;
  if (lane < HEAD_WORDS) { heads = countOneBits(atomicLoad(&stage[lane])); }
  let before = wg_exclusive(heads);
  if (lane < HEAD_WORDS) { atomicStore(&stage[HEAD_WORDS + lane], before.before); }
  if (lane == 0u) { segments = before.total; }
  workgroupBarrier();
}
fn segment_of(place: u32) -> u32 {
  let word = place >> 5u;
  let upto = atomicLoad(&stage[word]) & (0xffffffffu >> (31u - (place & 31u)));
  return atomicLoad(&stage[HEAD_WORDS + word]) + countOneBits(upto) - 1u;
}
//$ endif

fn run(tile: u32, lanes: Lanes) {
  rank_enter(lanes);
//$ if fixed
  let begin = tile * params.tile_length;
  let end = min(begin + params.tile_length, {{ used.n }});
  if (begin >= end) { return; }
//$ else
  let windows_end = min((tile + 1u) * params.group_windows, params.windows);
  var next = tile * params.group_windows;
  while (next < windows_end) {
  var window = load4_windows(4u * next);  // segments from and to, items from and to
  next++;
  while (next < windows_end) {
    let another = load4_windows(4u * next);
    if (window.z >= window.w) {
      window = another;
    } else if (another.z < another.w) {
      // A long segment may lie between the two.
      if (another.z != window.w || another.w - window.z > TILE) { break; }
      window = vec4<u32>(window.x, another.y, window.z, another.w);
    }
    next++;
  }
  let begin = window.z;
  let end = window.w;
  if (begin >= end) { continue; }
//$ endif
  let count = end - begin;
  let rounds = (count + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  row_items = 32u * rounds;
//$ if fixed
  let number = (count + params.length - 1u) / params.length;
//$ else
  find_heads(window.x, window.y, begin, count);
  let number = workgroupUniformLoad(&segments);
//$ endif
//$ for k in range(items)
  if ({{ k }}u < rounds) {
    let place = tile_position({{ k }}u);
    keys[{{ k }}] = Ranked(LAST_CODE, 0xffffffffu);
    if (place < count) {
      let segment = {{ "place / params.length" if fixed else "segment_of(place)" }};
      keys[{{ k }}] = Ranked(key_encode(load_keys_input(begin + place)), (segment << 16u) | place);
    }
  }
//$ endfor
  workgroupBarrier();
  let segment_passes = select(select(2u, 1u, number <= BINS), 0u, number == 1u);
  for (var p = 0u; p < PASSES + segment_passes; p++) {
    if (p == {{ p }}u) { use_digit(params.digit_{{ p }}); }  //$ for p in range(passes)
    if (p == PASSES + {{ loop.index0 }}u) { use_digit({{ digit }}u); }  //$ for digit in tag_digits
    tile_rank(wg_exclusive(tile_count(rounds)).before);
//$ for word in components
    {{ "if (HAS_VALUES || segment_passes > 0u) " if word == tag }}{
      if ({{ k }}u < rounds) { atomicStore(&stage[rank_of({{ k }}u)], keys[{{ k }}].{{ word }}); }  //$ for k in range(items)
      workgroupBarrier();
      if ({{ k }}u < rounds) { keys[{{ k }}].{{ word }} = atomicLoad(&stage[tile_position({{ k }}u)]); }  //$ for k in range(items)
      workgroupBarrier();
    }
//$ endfor
  }
//$ for k in range(items)
  if ({{ k }}u < rounds && tile_position({{ k }}u) < count) {
    let to = begin + tile_position({{ k }}u);
    store_keys_output(to, key_decode(keys[{{ k }}].{{ components[:-1] }}));
//$ if values
    store_values_output(to, load_values_input(begin + (keys[{{ k }}].{{ tag }} & 0xffffu)));
//$ endif
  }
//$ endfor
//$ if not fixed
  }
//$ endif
}
