// Counts items by bins. Each workgroup counts the items of its tiles in workgroup memory, and writes a table of counts;
// histogram_totals.wgsl adds the tables. So nothing is added in global memory, and a repeated dispatch gives the same.
// Lanes that count in one bin wait for each other. Against that, lanes have different copies of the counters, in different
// banks, and an invocation whose items are all of one bin counts them at once. Where workgroup memory does not hold all
// bins, workgroups take turns: `ranges` of them read the same tiles, at about the same time, and each counts its own bins.
// Source: privatised histograms as in Gómez-Luna et al., "An optimized approach to histogram computation on GPU" (2013).
// Forward progress: no workgroup waits for another. Bindings: params, input, tables.

struct Params {
  n: u32,  // items of the window
//$ if counted
  first: u32,  // item of the window
  capacity: u32,  // items of the window that there is room for
//$ endif
  blocks: u32,  // workgroups that share the tiles, for each range
  bins: u32,
  ranges: u32,
  range_bins: u32,  // bins of a range; fewer in the last one
  copies: u32,  // of the counters of a range
  stride: u32,  // counters from a copy to the next
//$ for lines in fields.values()
  {{ lines }}
//$ endfor
//$ for name in bin_fields
  {{ name }}: u32,
//$ endfor
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
const VECS: u32 = {{ vecs }}u;

var<workgroup> counters: array<atomic<u32>, {{ memory_words }}>;
var<private> range_first: u32;
var<private> range_length: u32;
var<private> copy_first: u32;

//$ include "lib/bins.wgsl"

fn count(bin: u32, times: u32) {
  let k = bin - range_first;
  if (k < range_length) { atomicAdd(&counters[copy_first + k], times); }
}
fn count4(bins: vec4<u32>) {
//$ if merge != "none"
  if (all(bins == bins.xxxx)) { count(bins.x, 4u); return; }
//$ endif
  count(bins.x, 1u);
  count(bins.y, 1u);
  count(bins.z, 1u);
  count(bins.w, 1u);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let number = workgroup_index(workgroup, grid);
  if (number >= params.blocks * params.ranges) { return; }
  let block = number / params.ranges;
  range_first = (number % params.ranges) * params.range_bins;
  range_length = min(params.bins - range_first, params.range_bins);
  copy_first = (local % params.copies) * params.stride;
  for (var k = local; k < params.copies * params.stride; k += WORKGROUP_SIZE) { atomicStore(&counters[k], 0u); }
  workgroupBarrier();

  let tile_items = VECS * WORKGROUP_SIZE * 4u;
  let tiles = {{ used.n }} / tile_items;  // whole ones
  for (var tile = block; tile < tiles; tile += params.blocks) {
    let i = tile * tile_items + local * 4u;
//$ for v in range(vecs)
    let words_{{ v }} = load4_input(i + {{ 4 * v }}u * WORKGROUP_SIZE);
//$ endfor
//$ for v in range(vecs)
    let bins_{{ v }} = bins_of(words_{{ v }});
//$ endfor
//$ if merge == "tile" and vecs > 1
    let bin = bins_0.xxxx;
    var differs = bins_0 ^ bin;
//$ for v in range(1, vecs)
    differs |= bins_{{ v }} ^ bin;
//$ endfor
    if (all(differs == vec4<u32>(0u))) {
      count(bin.x, {{ 4 * vecs }}u);
      continue;
    }
//$ endif
//$ for v in range(vecs)
    count4(bins_{{ v }});
//$ endfor
  }
  if (tiles % params.blocks == block) {
    for (var i = tiles * tile_items + local; i < {{ used.n }}; i += WORKGROUP_SIZE) { count(bin_of(load_input(i)), 1u); }
  }

  workgroupBarrier();
  for (var k = local; k < range_length; k += WORKGROUP_SIZE) {
    var total = 0u;
    for (var copy = 0u; copy < params.copies; copy++) { total += atomicLoad(&counters[copy * params.stride + k]); }
    store_tables(block * params.bins + range_first + k, total);
  }
}
