// output = input, item by item. Memory-bound kernels are judged against its speed.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).

struct Params {
  n: u32,  // items of the window
//$ include "lib/params_counted.wgsl"
  blocks: u32,  // workgroups that have work
  input_offset: u32,
  output_offset: u32,
}
{{ bindings }}

fn f(i: u32) -> u32 { return load_input(i); }
fn f4(i: u32) -> vec4<u32> { return load4_input(i); }

//$ include "lib/elementwise.wgsl"
