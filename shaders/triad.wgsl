// output = a + 3 · b, item by item: two reads and one write, like the triad of STREAM.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

struct Params {
  n: u32,  // items of the window
//$ include "lib/params_counted.wgsl"
  blocks: u32,  // workgroups that have work
  a_offset: u32,
  b_offset: u32,
  output_offset: u32,
}
{{ bindings }}

alias T = {{ datatype }};

fn f(i: u32) -> u32 { return bitcast<u32>(bitcast<T>(load_a(i)) + T(3) * bitcast<T>(load_b(i))); }
fn f4(i: u32) -> vec4<u32> {
  return bitcast<vec4<u32>>(bitcast<vec4<T>>(load4_a(i)) + T(3) * bitcast<vec4<T>>(load4_b(i)));
}

//$ include "lib/elementwise.wgsl"
