// output = a + 3 · b, item by item: two reads and one write, like the triad of STREAM.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.
// Params: n (items of the window); blocks (workgroups that have work).

alias T = {{ datatype }};

fn f(i: u32) -> u32 { return bitcast<u32>(bitcast<T>(load_a(i)) + T(3) * bitcast<T>(load_b(i))); }
fn f4(i: u32) -> vec4<u32> {
  return bitcast<vec4<u32>>(bitcast<vec4<T>>(load4_a(i)) + T(3) * bitcast<vec4<T>>(load4_b(i)));
}

//$ include "lib/elementwise.wgsl"
