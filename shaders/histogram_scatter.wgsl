// output[bins[r]] = results[r] for each run r of items of one bin. Runs of items in no bin come last, and are left out.
// Forward progress: no workgroup waits for another. Bindings: params, {{ operand_names | join(", ") }}.
// Params: n (runs that there is room for); bins.

fn run(k: u32) {
  if (k >= load_count(0u)) { return; }
  let bin = load_keys(k);
  if (bin < params.bins) { store_output(bin, load_results(k)); }
}
