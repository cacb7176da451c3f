// Applies an operator to pairs of items, four at a time and one by one: output[i] and output[n + i] are a[i] ∘ b[i].
// n is a multiple of 4.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

struct Params {
  n: u32,  // pairs
//$ include "lib/params_operator.wgsl"
  a_offset: u32,
  b_offset: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/operator.wgsl"
//$ if acc.fields
//$ set raw, raw_written = ["a", "b"], ["output"]
//$ include "lib/accumulators.wgsl"
//$ endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first = id.x * 4u;
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
