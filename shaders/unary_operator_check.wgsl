// Applies an operator to items, four at a time and one by one: output[i] and output[n + i] are op(input[i]).
// n is a multiple of 4.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items).

//$ include "lib/unary_operator.wgsl"

fn run(block: u32, local: u32) {
  let first = (block * WORKGROUP_SIZE + local) * 4u;
  if (first >= params.n) { return; }
  store4_output(first, bitcast<vec4<u32>>(apply4(bitcast<vec4<T>>(load4_input(first)))));
  for (var i = first; i < first + 4u; i++) {
    store_output(params.n + i, bitcast<u32>(apply(bitcast<T>(load_input(i)))));
  }
}
