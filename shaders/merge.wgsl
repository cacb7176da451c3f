// Merges two sorted inputs; of equal keys those of a come first.
// Source: O. Green, R. McColl, D. Bader, "GPU Merge Path - A GPU Merging Algorithm" (2012).
// merge_partition.wgsl has found which parts of a and b make each tile. A workgroup copies both into workgroup memory, each
// invocation finds where the path crosses its own diagonal there, and merges ITEMS keys from that place on, one by one.
// ITEMS is odd: neighbouring invocations then write to different banks. Each part is read from the beginning of a
// line of the cache on, so that subgroups read whole ones.
// Forward progress: no workgroup waits for another.
// Bindings: params, a, b, splits{{ ", a_values, b_values" if values }}, output{{ ", output_values" if values }}.

struct Params {
  n_a: u32,  // keys
  n_b: u32,
  capacity_a: u32,  // keys that there is room for
  capacity_b: u32,
  tiles: u32,
  shift_a: u32,  // key 0 lies so many keys behind the beginning of a line
  shift_b: u32,
//$ for lines in fields.values()
  {{ lines }}
//$ endfor
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/merge_order.wgsl"
override WORKGROUP_SIZE: u32 = {{ workgroup_size }}u;
const ITEMS: u32 = {{ items }}u;
const LAST_OF_LINE: u32 = {{ line_keys - 1 }}u;
const TILE: u32 = {{ workgroup_size * items }}u;

// The tile's part of a, behind it that of b; later the merged keys. An invocation may read ITEMS behind the end.
var<workgroup> keys: array<Key, {{ workgroup_size * items + items + 1 }}>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let tile = workgroup_index(workgroup, grid);
  let n = length_a() + length_b();
  let first = tile * TILE;
  if (tile >= params.tiles || first >= n) { return; }
  let count = min(n - first, TILE);
  let first_a = load_splits(tile);
  let first_b = first - first_a;
  let count_a = load_splits(tile + 1u) - first_a;
  let count_b = count - count_a;

  // Places in a row: those of a from the beginning of a line on, rounded up to a line, then those of b.
  let skip_a = (first_a + params.shift_a) & LAST_OF_LINE;
  let places_a = (skip_a + count_a + LAST_OF_LINE) & ~LAST_OF_LINE;
  let skip_b = ((first_b + params.shift_b) & LAST_OF_LINE) + places_a;
//$ for r in range(rounds)
  let place_{{ r }} = local + {{ r * workgroup_size }}u;
  let is_a_{{ r }} = place_{{ r }} < places_a;
  let at_{{ r }} = place_{{ r }} - select(skip_b, skip_a, is_a_{{ r }});
  let is_key_{{ r }} = at_{{ r }} < select(count_b, count_a, is_a_{{ r }});
  var key_{{ r }} = LAST_CODE;
  if (is_key_{{ r }}) {
    if (is_a_{{ r }}) { key_{{ r }} = key_a(first_a + at_{{ r }}); } else { key_{{ r }} = key_b(first_b + at_{{ r }}); }
  }
//$ endfor
//$ for r in range(rounds)
  if (is_key_{{ r }}) { keys[at_{{ r }} + select(count_a, 0u, is_a_{{ r }})] = key_{{ r }}; }
//$ endfor
  workgroupBarrier();

  let diagonal = min(local * ITEMS, count);
  var low = max(diagonal, count_b) - count_b;
  var high = min(diagonal, count_a);
  while (low < high) {
    let probe = (low + high) >> 1u;
    if (less(ranked(keys[count_a + diagonal - 1u - probe]), ranked(keys[probe]))) {
      high = probe;
    } else {
      low = probe + 1u;
    }
  }
  var at_a = low;
  var at_b = count_a + diagonal - low;
  var next_a = keys[at_a];
  var next_b = keys[at_b];
//$ for k in range(items)
  let is_from_a_{{ k }} = at_b >= count || (at_a < count_a && !less(ranked(next_b), ranked(next_a)));
  let merged_{{ k }} = select(next_b, next_a, is_from_a_{{ k }});
//$ if values
  let source_{{ k }} = select(at_b, at_a, is_from_a_{{ k }});
//$ endif
//$ if not loop.last
  at_a += select(0u, 1u, is_from_a_{{ k }});
  at_b += select(1u, 0u, is_from_a_{{ k }});
  let following_{{ k }} = keys[select(at_b, at_a, is_from_a_{{ k }})];
  next_a = select(next_a, following_{{ k }}, is_from_a_{{ k }});
  next_b = select(following_{{ k }}, next_b, is_from_a_{{ k }});
//$ endif
//$ endfor
  workgroupBarrier();
//$ for k in range(items)
  keys[local * ITEMS + {{ k }}u] = merged_{{ k }};
//$ endfor
  workgroupBarrier();
//$ if quads
  for (var i = 4u * local; i < count; i += 4u * WORKGROUP_SIZE) {
    if (i + 4u <= count) {
      store4_output(first + i, vec4<u32>(
        key_decode(keys[i]), key_decode(keys[i + 1u]), key_decode(keys[i + 2u]), key_decode(keys[i + 3u]),
      ));
    } else {
      for (var k = i; k < count; k++) { store_output(first + k, key_decode(keys[k])); }
    }
  }
//$ else
  for (var i = local; i < count; i += WORKGROUP_SIZE) { store_output(first + i, key_decode(keys[i])); }
//$ endif
//$ if values
  workgroupBarrier();
//$ for k in range(items)
  keys[local * ITEMS + {{ k }}u]{{ ".x" if key_words == 2 }} = source_{{ k }};
//$ endfor
  workgroupBarrier();
  for (var i = local; i < count; i += WORKGROUP_SIZE) {
    let source = keys[i]{{ ".x" if key_words == 2 }};
    if (source < count_a) {
      store_output_values(first + i, load_a_values(first_a + source));
    } else {
      store_output_values(first + i, load_b_values(first_b + source - count_a));
    }
  }
//$ endif
}
