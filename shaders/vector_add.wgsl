// output = a + b, item by item; integers wrap.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output (fewer where they share buffers).
// Params: n (items of the window); blocks (workgroups that have work).

//$ if acc is defined
//$ include "lib/operator.wgsl"
fn f(i: u32) -> {{ "vec2<u32>" if acc.words == 2 else "u32" }} { return lower(combine(lift(load_a(i)), lift(load_b(i)))); }
fn f4(i: u32) -> {{ "array<vec4<u32>, 2>" if source.bytes == 8 else "SourceQuad" }} { return lower4(combine4(lift4(load4_a(i)), lift4(load4_b(i)))); }
//$ else
alias T = {{ datatype }};

fn f(i: u32) -> u32 { return bitcast<u32>(bitcast<T>(load_a(i)) + bitcast<T>(load_b(i))); }
fn f4(i: u32) -> vec4<u32> {
  return bitcast<vec4<u32>>(bitcast<vec4<T>>(load4_a(i)) + bitcast<vec4<T>>(load4_b(i)));
}
//$ endif

//$ include "lib/elementwise.wgsl"
