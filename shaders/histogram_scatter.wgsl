// output[bins[r]] = results[r] for each run r of items of one bin. Runs of items in no bin come last, and are left out. Or, before
// that, output[k] = the result of no items.
// Forward progress: no workgroup waits for another. Bindings: params, {{ operand_names | join(", ") }}.
// Params: n (entries); blocks (workgroups that have work); word_0 (the result of no items); word_1; bins.

fn run(block: u32, local: u32) {
  let k = block * WORKGROUP_SIZE + local;
//$ if fills
  if (k < params.n) { store_output(k, {{ "vec2<u32>(params.word_0, params.word_1)" if words == 2 else "params.word_0" }}); }
//$ else
  if (k < min(params.n, load_count(0u))) {
    let bin = load_keys(k);
    if (bin < params.bins) { store_output(bin, load_results(k)); }
  }
//$ endif
}
