// How many items of each segment are chosen: as many as are asked for, but no more than it has, or than one workgroup chooses.
// Forward progress: no workgroup waits for another. Bindings: params, ks, offsets, counts.
// Params: n (items of all segments); counts (of the segments, and a 0); most (that a count may be).

fn run(s: u32) {
  if (s + 1u == params.counts) { store_counts(s, 0u); return; }
  let end = min(load_offsets(s + 1u), {{ used.n }});
  store_counts(s, min(min(load_ks(s), params.most), end - min(load_offsets(s), end)));
}
