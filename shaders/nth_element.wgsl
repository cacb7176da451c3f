// One step of a radix select: finds a digit of the items that a sort would put at some places, from the highest digit down.
// Its workgroups count, among the items that have the digits known so far, the next one. The last workgroup to finish sees
// in which bins the places are, and writes that for the next step{{ "; in the last step, the items" }}. Where few items are left, a
// step stores their codes, and the steps after it read these in place of the input.
// A repeated dispatch gives the same: counters are never cleared, but `memory` has what they were before.
// Source: the steps and the buffer of candidates are those of Zhang, Naruse, Li, Wang, "Parallel top-k algorithms on GPU: a
// comprehensive study and new methods" (2023).
// Forward progress: no workgroup waits for another. The last one to finish knows that all counts were added, but WGSL does
// not promise that it sees them at once. If their sum is wrong after SPIN_LIMIT polls, it recounts all items.
// Bindings: params, input{{ ", places" if first }}{{ ", candidates" if not first }}, values, counts, memory.
// Params: n (items of the input); blocks (workgroups that share the items); places; step; digit_word (of a code: 1
// for the upper one of two); digit_shift; digit_mask; known_low (the bits of a code that are known); known_high;
// room (candidates that there is room for); is_last.

//$ include "lib/top_k_items.wgsl"
const WORKGROUP_SIZE: u32 = {{ workgroup_size }}u;
override SPIN_LIMIT: u32 = 256u;
const BINS: u32 = {{ bins }}u;
const PLACES: u32 = {{ most_places }}u;
const TILE: u32 = {{ 4 * vecs * workgroup_size }}u;
const NONE: u32 = 0xffffffffu;
// Of `counts`.
const FINISHED: u32 = 0u;
const CURSOR: u32 = 1u;
const COUNTERS: u32 = 16u;
// Of `memory`: the counters and the cursor before this dispatch, and what each step has to do.
const CURSOR_BEFORE: u32 = BINS;
const STEPS: u32 = BINS + 16u;
const STEP_WORDS: u32 = 4u + 4u * PLACES;
// Of a step: whether candidates are read, how many items there are, how many of them have the known digits, and how many
// different ones these are; then the known digits, and for each place where it is among the items that have them.
const OF_CANDIDATES: u32 = 0u;
const ITEMS: u32 = 1u;
const MATCHING: u32 = 2u;
const SLOTS: u32 = 3u;
const SLOT_LOW: u32 = 4u;
const SLOT_HIGH: u32 = 4u + PLACES;
const LEFT: u32 = 4u + 2u * PLACES;
const SLOT: u32 = 4u + 3u * PLACES;

var<workgroup> bins: array<atomic<u32>, BINS>;
var<workgroup> sums: array<u32, WORKGROUP_SIZE>;
var<workgroup> shared_word: u32;
var<workgroup> head: array<u32, 4>;
var<workgroup> slot_codes: array<Key, PLACES>;
//$ if not first
// By the first digit, a byte each: a slot with this digit; 255 for none.
var<workgroup> slot_table: array<atomic<u32>, BINS / 4u>;
var<workgroup> stored: atomic<u32>;
//$ endif
var<workgroup> found_codes: array<Key, PLACES>;
var<workgroup> found_left: array<u32, PLACES>;
var<workgroup> found_size: array<u32, PLACES>;
var<private> local: u32;
//$ include "lib/prefix_sum.wgsl"

//$ if key_words == 1
fn known() -> Key { return params.known_low; }
fn word_of(code: Key) -> u32 { return code; }
fn top_of(code: Key) -> u32 { return code >> {{ 32 - top_bits }}u; }
fn with_digit(code: Key, digit: u32) -> Key { return code | (digit << params.digit_shift); }
fn low_of(code: Key) -> u32 { return code; }
fn high_of(code: Key) -> u32 { return 0u; }
fn key_of(low: u32, high: u32) -> Key { return low; }
//$ else
fn known() -> Key { return vec2<u32>(params.known_low, params.known_high); }
fn word_of(code: Key) -> u32 { return select(code.x, code.y, params.digit_word == 1u); }
fn top_of(code: Key) -> u32 { return code.y >> {{ 32 - top_bits }}u; }
fn with_digit(code: Key, digit: u32) -> Key {
  return code | ((digit << params.digit_shift) * vec2<u32>(1u - params.digit_word, params.digit_word));
}
fn low_of(code: Key) -> u32 { return code.x; }
fn high_of(code: Key) -> u32 { return code.y; }
fn key_of(low: u32, high: u32) -> Key { return vec2<u32>(low, high); }
//$ endif
fn step_at(step: u32, field: u32) -> u32 { return STEPS + step * STEP_WORDS + field; }
fn digit_of(code: Key) -> u32 { return (word_of(code) >> params.digit_shift) & params.digit_mask; }
//$ if first
fn slot_of(code: Key) -> u32 { return 0u; }
//$ else
fn slot_of(code: Key) -> u32 {
  let top = top_of(code);
  let slot = (atomicLoad(&slot_table[top >> 2u]) >> (8u * (top & 3u))) & 255u;
  if (slot == 255u || params.step == 1u) { return select(slot, NONE, slot == 255u); }
  for (var s = 0u; s < head[SLOTS]; s++) {
    if (same(code & known(), slot_codes[s])) { return s; }
  }
  return NONE;
}
//$ endif
fn count_one(code: Key, slot: u32) { atomicAdd(&bins[slot * (params.digit_mask + 1u) + digit_of(code)], 1u); }

// Counts the items of every `stride`-th tile of the input, and stores the codes of those that match.
fn count_input(first_tile: u32, stride: u32, stores: bool) {
  let tiles = {{ used.n }} / TILE;  // whole ones
  for (var tile = first_tile; tile < tiles; tile += stride) {
//$ if vec4
    let i = tile * TILE + local * 4u;
    let row_{{ r }} = load4_input(i + {{ 4 * r }}u * WORKGROUP_SIZE);  //$ for r in range(vecs)
//$ for r in range(vecs)
    let code_{{ 4 * r + c }} = code_of(row_{{ r }}.{{ "xyzw"[c] }});  //$ for c in range(4)
//$ endfor
//$ else
    let i = tile * TILE + local;
    let code_{{ k }} = code_of(load_input(i + {{ k }}u * WORKGROUP_SIZE));  //$ for k in range(4 * vecs)
//$ endif
//$ if first
//$ for r in range(vecs)
    {
      // Lanes that add to one counter wait for each other, so four equal digits are added at once.
      let digits = vec4<u32>(
        digit_of(code_{{ 4 * r + c }}),  //$ for c in range(4)
      );
      if (all(digits == digits.xxxx)) {
        atomicAdd(&bins[digits.x], 4u);
      } else {
        atomicAdd(&bins[digits.{{ c }}], 1u);  //$ for c in "xyzw"
      }
    }
//$ endfor
//$ else
    var taken = 0u;
//$ for k in range(4 * vecs)
    let slot_{{ k }} = slot_of(code_{{ k }});
    if (slot_{{ k }} != NONE) {
      count_one(code_{{ k }}, slot_{{ k }});
      taken += 1u;
    }
//$ endfor
    if (stores) {
      if (local == 0u) { atomicStore(&stored, 0u); }
      workgroupBarrier();
      var at = 0u;
      if (taken > 0u) { at = atomicAdd(&stored, taken); }
      workgroupBarrier();
      var begin = 0u;
      if (local == 0u) {
        let count = atomicLoad(&stored);
        if (count > 0u) { begin = atomicAdd(&counts[CURSOR], count) - memory[CURSOR_BEFORE]; }
      }
      at += share(begin);
//$ for k in range(4 * vecs)
      if (slot_{{ k }} != NONE) {
        store_candidates(at, code_{{ k }});
        at += 1u;
      }
//$ endfor
    }
//$ endif
  }
  if (tiles % stride == first_tile) {
    for (var i = tiles * TILE + local; i < {{ used.n }}; i += WORKGROUP_SIZE) {
      let code = code_of(load_input(i));
      let slot = slot_of(code);
      if (slot != NONE) {
        count_one(code, slot);
//$ if not first
        if (stores) { store_candidates(atomicAdd(&counts[CURSOR], 1u) - memory[CURSOR_BEFORE], code); }
//$ endif
      }
    }
  }
}
fn count_items(first_tile: u32, stride: u32, of_candidates: bool, stores: bool) {
//$ if not first
  if (of_candidates) {
    for (var i = first_tile * WORKGROUP_SIZE + local; i < head[ITEMS]; i += stride * WORKGROUP_SIZE) {
      let code = load_candidates(i);
      let slot = slot_of(code);
      if (slot != NONE) { count_one(code, slot); }
    }
    return;
  }
//$ endif
  count_input(first_tile, stride, stores);
}
fn clear_bins() {
  workgroupBarrier();
  for (var b = local; b < BINS; b += WORKGROUP_SIZE) { atomicStore(&bins[b], 0u); }
  workgroupBarrier();
}

fn run(block: u32, invocation: u32) {
  local = invocation;
//$ if first
  if (local == 0u) { head = array<u32, 4>(0u, {{ used.n }}, {{ used.n }}, 1u); }
  if (local < PLACES) { slot_codes[local] = Key(); }
//$ else
  if (local < 4u) { head[local] = memory[step_at(params.step, local)]; }
  for (var w = local; w < BINS / 4u; w += WORKGROUP_SIZE) { atomicStore(&slot_table[w], NONE); }
  workgroupBarrier();
  if (local < head[SLOTS]) {
    let code = key_of(memory[step_at(params.step, SLOT_LOW + local)], memory[step_at(params.step, SLOT_HIGH + local)]);
    slot_codes[local] = code;
    let shift = 8u * (top_of(code) & 3u);
    atomicAnd(&slot_table[top_of(code) >> 2u], (local << shift) | ~(255u << shift));
  }
//$ endif
  clear_bins();
  let todo = workgroupUniformLoad(&head);
  let of_candidates = todo[OF_CANDIDATES] == 1u;
  let stores = !of_candidates && params.is_last == 0u && params.step > 0u && todo[MATCHING] <= params.room;
  count_items(block, params.blocks, of_candidates, stores);
  workgroupBarrier();
  for (var b = local; b < BINS; b += WORKGROUP_SIZE) {
    let count = atomicLoad(&bins[b]);
    if (count != 0u) { atomicAdd(&counts[COUNTERS + b], count); }
  }
  storageBarrier();
  workgroupBarrier();
  var is_last = 0u;
  if (local == 0u) { is_last = select(0u, 1u, atomicAdd(&counts[FINISHED], 1u) == params.blocks - 1u); }
  if (share(is_last) == 0u) { return; }

  // The last one to finish. First the counts of all: each invocation has some consecutive bins.
  let each = (BINS + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let begin = min(local * each, BINS);
  let end = min(begin + each, BINS);
  var spins = 0u;
  loop {
    var seen = 0u;
    for (var b = begin; b < end; b++) {
      let count = atomicLoad(&counts[COUNTERS + b]) - memory[b];
      atomicStore(&bins[b], count);
      seen += count;
    }
    let before = prefix_sum(seen);
    var whole = 0u;
    if (local == WORKGROUP_SIZE - 1u) { sums[0] = before + seen; }
    workgroupBarrier();
    if (local == 0u) { whole = sums[0]; }
    if (share(whole) == todo[MATCHING]) { break; }
    spins += 1u;
    if (spins >= SPIN_LIMIT) {
      clear_bins();
      count_items(0u, 1u, of_candidates, false);
      break;
    }
  }
  workgroupBarrier();
  var total = 0u;
  for (var b = begin; b < end; b++) {
    let count = atomicLoad(&bins[b]);
    memory[b] += count;
    total += count;
  }
  var sum = prefix_sum(total);
  for (var b = begin; b < end; b++) {
    sum += atomicLoad(&bins[b]);
    atomicStore(&bins[b], sum);
  }
  workgroupBarrier();
  if (local < params.places && todo[MATCHING] > 0u) {
    var slot = 0u;
//$ if first
    var left = min(load_places(local), {{ used.n }} - 1u);
//$ else
    var left = memory[step_at(params.step, LEFT + local)];
    slot = memory[step_at(params.step, SLOT + local)];
//$ endif
    let first_bin = slot * (params.digit_mask + 1u);
    var before = 0u;
    if (first_bin > 0u) { before = atomicLoad(&bins[first_bin - 1u]); }
    var low = first_bin;
    var high = first_bin + params.digit_mask;
    while (low < high) {
      let middle = (low + high) >> 1u;
      if (atomicLoad(&bins[middle]) - before > left) { high = middle; } else { low = middle + 1u; }
    }
    var below = before;
    if (low > first_bin) { below = atomicLoad(&bins[low - 1u]); }
    found_codes[local] = with_digit(slot_codes[slot], low - first_bin);
    found_left[local] = left - (below - before);
    found_size[local] = atomicLoad(&bins[low]) - below;
    if (params.is_last == 1u) { store_values(local, key_decode(found_codes[local])); }
  }
  if (local < params.places && todo[MATCHING] == 0u && params.is_last == 1u) { store_values(local, Key()); }
  workgroupBarrier();
  if (local == 0u) {
    atomicStore(&counts[FINISHED], 0u);
    if (stores) { memory[CURSOR_BEFORE] += todo[MATCHING]; }
    let next = params.step + 1u;
    var slots = 0u;
    var matching = 0u;
    if (todo[MATCHING] > 0u) {
      for (var p = 0u; p < params.places; p++) {
        var s = 0u;
        while (s < slots && !same(slot_codes[s], found_codes[p])) { s++; }
        if (s == slots) {
          slot_codes[s] = found_codes[p];
          memory[step_at(next, SLOT_LOW + s)] = low_of(found_codes[p]);
          memory[step_at(next, SLOT_HIGH + s)] = high_of(found_codes[p]);
          matching += found_size[p];
          slots++;
        }
        memory[step_at(next, LEFT + p)] = found_left[p];
        memory[step_at(next, SLOT + p)] = s;
      }
    }
    memory[step_at(next, OF_CANDIDATES)] = select(0u, 1u, of_candidates || stores);
    memory[step_at(next, ITEMS)] = select(todo[ITEMS], todo[MATCHING], stores);
    memory[step_at(next, MATCHING)] = matching;
    memory[step_at(next, SLOTS)] = slots;
  }
}
