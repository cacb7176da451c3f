// output[i] = start + i · step, rounded as numpy rounds it: the product, then the sum; integers wrap.
// Forward progress: no workgroup waits for another. Bindings: params, output.
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); zero (0,
// unknown to the compiler: what is combined with it is rounded before); start_low; start_high; step_low; step_high.

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ if sink.kind == "f" and sink.bytes == 2
//$ include "lib/half.wgsl"
//$ endif
//$ if sink.kind == "f" and sink.bytes == 8
//$ include "lib/float64.wgsl"
fn item_at(i: u32) -> Item {
  let product = words_of_f64(f64(i + params.first) * f64_of(Item(params.step_low, params.step_high))) ^ Item(params.zero);
  return words_of_f64(f64_of(Item(params.start_low, params.start_high)) + f64_of(product));
}
//$ elif sink.kind == "f"
fn item_at(i: u32) -> Item {
  let product = bitcast<u32>(f32(i + params.first) * bitcast<f32>(params.step_low)) ^ params.zero;
  let sum = bitcast<f32>(params.start_low) + bitcast<f32>(product);
  return {{ "half(sum)" if sink.bytes == 2 else "bitcast<u32>(sum)" }};
}
//$ elif sink.bytes == 8
fn item_at(i: u32) -> Item {
  // Modulo 2⁶⁴, from products of 16-bit halves.
  let index = i + params.first;
  let step = Item(params.step_low, params.step_high);
  let low = (index & 0xffffu) * (step.x & 0xffffu);
  let middle = (index >> 16u) * (step.x & 0xffffu) + (low >> 16u);  // at most (2¹⁶ − 1)² + 2¹⁶ − 1
  let other = (index & 0xffffu) * (step.x >> 16u) + (middle & 0xffffu);
  let high = (index >> 16u) * (step.x >> 16u) + (middle >> 16u) + (other >> 16u);
  let product = Item(index * step.x, high + index * step.y);
  let sum = params.start_low + product.x;
  return Item(sum, params.start_high + product.y + select(0u, 1u, sum < product.x));
}
//$ else
fn item_at(i: u32) -> Item {
  let x = params.start_low + (i + params.first) * params.step_low;
  return {{ {1: "x & 0xffu", 2: "x & 0xffffu", 4: "x"}[sink.bytes] }};
}
//$ endif

//$ include "lib/quads.wgsl"
