// Combines items by bins, or counts them. Each workgroup does so for the items of its tiles in workgroup memory, and writes a
// table; histogram_totals.wgsl combines the tables. So nothing is added in global memory, and a repeated dispatch gives the
// same. Lanes that add to one counter wait for each other. Against that, lanes have different copies of the counters, in
// different banks, and an invocation whose items are all of one bin combines them first. Where workgroup memory does not hold
// all bins, workgroups take turns: `ranges` of them read the same tiles, at about the same time, and each takes its own bins.
// Source: privatised histograms as in Gómez-Luna et al., "An optimized approach to histogram computation on GPU" (2013).
// Forward progress: no workgroup waits for another. A compare-and-swap repeats only where that of another invocation
// succeeded. Bindings: params, {{ operand_names | join(", ") }}.
// Params: n (items of the window); blocks (workgroups that share the tiles, for each range); bins; ranges;
// range_bins (bins of a range; fewer in the last one); copies (of the counters of a range); stride (counters from a
// copy to the next).

//$ include "lib/operator.wgsl"
const VECS: u32 = {{ vecs }}u;

//$ set native = "i32" if acc.wgsl == "i32" and atomic else "u32"
var<workgroup> counters: array<atomic<{{ native }}>, {{ memory_words }}>;
var<private> range_first: u32;
var<private> range_length: u32;
var<private> copy_first: u32;

//$ include "lib/bins.wgsl"

fn add(k: u32, value: Acc) {
//$ if atomic
  {{ atomic }}(&counters[k], value);
//$ else
  var old = atomicLoad(&counters[k]);
  loop {
    let combined = pack(combine(unpack(old), value));
    if (combined == old) { break; }
    let swapped = atomicCompareExchangeWeak(&counters[k], old, combined);
    if (swapped.exchanged) { break; }
    old = swapped.old_value;
  }
//$ endif
}
fn read_counter(k: u32) -> Acc { return {{ "atomicLoad(&counters[k])" if atomic else "unpack(atomicLoad(&counters[k]))" }}; }
fn put(bin: u32, value: Acc) {
  let k = bin - range_first;
  if (k < range_length) { add(copy_first + k, value); }
}
//$ if values
fn sum_of(values: Quad) -> Acc { return combine(combine(values.x, values.y), combine(values.z, values.w)); }
fn put4(bins: vec4<u32>, values: Quad) {
//$ else
fn put4(bins: vec4<u32>) {
//$ endif
//$ if merge != "none"
  if (all(bins == bins.xxxx)) { put(bins.x, {{ "sum_of(values)" if values else "4u" }}); return; }
//$ endif
  put(bins.{{ c }}, {{ "values.%s" % c if values else "1u" }});  //$ for c in "xyzw"
}
fn put_one(i: u32) { put(bin_at(i), {{ "lift(load_%s(i))" % values if values else "1u" }}); }

fn run(number: u32, local: u32) {
  let block = number / params.ranges;
  range_first = (number % params.ranges) * params.range_bins;
  range_length = min(params.bins - range_first, params.range_bins);
  copy_first = (local % params.copies) * params.stride;
  let nothing = bitcast<{{ native }}>(params.identity_bits);
  for (var k = local; k < params.copies * params.stride; k += WORKGROUP_SIZE) { atomicStore(&counters[k], nothing); }
  bins_begin(local);
  workgroupBarrier();

  let tile_items = VECS * WORKGROUP_SIZE * 4u;
  let tiles = {{ used.n }} / tile_items;  // whole ones
  for (var tile = block; tile < tiles; tile += params.blocks) {
//$ if key_words == 1
    let i = tile * tile_items + local * 4u;
//$ for v in range(vecs)
    let {{ axis.name }}_{{ v }} = load4_{{ axis.name }}(i + {{ 4 * v }}u * WORKGROUP_SIZE);  //$ for axis in axes
//$ if values
    let values_{{ v }} = lift4(load4_{{ values }}(i + {{ 4 * v }}u * WORKGROUP_SIZE));
//$ endif
//$ endfor
//$ for v in range(vecs)
//$ set suffix = "_%d" % v
    let bins_{{ v }} = bins_at(i + {{ 4 * v }}u * WORKGROUP_SIZE, {{ axes | map(attribute="name") | join(suffix + ", ") }}{{ suffix }});
//$ endfor
//$ if merge == "tile" and vecs > 1
    let bin = bins_0.xxxx;
    var differs = bins_0 ^ bin;
    differs |= bins_{{ v }} ^ bin;  //$ for v in range(1, vecs)
    if (all(differs == vec4<u32>(0u))) {
//$ if values
      var sums = values_0;
      sums = combine4(sums, values_{{ v }});  //$ for v in range(1, vecs)
      put(bin.x, sum_of(sums));
//$ else
      put(bin.x, {{ 4 * vecs }}u);
//$ endif
      continue;
    }
//$ endif
    put4(bins_{{ v }}{{ ", values_%d" % v if values }});  //$ for v in range(vecs)
//$ else
    let i = tile * tile_items + local;
    put_one(i + {{ r }}u * WORKGROUP_SIZE);  //$ for r in range(4 * vecs)
//$ endif
  }
  if (tiles % params.blocks == block) {
    for (var i = tiles * tile_items + local; i < {{ used.n }}; i += WORKGROUP_SIZE) { put_one(i); }
  }

  workgroupBarrier();
  for (var k = local; k < range_length; k += WORKGROUP_SIZE) {
    var total = read_counter(k);
    for (var copy = 1u; copy < params.copies; copy++) { total = combine(total, read_counter(copy * params.stride + k)); }
    store_tables(block * params.bins + range_first + k, pack(total));
  }
}
