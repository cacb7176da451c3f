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
// Runs of a tile go through workgroup memory, some at a time, so that neighbouring invocations write neighbouring results.
// With the key of a run lies the value of the run before it.
const PART_RUNS: u32 = {{ part_runs }}u;
var<workgroup> staged_keys: array<{{ "vec2<u32>" if key.bytes == 8 else "u32" }}, PART_RUNS>;
var<workgroup> staged_values: array<Acc, PART_RUNS>;
var<workgroup> tile_runs: u32;
// Where a run lies: where each item is one, lanes stage at every sixteenth place, and so each finds a bank of its own.
fn bank(at: u32) -> u32 { return at ^ ((at >> 4u) & 31u); }
//$ for r in range(rows)
// `first` is the place of the lane's first head in the row; p comes before the lane.
fn stage_row_{{ r }}(first: u32, p: Acc) {
  let heads = tile_heads[{{ r }}];
  // Where a tile has many runs, most rows belong to other parts; a place before this part has wrapped around.
  if (first >= PART_RUNS && first + countOneBits(heads) - 1u >= PART_RUNS) { return; }
  var at = first;
//$ for k in range(width)
//$ set before = "p" if k == 0 else "after_head(p, tile_values[%d].%s, (heads & %du) != 0u)" % (r * quads + (k - 1) // 4, "xyzw"[(k - 1) % 4], 2 ** k - 1)
  if ((heads & {{ 2 ** k }}u) != 0u && at < PART_RUNS) {
    staged_keys[bank(at)] = tile_keys[{{ r * quads + k // 4 }}].{{ "xyzw"[k % 4] }};
    staged_values[bank(at)] = {{ before }};
  }
  at += {{ "(heads >> %du) & 1u" % k if k else "heads & 1u" }};
//$ endfor
}
//$ endfor
// Stages the runs of the tile from the `first` one on, as if nothing came before the tile.
fn stage_runs(first: u32, sum: WorkgroupScan_chain) {
  stage_row_{{ r }}(sum.before.x + tile_ranks[{{ r }}] - first, tile_carry({{ r }}u, sum.before));  //$ for r in range(rows)
}
// Writes the run that is staged at a place, the `rank`-th one of the tile; `before` is what comes before the tile.
fn write_run(at: u32, rank: u32, before: Chain) {
  let run = before.x + rank;
//$ if stores is not defined
  if (run < params.size) { store_output_keys(run, staged_keys[bank(at)]); }
//$ elif stores.of_keys
  if (run < params.size) {
    {{ store }}(run, staged_keys[bank(at)]);  //$ for store in stores.of_keys
  }
//$ endif
  if (run > 0u) {
    var x = staged_values[bank(at)];
    if (rank == 0u) { x = combine(chain_value(before), x); }
    put_value(run - 1u, x);
  }
}
fn emit_closed(tile: u32, sum: WorkgroupScan_chain) {
  if (local == 0u) { tile_runs = sum.total.x; }
  stage_runs(0u, sum);
}
// Writes the runs that begin in the tile; `before` is what comes before it, and belongs to the first one alone.
fn emit_open(tile: u32, before: Chain, sum: WorkgroupScan_chain) {
  let runs = workgroupUniformLoad(&tile_runs);
  for (var first = 0u; first < runs; first += PART_RUNS) {
    if (first > 0u) {
      workgroupBarrier();
      stage_runs(first, sum);
      workgroupBarrier();
    }
    for (var k = local; k < min(runs - first, PART_RUNS); k += WORKGROUP_SIZE) { write_run(k, first + k, before); }
  }
}
// Writes the number of runs and the value of the last one.
fn emit_end(total: Chain) {
//$ if stores is not defined or stores.of_keys
  store_count(0u, total.x);
//$ endif
  if (total.x > 0u) { put_value(total.x - 1u, chain_value(total)); }
}
