// output = a + b, of shapes that numpy broadcasts; each item is converted to the output's datatype first. Integers wrap.
// Item i of the output is the sum of items at_a(i) and at_b(i): the coordinates times strides, which are 0 along what is
// repeated.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output (fewer where they share buffers).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length_0,
// …; a_stride_0, …; b_stride_0, ….

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ include "lib/number.wgsl"
//$ set name, source = "a", a
//$ include "lib/cast.wgsl"
//$ set name, source = "b", b
//$ include "lib/cast.wgsl"
//$ if sink.kind == "f" and sink.bytes != 4
//$ include "lib/" ~ ("float64" if sink.bytes == 8 else "half") ~ ".wgsl"
//$ endif
fn sum(x: Item, y: Item) -> Item {
  return {{ {
    "f64": "words_of_f64(f64_of(x) + f64_of(y))",
    "f32": "bitcast<u32>(bitcast<f32>(x) + bitcast<f32>(y))",
    "f16": "half(unpack2x16float(x).x + unpack2x16float(y).x)",
    "bool": "select(0u, 1u, (x | y) != 0u)",
  }.get(sink.name) or {8: "add64(x, y)", 4: "x + y", 2: "(x + y) & 0xffffu", 1: "(x + y) & 0xffu"}[sink.bytes] }};
}

fn item_at(i: u32) -> Item {
  var rest = i + params.first;
  var at_a = 0u;
  var at_b = 0u;
//$ for d in range(dims - 1, 0, -1)
  let at_{{ d }} = rest % params.length_{{ d }};
  rest /= params.length_{{ d }};
  at_a += at_{{ d }} * params.a_stride_{{ d }};
  at_b += at_{{ d }} * params.b_stride_{{ d }};
//$ endfor
//$ if dims
  at_a += rest * params.a_stride_0;
  at_b += rest * params.b_stride_0;
//$ endif
  return sum(cast_a(load_a(at_a)), cast_b(load_b(at_b)));
}

//$ include "lib/quads.wgsl"
