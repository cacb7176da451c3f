// Emission of a reduction by key: at a head, the key of the run that begins, and the value of the run that ends before it.
// The last run has no head behind it: `emit_end` closes it.
fn put_value(run: u32, x: Acc) {
  if (run >= params.size) { return; }
//$ if stores is defined and stores.results is not none
  store_acc_{{ name }}(run, x);  //$ for name in stores.results
//$ elif items_are == "raw"
  store_output_values({{ acc.words }}u * run + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});  //$ for k in range(acc.words)
//$ else
  store_output_values(run, lower(x));
//$ endif
}
// Runs go through workgroup memory, some at a time, so that neighbouring lanes write neighbouring results. Each subgroup has
// a part of its own there, and waits for no other one. With the key of a run lies the value of the run before it.
//$ set places = (tile_items // (4 * vecs) * lane_runs + 31) // 32 * 32
var<workgroup> staged_keys: array<{{ "vec2<u32>" if key.bytes == 8 else "u32" }}, {{ places }}>;
var<workgroup> staged_values: array<Acc, {{ places }}>;
fn part_runs() -> u32 { return {{ lane_runs }}u * sg_size; }
// Where each item is a run, lanes stage at every eighth place, and so each finds a bank of its own.
fn bank(place: u32) -> u32 { return place ^ ((place >> 3u) & 31u); }
fn place_of(at: u32) -> u32 { return bank(sg_id * part_runs() + at); }
//$ for r in range(rows)
// `first` is the place of the lane's first head in the row; p comes before the lane.
fn stage_row_{{ r }}(first: u32, p: Acc) {
  let heads = tile_heads[{{ r }}];
  // Where there are many runs, most rows belong to other parts; a place before this part has wrapped around.
  if (first >= part_runs() && first + countOneBits(heads) - 1u >= part_runs()) { return; }
  var at = first;
//$ for k in range(width)
//$ set before = "p" if k == 0 else "after_head(p, tile_values[%d].%s, (heads & %du) != 0u)" % (r * quads + (k - 1) // 4, "xyzw"[(k - 1) % 4], 2 ** k - 1)
  if ((heads & {{ 2 ** k }}u) != 0u && at < part_runs()) {
    staged_keys[place_of(at)] = tile_keys[{{ r * quads + k // 4 }}].{{ "xyzw"[k % 4] }};
    staged_values[place_of(at)] = {{ before }};
  }
  at += {{ "(heads >> %du) & 1u" % k if k else "heads & 1u" }};
//$ endfor
}
//$ endfor
// Stages the runs of the subgroup from the `first` one on, as if nothing came before the tile.
fn stage_runs(first: u32, sum: WorkgroupScan_chain) {
  stage_row_{{ r }}(tile_ranks[{{ r }}] - first, tile_carry({{ r }}u, sum.before));  //$ for r in range(rows)
}
// Writes the run that is staged at a place, the `rank`-th one of the tile; `before` is what comes before the tile.
fn write_run(place: u32, rank: u32, before: Chain) {
  let run = before.x + rank;
//$ if stores is not defined
  if (run < params.size) { store_output_keys(run, staged_keys[place]); }
//$ elif stores.of_keys
  if (run < params.size) {
    {{ store }}(run, staged_keys[place]);  //$ for store in stores.of_keys
  }
//$ endif
  if (run > 0u) {
    var x = staged_values[place];
    if (rank == 0u) { x = combine(chain_value(before), x); }
    put_value(run - 1u, x);
  }
}
fn emit_closed(tile: u32, sum: WorkgroupScan_chain) { stage_runs(0u, sum); }
// Writes the runs that begin in the tile; `before` is what comes before it, and belongs to the first one alone.
fn emit_open(tile: u32, before: Chain, sum: WorkgroupScan_chain) {
  // Where the workgroup waits, all subgroups have as many parts.
//$ set goes_on = "part * part_runs() < subgroup_runs" if barrier == "subgroup" else "part < %du" % ((4 * vecs + lane_runs - 1) // lane_runs)
  for (var part = 0u; {{ goes_on }}; part++) {
    let first = part * part_runs();
    let end = min(first + part_runs(), subgroup_runs);
    {{ barrier }}Barrier();
    for (var k = first + sg_lane; k < end; k += sg_size) { write_run(place_of(k - first), sum.before.x + k, before); }
    {{ barrier }}Barrier();
    if (end < subgroup_runs) { stage_runs(end, sum); }
  }
}
// Writes the number of runs and the value of the last one.
fn emit_end(total: Chain) {
//$ if stores is not defined or stores.of_keys
  store_count(0u, total.x);
//$ endif
  if (total.x > 0u) { put_value(total.x - 1u, chain_value(total)); }
}
