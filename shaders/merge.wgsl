// Merges two sorted runs of keys into one; of equal keys those of the first run come first.
// Here the runs are {{ "pairs of neighbouring runs of one array, which a sort has made" if runs else "two inputs" }}.
// Source: O. Green, R. McColl, D. Bader, "GPU Merge Path - A GPU Merging Algorithm" (2012).
// merge_partition.wgsl has found which parts of the two make each tile. A workgroup copies both into workgroup memory and
// merges them there (lib/merge_path.wgsl). Each part is read from the beginning of a line of the cache on, so that subgroups
// read whole ones.
// Forward progress: no workgroup waits for another.
// Bindings: params, {{ "input" if runs else "a, b" }}, splits, output, and of pairs the values of each.

struct Params {
//$ include "lib/merge_params.wgsl"
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
//$ include "lib/merge_runs.wgsl"
//$ include "lib/merge_path.wgsl"
const LAST_OF_LINE: u32 = {{ line_keys - 1 }}u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let tile = workgroup_index(workgroup, grid);
  let first = tile * TILE;
  if (tile >= params.tiles || first >= total()) { return; }
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
//$ if runs
  let first_a = runs.first + split;
  let first_b = first - split + params.run_items;
//$ else
  let first_a = split;
  let first_b = first - split;
//$ endif

  // Places in a row: those of the first part from the beginning of a line on, rounded up to a line, then the other's.
  let skip_a = (first_a + params.shift_a) & LAST_OF_LINE;
  let places_a = (skip_a + count_a + LAST_OF_LINE) & ~LAST_OF_LINE;
  let skip_b = ((first_b + params.shift_b) & LAST_OF_LINE) + places_a;
//$ for r in range(rounds)
  let place_{{ r }} = local + {{ r * workgroup_size }}u;
  let is_a_{{ r }} = place_{{ r }} < places_a;
  let at_{{ r }} = place_{{ r }} - select(skip_b, skip_a, is_a_{{ r }});
  let is_key_{{ r }} = at_{{ r }} < select(count_b, count_a, is_a_{{ r }});
  var key_{{ r }}: Key;
//$ if runs
  if (is_key_{{ r }}) { key_{{ r }} = key_input(select(first_b, first_a, is_a_{{ r }}) + at_{{ r }}); }
//$ else
  if (is_key_{{ r }}) {
    if (is_a_{{ r }}) { key_{{ r }} = key_a(first_a + at_{{ r }}); } else { key_{{ r }} = key_b(first_b + at_{{ r }}); }
  }
//$ endif
//$ endfor
//$ for r in range(rounds)
  if (is_key_{{ r }}) { keys[at_{{ r }} + select(count_a, 0u, is_a_{{ r }})] = key_{{ r }}; }
//$ endfor
  workgroupBarrier();
  merge_runs(0u, count_a, count, min(local * ITEMS, count));
  workgroupBarrier();
  stage_merged(local);
  workgroupBarrier();
  store_keys(first, count, local);
//$ if values
  workgroupBarrier();
  stage_places(local);
  workgroupBarrier();
  for (var i = local; i < count; i += WORKGROUP_SIZE) {
    let place = staged_place(i);
//$ if runs
    store_output_values(first + i, load_input_values(select(first_b + place - count_a, first_a + place, place < count_a)));
//$ else
    if (place < count_a) {
      store_output_values(first + i, load_a_values(first_a + place));
    } else {
      store_output_values(first + i, load_b_values(first_b + place - count_a));
    }
//$ endif
  }
//$ endif
}
