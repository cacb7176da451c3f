// Applies an operator to pairs of items, four at a time and one by one: output[i] and output[n + i] are a[i] ∘ b[i].
// n is a multiple of 4.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.
// Params: n (pairs).

//$ include "lib/operator.wgsl"
//$ if acc.fields
//$ set raw, raw_written = ["a", "b"], ["output"]
//$ include "lib/accumulators.wgsl"
//$ include "lib/accumulator_quads.wgsl"
//$ endif

fn run(block: u32, local: u32) {
  let first = (block * WORKGROUP_SIZE + local) * 4u;
  if (first >= params.n) { return; }
//$ if acc.fields
  store4_acc_output(first, combine4(load4_acc_a(first), load4_acc_b(first)));
  for (var i = first; i < first + 4u; i++) {
    store_acc_output(params.n + i, combine(load_acc_a(i), load_acc_b(i)));
  }
//$ else
  store4_output(first, lower4(combine4(lift4(load4_a(first)), lift4(load4_b(first)))));
  for (var i = first; i < first + 4u; i++) {
    store_output(params.n + i, lower(combine(lift(load_a(i)), lift(load_b(i)))));
  }
//$ endif
}
