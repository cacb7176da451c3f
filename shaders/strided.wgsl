// output = the items of the input at the strides of a part of it. Strides may be negative: sums wrap.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); start; length_0,
// …; stride_0, ….

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
fn item_at(i: u32) -> Item {
  var rest = i + params.first;
  var at = params.start;
//$ for d in range(dims - 1, 0, -1)
  at += (rest % params.length_{{ d }}) * params.stride_{{ d }};
  rest /= params.length_{{ d }};
//$ endfor
  return load_input(at + rest * params.stride_0);
}

//$ include "lib/quads.wgsl"
