// Chooses the k smallest of a row of codes, of equal ones the first, in one workgroup; one workgroup for each row.
// It first finds a code that at least k codes do not exceed: the k-th smallest of the minima of SLOTS parts of the row. Codes up
// to it are collected in workgroup memory and sorted together with their places. Where these are too many, because many
// codes are equal or the parts differ much, the k-th smallest code is found exactly, digit by digit, and of the codes that
// equal it the first ones are taken. So the choice never depends on timing.
// Forward progress: no workgroup waits for another.
// Bindings: params, {{ "codes" if source == "codes" else "input" }}{{ ", list" if listed }}{{ ", offsets" if segmented }}, {{ "chosen" if result == "places" else "values, indices" }}.

struct Params {
  n: u32,  // {{ "codes" if source == "codes" else "items of all rows" }}
//$ if counted
  first: u32,  // item of the window
  capacity: u32,  // items of the window that there is room for
//$ endif
  blocks: u32,  // rows
//$ if not segmented
  length: u32,  // of a row
//$ endif
  k: u32,
  slots: u32,  // a power of two of at least 2 k; 0 to find the k-th smallest exactly
//$ if listed
  group_log2: u32,  // of the size of a listed group
//$ endif
//$ for lines in fields.values()
  {{ lines }}
//$ endfor
}
{{ bindings }}
//$ set length = "row_length" if segmented else "params.length"
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/top_k_items.wgsl"
const LANES: u32 = {{ workgroup_size }}u;
const ROOM: u32 = {{ room }}u;  // entries in workgroup memory
const BINS: u32 = 256u;
const NO_PLACE: u32 = 0xffffffffu;
const COMPARISONS: u32 = 128u;  // that an invocation makes rather than wait for each step of a network

// Candidates: a code, and its place in the row.
var<workgroup> codes: array<Key, ROOM>;
var<workgroup> places: array<u32, ROOM>;
var<workgroup> bins: array<atomic<u32>, BINS>;
var<workgroup> sums: array<u32, LANES>;
var<workgroup> collected: atomic<u32>;
var<workgroup> shared_word: u32;
var<private> local: u32;
//$ if segmented
// Rows are segments given by offsets. Where one has fewer than k items, the rest of its results have no place.
var<private> row_begin: u32;
var<private> row_length: u32;
//$ endif
var<private> row: u32;

//$ if source == "codes"
fn code_at(j: u32) -> Key { return load_codes(j); }
//$ else
//$ if listed
fn item_at(j: u32) -> u32 { return place_of(j); }
//$ elif segmented
fn item_at(j: u32) -> u32 { return row_begin + j; }
//$ else
fn item_at(j: u32) -> u32 { return row * {{ length }} + j; }
//$ endif
fn code_at(j: u32) -> Key {
  let i = item_at(j);
  if (i >= {{ used.n }}) { return NO_CODE; }
  return code_of(load_input(i));
}
//$ endif

fn comes_before(a: u32, b: u32) -> bool {
  return less(codes[a], codes[b]) || (same(codes[a], codes[b]) && places[a] < places[b]);
}
// Sorts the first `size` entries, a power of two, by code and place.
fn sort_entries(size: u32) {
  if (size * size <= COMPARISONS * LANES) { sort_by_ranks(size); } else { sort_by_exchanges(size); }
}
// The place of an entry is the number of entries that come before it: as many comparisons as pairs, but only two waits.
fn sort_by_ranks(size: u32) {
  let shares = min(LANES / size, size);  // invocations that share the comparisons of an entry
  let e = local % size;
  let share_items = size / shares;
  let first = (local / size) * share_items;
  workgroupBarrier();
  let code = codes[e];
  let place = places[e];
  if (first < size) {
    var before = 0u;
    for (var o = first; o < first + share_items; o++) {
      let other = codes[o];
      // Entries that only fill up are equal: these stay where they are.
      let of_equal = same(other, code) && (places[o] < place || (places[o] == place && o < e));
      before += select(0u, 1u, less(other, code) || of_equal);
    }
    sums[local] = before;
  }
  workgroupBarrier();
  if (local < size) {
    var rank = 0u;
    for (var p = local; p < size * shares; p += size) { rank += sums[p]; }
    codes[rank] = code;
    places[rank] = place;
  }
  workgroupBarrier();
}
// Batcher's bitonic network (1968).
fn sort_by_exchanges(size: u32) {
  for (var width = 2u; width <= size; width <<= 1u) {
    for (var d = width >> 1u; d > 0u; d >>= 1u) {
      workgroupBarrier();
      for (var p = local; p < size / 2u; p += LANES) {
        let a = ((p & ~(d - 1u)) << 1u) | (p & (d - 1u));
        let b = a | d;
        if (comes_before(b, a) == ((a & width) == 0u)) {
          let code = codes[a];
          let place = places[a];
          codes[a] = codes[b];
          places[a] = places[b];
          codes[b] = code;
          places[b] = place;
        }
      }
    }
  }
  workgroupBarrier();
}
fn power_of_two_from(n: u32) -> u32 { return select(1u << (32u - countLeadingZeros(n - 1u)), 1u, n <= 1u); }
// Makes the entries from `count` on come behind all others, up to the next power of two, which it returns.
fn pad_entries(count: u32) -> u32 {
  let size = power_of_two_from(count);
  for (var e = count + local; e < size; e += LANES) {
    codes[e] = NO_CODE;
    places[e] = NO_PLACE;
  }
  return size;
}
fn share(word: u32) -> u32 {
  workgroupBarrier();
  if (local == 0u) { shared_word = word; }
  return workgroupUniformLoad(&shared_word);
}
// Adds up a number of each invocation before this one. Hillis and Steele (1986).
fn prefix_sum(x: u32) -> u32 {
  var y = x;
  workgroupBarrier();
  sums[local] = y;
  for (var d = 1u; d < LANES; d <<= 1u) {
    workgroupBarrier();
    var left = 0u;
    if (local >= d) { left = sums[local - d]; }
    workgroupBarrier();
    y += left;
    sums[local] = y;
  }
  workgroupBarrier();
  return y - x;
}

// Codes that an invocation loads together.
//$ set together = 8 if key_words == 1 else 4
// A code that at least k codes do not exceed. Codes whose places agree modulo the number of parts are one part.
fn bound() -> Key {
  let parts = max(params.slots, LANES);
  for (var s = local; s < parts; s += LANES) {
    var found = NO_CODE;
    var j = s;
    while (j + {{ together - 1 }}u * parts < {{ length }}) {
//$ for t in range(together)
      let code_{{ t }} = code_at(j + {{ t }}u * parts);
//$ endfor
//$ for t in range(together)
      found = least(found, code_{{ t }});
//$ endfor
      j += {{ together }}u * parts;
    }
    while (j < {{ length }}) {
      found = least(found, code_at(j));
      j += parts;
    }
    codes[s] = found;
  }
  for (var size = parts >> 1u; size >= params.slots; size >>= 1u) {
    workgroupBarrier();
    for (var s = local; s < size; s += LANES) { codes[s] = least(codes[s], codes[s + size]); }
  }
  for (var s = local; s < params.slots; s += LANES) { places[s] = s; }
  sort_entries(params.slots);
  let limit = codes[params.k - 1u];
  workgroupBarrier();
  return limit;
}
// Collects the codes up to a limit, in any order, as far as there is room; returns how many there are.
fn collect(limit: Key) -> u32 {
  if (local == 0u) { atomicStore(&collected, 0u); }
  workgroupBarrier();
  var j = local;
  while (j + {{ together - 1 }}u * LANES < {{ length }}) {
//$ for t in range(together)
    let code_{{ t }} = code_at(j + {{ t }}u * LANES);
//$ endfor
//$ for t in range(together)
    collect_one(code_{{ t }}, j + {{ t }}u * LANES, limit);
//$ endfor
    j += {{ together }}u * LANES;
  }
  while (j < {{ length }}) {
    collect_one(code_at(j), j, limit);
    j += LANES;
  }
  workgroupBarrier();
  return share(atomicLoad(&collected));
}
fn collect_one(code: Key, place: u32, limit: Key) {
  if (less(limit, code)) { return; }
  let at = atomicAdd(&collected, 1u);
  if (at < ROOM) {
    codes[at] = code;
    places[at] = place;
  }
}

// Chooses exactly k: those below the k-th smallest code, and the first ones that equal it.
fn choose_exactly() {
  var some = Key();
  var every = NO_CODE;
  for (var j = local; j < {{ length }}; j += LANES) {
    let code = code_at(j);
    some |= code;
    every &= code;
  }
  var kth = Key();  // its digits that are known
  var known = Key();  // and where these are
  var left = params.k;
//$ set words = [("", "")] if key_words == 1 else [(".y", "_high"), (".x", "_low")]
//$ for word, tag in words
  // Digits in which all codes agree are known.
  workgroupBarrier();
  if (local == 0u) {
    atomicStore(&bins[0], 0u);
    atomicStore(&bins[1], 0xffffffffu);
  }
  workgroupBarrier();
  atomicOr(&bins[0], some{{ word }});
  atomicAnd(&bins[1], every{{ word }});
  workgroupBarrier();
  let bits{{ tag }} = share(atomicLoad(&bins[0]));
  let agreed{{ tag }} = share(atomicLoad(&bins[1]));
  let differ{{ tag }} = bits{{ tag }} ^ agreed{{ tag }};
  for (var shift = 24u; ; shift -= 8u) {
    if (((differ{{ tag }} >> shift) & 255u) == 0u) {
      kth{{ word }} |= agreed{{ tag }} & (255u << shift);
      known{{ word }} |= 255u << shift;
    } else {
      workgroupBarrier();
      for (var b = local; b < BINS; b += LANES) { atomicStore(&bins[b], 0u); }
      workgroupBarrier();
      for (var j = local; j < {{ length }}; j += LANES) {
        let code = code_at(j);
        if (same(code & known, kth)) { atomicAdd(&bins[(code{{ word }} >> shift) & 255u], 1u); }
      }
      workgroupBarrier();
      // Each invocation has consecutive bins, or none.
      let each = max(1u, BINS / LANES);
      var mine = 0u;
      for (var b = local * each; b < min((local + 1u) * each, BINS); b++) { mine += atomicLoad(&bins[b]); }
      let first = prefix_sum(mine);
      if (first < left && left <= first + mine) {
        var before = first;
        var b = local * each;
        while (before + atomicLoad(&bins[b]) < left) {
          before += atomicLoad(&bins[b]);
          b++;
        }
        sums[0] = b;
        sums[1] = before;
      }
      workgroupBarrier();
      let digit = share(sums[0]);
      left -= share(sums[1]);
      kth{{ word }} |= digit << shift;
      known{{ word }} |= 255u << shift;
    }
    if (shift == 0u) { break; }
  }
//$ endfor
  // Those below it in any order, then the first `left` that equal it, by consecutive parts of the row.
  if (local == 0u) { atomicStore(&collected, 0u); }
  let each = ({{ length }} + LANES - 1u) / LANES;
  let begin = min(local * each, {{ length }});
  let end = min(begin + each, {{ length }});
  var equal = 0u;
  for (var j = begin; j < end; j++) { equal += select(0u, 1u, same(code_at(j), kth)); }
  var rank = prefix_sum(equal);
  for (var j = local; j < {{ length }}; j += LANES) {
    let code = code_at(j);
    if (less(code, kth)) {
      let at = atomicAdd(&collected, 1u);
      codes[at] = code;
      places[at] = j;
    }
  }
  for (var j = begin; j < end && rank < left; j++) {
    if (same(code_at(j), kth)) {
      codes[params.k - left + rank] = kth;
      places[params.k - left + rank] = j;
      rank++;
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) invocation: u32,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  row = block;
  local = invocation;
//$ if segmented
  let row_end = min(load_offsets(row + 1u), {{ used.n }});
  row_begin = min(load_offsets(row), row_end);
  row_length = row_end - row_begin;
  var count = share(row_length);
//$ else
  var count = {{ length }};
//$ endif
  if (count <= ROOM) {
    for (var j = local; j < count; j += LANES) {
      codes[j] = code_at(j);
      places[j] = j;
    }
  } else {
    count = ROOM + 1u;
    if (params.slots > 0u) { count = collect(bound()); }
    if (count > ROOM) {
      choose_exactly();
      count = params.k;
    }
  }
//$ if segmented
  // There may be fewer than k.
  for (var e = count + local; e < params.k; e += LANES) {
    codes[e] = NO_CODE;
    places[e] = NO_PLACE;
  }
  count = max(count, params.k);
//$ endif
  sort_entries(pad_entries(count));
//$ if result == "places" or not sorted
  // By their places alone.
  for (var e = local; e < params.k; e += LANES) { codes[e] = Key(); }
  sort_entries(pad_entries(params.k));
//$ endif
  for (var e = local; e < params.k; e += LANES) {
    let place = places[e];
//$ if result == "places"
//$ if listed
    store_chosen(e, place_of(place));
//$ else
    store_chosen(e, place);
//$ endif
//$ else
    let at = row * params.k + e;
    let i = item_at(place);
//$ if segmented
    let counts = place < row_length;
//$ else
    let counts = i < {{ used.n }};
//$ endif
    store_indices(at, select(NO_PLACE, {{ "i" if listed else "place" }}, counts));
    if (counts) { store_values(at, load_input(i)); } else { store_values(at, Key()); }
//$ endif
  }
}
