// output = input, item by item. Memory-bound kernels are judged against its speed.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (items of the window); blocks (workgroups that have work).

fn f(i: u32) -> u32 { return load_input(i); }
fn f4(i: u32) -> vec4<u32> { return load4_input(i); }

//$ include "lib/elementwise.wgsl"
