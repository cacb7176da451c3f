// output = op(input), item by item.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (items of the window); blocks (workgroups that have work).

//$ if op is defined
//$ include "lib/unary_operator.wgsl"

fn f(i: u32) -> u32 { return bitcast<u32>(apply(bitcast<T>(load_input(i)))); }
fn f4(i: u32) -> vec4<u32> { return bitcast<vec4<u32>>(apply4(bitcast<vec4<T>>(load4_input(i)))); }

//$ else
fn f(i: u32) -> {{ "vec2<u32>" if quad is defined and not bools else "u32" }} { return load_input(i); }
fn f4(i: u32) -> {{ quad if quad is defined else "vec4<u32>" }} {
  let words = load4_input(i);
  return {{ "words.x | (words.y << 8u) | (words.z << 16u) | (words.w << 24u)" if bools else "words" }};
}

//$ endif
//$ include "lib/elementwise.wgsl"
