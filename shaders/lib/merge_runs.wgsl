// Which sorted runs a tile merges: two inputs, or two neighbouring runs of one. The GPU may know their lengths better than
// the host.
// Params: n_a, n_b (keys) and capacity_a, capacity_b (keys that there is room for); or of a sort n (keys), run_items (keys of a
// sorted run) and pair_items (of two runs, a multiple of a tile; or more than all keys).
struct Runs {
  first: u32,  // item of the output with which they begin
  length_a: u32,
  length_b: u32,
}
//$ if runs
fn total() -> u32 { return {{ used.n }}; }
fn runs_of(first: u32) -> Runs {
  let begin = first / params.pair_items * params.pair_items;
  let length_a = min(params.run_items, total() - begin);
  return Runs(begin, length_a, min(params.run_items, total() - begin - length_a));
}
fn key_a(runs: Runs, i: u32) -> Key { return key_input(runs.first + i); }
fn key_b(runs: Runs, i: u32) -> Key { return key_input(runs.first + params.run_items + i); }
//$ else
fn runs_of(first: u32) -> Runs {
  return Runs(0u, min(params.n_a, params.capacity_a), min(params.n_b, params.capacity_b));
}
fn total() -> u32 {
  let runs = runs_of(0u);
  return runs.length_a + runs.length_b;
}
//$ endif
