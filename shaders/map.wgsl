// output = op(input), item by item.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).

struct Params {
  n: u32,  // items of the window
//$ if counted
  first: u32,  // item of the window
  capacity: u32,  // items of the window that there is room for
//$ endif
  blocks: u32,  // workgroups that have work
  input_offset: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/unary_operator.wgsl"

fn f(i: u32) -> u32 { return bitcast<u32>(apply(bitcast<T>(load_input(i)))); }
fn f4(i: u32) -> vec4<u32> { return bitcast<vec4<u32>>(apply4(bitcast<vec4<T>>(load4_input(i)))); }

//$ include "lib/elementwise.wgsl"
