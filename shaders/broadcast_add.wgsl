// output = a + b, of shapes that numpy broadcasts; each item is converted to the output's datatype first. Integers wrap.
// Item i of the output is the sum of items at_a(i) and at_b(i): the coordinates times strides, which are 0 along what is
// repeated.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output (fewer where they share buffers).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length_0,
// …; a_stride_0, …; b_stride_0, ….

//$ include "lib/quad.wgsl"
//$ include "lib/number.wgsl"
//$ set name, source = "a", a
//$ include "lib/cast.wgsl"
//$ set name, source = "b", b
//$ include "lib/cast.wgsl"
//$ if sink.kind == "f" and sink.bytes == 8
//$ include "lib/float64.wgsl"
fn sum(x: Item, y: Item) -> Item { return words_of_f64(f64_of(x) + f64_of(y)); }
//$ elif sink.bytes == 8
fn sum(x: Item, y: Item) -> Item { return add64(x, y); }
//$ elif sink.kind == "f" and sink.bytes == 2
//$ include "lib/half.wgsl"
fn sum(x: Item, y: Item) -> Item { return half(unpack2x16float(x).x + unpack2x16float(y).x); }
//$ elif sink.kind == "f"
fn sum(x: Item, y: Item) -> Item { return bitcast<u32>(bitcast<f32>(x) + bitcast<f32>(y)); }
//$ elif sink.kind == "b"
fn sum(x: Item, y: Item) -> Item { return select(0u, 1u, (x | y) != 0u); }
//$ else
fn sum(x: Item, y: Item) -> Item { return {{ {1: "(x + y) & 0xffu", 2: "(x + y) & 0xffffu", 4: "x + y"}[sink.bytes] }}; }
//$ endif

fn item_at(i: u32) -> Item {
  var rest = i + params.first;
  var at_a = 0u;
  var at_b = 0u;
//$ for d in range(dims - 1, -1, -1)
//$ if d
  let at_{{ d }} = rest % params.length_{{ d }};
  rest /= params.length_{{ d }};
  at_a += at_{{ d }} * params.a_stride_{{ d }};
  at_b += at_{{ d }} * params.b_stride_{{ d }};
//$ else
  at_a += rest * params.a_stride_0;
  at_b += rest * params.b_stride_0;
//$ endif
//$ endfor
  return sum(cast_a(load_a(at_a)), cast_b(load_b(at_b)));
}

//$ set own_quads = false
//$ include "lib/quads.wgsl"
