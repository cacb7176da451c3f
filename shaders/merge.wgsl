// Merges two sorted runs of keys into one; of equal keys those of the first run come first.
// Here the runs are {{ "pairs of neighbouring runs of one array, which a sort has made" if runs else "two inputs" }}.
// Source: O. Green, R. McColl, D. Bader, "GPU Merge Path - A GPU Merging Algorithm" (2012).
// merge_partition.wgsl has found which parts of the two make each tile. A workgroup copies both into workgroup memory and
// merges them there (lib/merge_path.wgsl).
// Forward progress: no workgroup waits for another.
// Bindings: params, {{ "input" if runs else "a, b" }}, splits, output, and of pairs the values of each.
// Params: tiles.

//$ include "lib/merge_order.wgsl"
//$ include "lib/merge_runs.wgsl"
//$ include "lib/merge_path.wgsl"

fn run(tile: u32, local: u32) {
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
//$ if runs
  let first_a = runs.first + split;
  let first_b = first - split + params.run_items;
//$ else
  let first_a = split;
  let first_b = first - split;
//$ endif

//$ for k in range(items)
  let at_{{ k }} = local + {{ k * workgroup_size }}u;
  var key_{{ k }}: Key;
//$ if runs
  if (at_{{ k }} < count) { key_{{ k }} = key_input(select(first_b - count_a, first_a, at_{{ k }} < count_a) + at_{{ k }}); }
//$ else
  if (at_{{ k }} < count_a) {
    key_{{ k }} = key_a(first_a + at_{{ k }});
  } else if (at_{{ k }} < count) {
    key_{{ k }} = key_b(first_b + at_{{ k }} - count_a);
  }
//$ endif
//$ endfor
  keys[at_{{ k }}] = key_{{ k }};  //$ for k in range(items)
  workgroupBarrier();
  merge_runs(0u, count_a, count, min(local * ITEMS, count){{ ", local" if less }});
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
