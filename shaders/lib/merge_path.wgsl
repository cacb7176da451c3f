// Merges two neighbouring runs in workgroup memory: each invocation finds where the path of the merge crosses its own
// diagonal, and merges ITEMS keys from that place on, one by one, into registers. Of equal keys those of the first run come
// first. ITEMS is odd: neighbouring invocations then write to different banks.
const ITEMS: u32 = {{ items }}u;
const TILE: u32 = {{ workgroup_size * items }}u;
// Three standard deviations of where the path of two random runs of a tile lies.
const GUESS_STEP: u32 = {{ guess_step }}u;

// An invocation may read up to ITEMS keys behind the end.
var<workgroup> keys: array<Key, {{ workgroup_size * items + items + 1 }}>;
var<private> merged: array<Key, ITEMS>;
//$ if less
// Where the path crosses the diagonal of each invocation, and whether the paths of two neighbours cross.
var<workgroup> crossed: atomic<u32>;
var<workgroup> crossings: array<u32, {{ workgroup_size }}>;
//$ set bounds = {"name": "ends_in_tile", "width": "ITEMS", "split": "crossings[first + k]"}
//$ include "lib/merge_bounds.wgsl"
//$ endif
//$ if values
// The places in `keys` where they were.
var<private> sources: array<u32, ITEMS>;
//$ endif

fn merge_runs(first_a: u32, first_b: u32, end_b: u32, diagonal: u32{{ ", local: u32" if less }}) {
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
//$ if less
  // Splits that rise in both runs part them already, and those of a real order do. Only others need the tree.
  let width = min(count_a + count_b - diagonal, ITEMS);
  crossings[local] = low;
  if (local == 0u) { atomicStore(&crossed, 0u); }
  workgroupBarrier();
  var end = count_a;
  if (diagonal + width < count_a + count_b) { end = crossings[local + 1u]; }
  if (end - low > width) { atomicStore(&crossed, 1u); }
  workgroupBarrier();
  if (width > 0u && atomicLoad(&crossed) != 0u) {
    let part = diagonal / ITEMS;
    let ends = ends_in_tile(local - part, part, count_a + count_b, count_a);
    low = ends.x;
    end = ends.y;
  }
  let last_a = first_a + end;
  let last_b = first_b + diagonal + width - end;
//$ endif
  var at_a = first_a + low;
  var at_b = first_b + diagonal - low;
  var next_a = keys[at_a];
  var next_b = keys[at_b];
//$ for k in range(items)
  let is_a_{{ k }} = at_b >= {{ "last_b" if less else "end_b" }} || (at_a < {{ "last_a" if less else "first_b" }} && !is_before(next_b, next_a));
  merged[{{ k }}] = select(next_b, next_a, is_a_{{ k }});
//$ if values
  sources[{{ k }}] = select(at_b, at_a, is_a_{{ k }});
//$ endif
//$ if not loop.last
  at_a += select(0u, 1u, is_a_{{ k }});
  at_b += select(1u, 0u, is_a_{{ k }});
  let following_{{ k }} = keys[select(at_b, at_a, is_a_{{ k }})];
  next_a = select(next_a, following_{{ k }}, is_a_{{ k }});
  next_b = select(following_{{ k }}, next_b, is_a_{{ k }});
//$ endif
//$ endfor
}

// Keys in registers go to their places in workgroup memory.
fn stage_merged(local: u32) {
  keys[local * ITEMS + {{ k }}u] = merged[{{ k }}];  //$ for k in range(items)
}
//$ if values
// The same of the places that registers hold.
fn stage_places(local: u32) {
  keys[local * ITEMS + {{ k }}u]{{ ".x" if key_words > 1 }} = sources[{{ k }}];  //$ for k in range(items)
}
fn staged_place(i: u32) -> u32 { return keys[i]{{ ".x" if key_words > 1 }}; }
//$ endif

// The tile's keys leave workgroup memory for the output, from item `first` on.
fn store_keys(first: u32, count: u32, local: u32) {
  for (var i = local; i < count; i += WORKGROUP_SIZE) { store_key(first + i, keys[i]); }
}
