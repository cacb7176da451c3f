// output[k] = the result of no items, for each bin k; before histogram_scatter.wgsl writes those that have items.
// Forward progress: no workgroup waits for another. Bindings: params, {{ operand_names | join(", ") }}.
// Params: n (bins); word_0, word_1 (the result of no items).

fn run(k: u32) { store_output(k, {{ "vec2<u32>(params.word_0, params.word_1)" if words == 2 else "params.word_0" }}); }
