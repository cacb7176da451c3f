// Adds up the counts of each bin over all earlier tiles, of whatever segment.
// Forward progress: no workgroup waits for another. Bindings: params, counts, totals, sums{{ "" if fixed else ", list" }}.
// Params: tiles; groups; group_tiles.

const BINS: u32 = {{ constants.BINS }}u;

const WORKGROUP_SIZE: u32 = {{ constants.BINS }}u;

fn run(group: u32, bin: u32) {
//$ if not fixed
  // A tile that is not used has no items, and no tile behind it is used.
  if (load_list(4u * group * params.group_tiles + 1u) == 0u) { return; }
//$ endif
  var before = 0u;
  for (var g = 0u; g < group; g++) { before += load_totals(g * BINS + bin); }
  let end = min((group + 1u) * params.group_tiles, params.tiles);
  for (var t = group * params.group_tiles; t < end; t++) {
    store_sums(t * BINS + bin, before);
    before += load_counts(t * BINS + bin);
  }
}
