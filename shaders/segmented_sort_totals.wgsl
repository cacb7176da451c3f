// Adds up the counts of each bin over a group of tiles.
// Forward progress: no workgroup waits for another. Bindings: params, counts, totals{{ "" if fixed else ", list" }}.
// Params: tiles; groups; group_tiles.

const BINS: u32 = {{ constants.BINS }}u;

const WORKGROUP_SIZE: u32 = {{ constants.BINS }}u;

fn run(group: u32, bin: u32) {
//$ if not fixed
  // A tile that is not used has no items, and no tile behind it is used.
  if (load_list(4u * group * params.group_tiles + 1u) == 0u) { return; }
//$ endif
  let end = min((group + 1u) * params.group_tiles, params.tiles);
  var total = 0u;
  for (var t = group * params.group_tiles; t < end; t++) { total += load_counts(t * BINS + bin); }
  store_totals(group * BINS + bin, total);
}
