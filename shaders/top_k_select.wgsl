// Chooses the k smallest of a row of codes, of equal ones the first, in one workgroup; one workgroup for each row.
//$ set two_steps = source == "codes" and result == "items"
//$ if two_steps
// It does so twice: first it chooses groups by the codes of their delegates, and then items of these groups.
//$ elif result == "minima"
// Then it finds the delegates of smaller groups of the chosen ones. Each of many workgroups makes the same choice and has a part
// of the smaller groups: that costs no more time than a choice by one, and saves a dispatch.
//$ endif
// It needs a code that at least k codes do not exceed: the k-th smallest of the minima of SLOTS parts of the row, or the code
// of the last chosen group that the row is in. Codes up to it are collected in workgroup memory and sorted together with their
// places. Where these are too many, because many codes are equal or the parts differ much, the k-th smallest code is found
// exactly, digit by digit, and of the codes that equal it the first ones are taken. So the choice never depends on timing.
// Forward progress: no workgroup waits for another.
// Bindings: params, {{ "codes" if source == "codes" }}{{ ", " if two_steps }}{{ "input" if result == "items" }}{{ ", input" if result == "minima" }}{{ ", list" if listed }}{{ ", offsets" if segmented }}{{ ", starts" if ragged }}, {{ {"places": "chosen", "minima": "chosen, minima", "items": "values, indices"}[result] }}.
// Params: n (items of all rows); blocks ({{ "workgroups that have work" if result == "minima" else "rows" }});
// length (of a row); items (of k groups); items_log2 (of the size of a group); parts (smaller groups, of all chosen
// groups); lanes_log2 (of the invocations that read one); steps (in which these read it); room (of the results of
// all segments); k; slots (a power of two of at least 2 k; 0 to find the k-th smallest exactly); group_log2 (of the
// size of a listed group).

//$ include "lib/top_k_items.wgsl"
const WORKGROUP_SIZE: u32 = {{ workgroup_size }}u;
const ROOM: u32 = {{ room }}u;  // entries in workgroup memory
const BINS: u32 = 256u;
const NO_PLACE: u32 = 0xffffffffu;
const COMPARISONS: u32 = 128u;  // that an invocation makes rather than wait for each step of a network

// Candidates: a code, and its place in the row.
var<workgroup> codes: array<Key, ROOM>;
var<workgroup> places: array<u32, ROOM>;
var<workgroup> bins: array<atomic<u32>, BINS>;
var<workgroup> sums: array<u32, WORKGROUP_SIZE>;
var<workgroup> collected: atomic<u32>;
var<workgroup> collected_below: atomic<u32>;
var<workgroup> shared_word: u32;
//$ if two_steps or result == "minima"
var<workgroup> groups: array<u32, {{ most_groups }}u>;  // those chosen, ascending
//$ endif
var<private> local: u32;
//$ if segmented
// Rows are segments given by offsets. Where one has fewer than k items, the rest of its results have no place.
var<private> row_begin: u32;
var<private> row_length: u32;
//$ endif
var<private> row: u32;
//$ if source == "codes"
var<private> kth_group: Key;  // the largest code of the groups chosen here
//$ endif

//$ if ragged
// How many items of this segment are chosen, and slots for so many.
var<workgroup> row_k: u32;
var<workgroup> row_slots: u32;
//$ endif
//$ set k, slots = ("row_k", "slots") if ragged else ("params.k", "params.slots")
//$ set uniform_k = "workgroupUniformLoad(&row_k)" if ragged else k
//$ set uniform_slots = "workgroupUniformLoad(&row_slots)" if ragged else slots
//$ include "lib/top_k_entries.wgsl"
//$ if result == "minima"
//$ include "lib/top_k_step.wgsl"
//$ endif
//$ if source == "codes"
fn code_at_groups(j: u32) -> Key { return load_codes(j); }
//$ endif
//$ if two_steps or result == "minima"
// Item j of the chosen groups is this item of the input.
fn item_at(j: u32) -> u32 {
  return (groups[j >> params.items_log2] << params.items_log2) | (j & ((1u << params.items_log2) - 1u));
}
//$ elif result == "items" and listed
fn item_at(j: u32) -> u32 { return place_of(j); }
//$ elif result == "items" and segmented
fn item_at(j: u32) -> u32 { return row_begin + j; }
//$ elif result == "items"
fn item_at(j: u32) -> u32 { return row * params.length + j; }
//$ endif
//$ if result == "items"
fn code_at_items(j: u32) -> Key {
  let i = item_at(j);
  if (i >= {{ used.n }}) { return NO_CODE; }
  return code_of(load_input(i));
}
//$ endif
//$ set steps = (["groups"] if source == "codes" else []) + (["items"] if result == "items" else [])
//$ for step in steps
//$ set length = "row_length" if segmented else "params.items" if two_steps and step == "items" else "params.length"
//$ include "lib/top_k_choose.wgsl"
//$ endfor

fn run(block: u32, invocation: u32) {
  row = block;
  local = invocation;
//$ if segmented
  let row_end = min(load_offsets(row + 1u), {{ used.n }});
  row_begin = min(load_offsets(row), row_end);
  row_length = row_end - row_begin;
//$ endif
//$ if ragged
  let first_result = load_starts(row);
  if (local == 0u) {
    row_k = min(load_starts(row + 1u) - first_result, row_length);
    let wanted = max(power_of_two_from(2u * row_k), WORKGROUP_SIZE);
    row_slots = select(wanted, 0u, wanted > ROOM);
  }
  if (workgroupUniformLoad(&row_k) == 0u) { return; }
//$ endif
//$ if source == "codes"
  sort_entries(choose_groups({{ "share(row_length)" if segmented else "params.length" }}));
  kth_group = codes[params.k - 1u];
  sort_by_places();
//$ if two_steps or result == "minima"
  for (var e = local; e < params.k; e += WORKGROUP_SIZE) { groups[e] = {{ "place_of(places[e])" if listed else "places[e]" }}; }
  workgroupBarrier();
//$ endif
//$ if not two_steps
{{ "  if (block == 0u) {" if result == "minima" else "  {" }}
    for (var e = local; e < params.k; e += WORKGROUP_SIZE) { store_chosen(e, {{ "place_of(places[e])" if listed else "places[e]" }}); }
  }
  if (local == 0u{{ " && block == 0u" if result == "minima" }}) {
//$ if key_words == 1
    store_chosen(params.k, kth_group);
//$ else
    store_chosen(params.k, kth_group.x);
    store_chosen(params.k + 1u, kth_group.y);
//$ endif
  }
//$ endif
//$ endif
//$ if result == "minima"
  let lanes = 1u << params.lanes_log2;
  let part = (block * WORKGROUP_SIZE + local) >> params.lanes_log2;
  let row_items = 4u << params.lanes_log2;
  var found = NO_CODE;
  if (part < params.parts) {
    let first = item_at(part * params.steps * ROWS * row_items) + 4u * (local & (lanes - 1u));
    for (var s = 0u; s < params.steps; s++) {
      found = least(found, step_minimum(first + s * ROWS * row_items, row_items));
    }
  }
  codes[local] = found;
  for (var d = lanes / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if ((local & (lanes - 1u)) < d) { codes[local] = least(codes[local], codes[local + d]); }
  }
  if ((local & (lanes - 1u)) == 0u && part < params.parts) { store_minima(part, codes[local]); }
//$ endif
//$ if result == "items"
  var count = choose_items({{ "share(row_length)" if segmented else "params.items" if two_steps else "params.length" }});
//$ if segmented
  // There may be fewer than k.
  for (var e = count + local; e < {{ k }}; e += WORKGROUP_SIZE) {
    codes[e] = NO_CODE;
    places[e] = NO_PLACE;
  }
  count = max(count, {{ uniform_k }});
//$ endif
  sort_entries(count);
//$ if not sorted
  sort_by_places();
//$ endif
  for (var e = local; e < {{ k }}; e += WORKGROUP_SIZE) {
    let place = places[e];
    let at = {{ "first_result + e" if ragged else "row * params.k + e" }};
    let i = item_at(place);
//$ if segmented
    let counts = place < row_length;
//$ else
    let counts = i < {{ used.n }};
//$ endif
//$ if ragged
    if (at >= params.room) { break; }
//$ endif
    store_indices(at, select(NO_PLACE, {{ "i" if listed or two_steps else "place" }}, counts));
    if (counts) { store_values(at, load_input(i)); } else { store_values(at, Key()); }
  }
//$ endif
}
