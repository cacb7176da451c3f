// Sorts each tile by itself; stable. Each invocation sorts ITEMS keys in registers by odd-even transposition, which compares
// neighbours only and so keeps the order of equal keys. Then runs are merged in workgroup memory, twice as long in each step,
// until one run is the tile.
// Forward progress: no workgroup waits for another. Bindings: params, input, output{{ ", values and their output" if values }}.
// Params: n (keys); tiles.

//$ include "lib/merge_order.wgsl"
//$ include "lib/merge_path.wgsl"
//$ if values
// Where in the tile keys in registers were at first.
var<private> origins: array<u32, ITEMS>;
//$ endif

// Two neighbours change places if the second comes before the first. Keys from `most` on are behind the end.
//$ for k in range(items - 1)
fn order_{{ k }}(most: u32) {
  let x = merged[{{ k }}];
  let y = merged[{{ k + 1 }}];
  let swaps = {{ k + 1 }}u < most && is_before(y, x);
  merged[{{ k }}] = select(x, y, swaps);
  merged[{{ k + 1 }}] = select(y, x, swaps);
//$ if values
  let place = origins[{{ k }}];
  let other = origins[{{ k + 1 }}];
  origins[{{ k }}] = select(place, other, swaps);
  origins[{{ k + 1 }}] = select(other, place, swaps);
//$ endif
}
//$ endfor

fn run(tile: u32, local: u32) {
  let first = tile * TILE;
  if (first >= {{ used.n }}) { return; }
  let count = min({{ used.n }} - first, TILE);
  for (var i = local; i < count; i += WORKGROUP_SIZE) { keys[i] = key_input(first + i); }
  workgroupBarrier();
  let begin = local * ITEMS;
  let most = max(count, begin) - begin;
//$ for k in range(items)
  merged[{{ k }}] = keys[begin + {{ k }}u];
//$ if values
  origins[{{ k }}] = begin + {{ k }}u;
//$ endif
//$ endfor
  for (var k = 0u; k < {{ (items + 1) // 2 }}u; k++) {
    order_{{ k }}(most);  //$ for k in range(0, items - 1, 2)
    order_{{ k }}(most);  //$ for k in range(1, items - 1, 2)
  }
  workgroupBarrier();
  stage_merged(local);
  workgroupBarrier();
  for (var lanes = 1u; lanes < WORKGROUP_SIZE; lanes <<= 1u) {
    let run = lanes * ITEMS;
    let group = local / (2u * lanes) * (2u * run);
    let first_a = min(group, count);
    let first_b = min(group + run, count);
    let end_b = min(group + 2u * run, count);
    merge_runs(first_a, first_b, end_b, min(begin - group, end_b - first_a){{ ", local" if less }});
    workgroupBarrier();
//$ if values
    let places = sources;
    sources[{{ k }}] = origins[{{ k }}];  //$ for k in range(items)
    stage_places(local);
    workgroupBarrier();
    origins[{{ k }}] = staged_place(places[{{ k }}]);  //$ for k in range(items)
    workgroupBarrier();
//$ endif
    stage_merged(local);
    workgroupBarrier();
  }
  store_keys(first, count, local);
//$ if values
  workgroupBarrier();
  sources[{{ k }}] = origins[{{ k }}];  //$ for k in range(items)
  stage_places(local);
  workgroupBarrier();
  for (var i = local; i < count; i += WORKGROUP_SIZE) {
    store_output_values(first + i, load_input_values(first + staged_place(i)));
  }
//$ endif
}
