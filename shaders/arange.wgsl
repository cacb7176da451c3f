// output[i] = start + i · step, rounded as numpy rounds it: the product, then the sum; integers wrap.
// Forward progress: no workgroup waits for another. Bindings: params, output.

struct Params {
  n: u32,  // items of the window
  blocks: u32,  // workgroups that have work
  first: u32,  // first item of the window
  zero: u32,  // 0, unknown to the compiler: what is combined with it is rounded before
  start_low: u32,
  start_high: u32,
  step_low: u32,
  step_high: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/quad.wgsl"
//$ if sink.kind == "f" and sink.bytes == 2
//$ include "lib/half.wgsl"
//$ endif
//$ if sink.kind == "f" and sink.bytes == 8
alias Acc = vec2<u32>;
//$ set acc, fixed_order = {"number": "f64"}, true
//$ include "lib/wide.wgsl"
fn item_at(i: u32) -> Item {
  let start = Item(params.start_low, params.start_high);
  let step = Item(params.step_low, params.step_high);
  return wide_add(start, wide_multiply(words_of(f64(i + params.first)), step));
}
//$ elif sink.kind == "f"
fn item_at(i: u32) -> Item {
  let product = bitcast<u32>(f32(i + params.first) * bitcast<f32>(params.step_low)) ^ params.zero;
  let sum = bitcast<f32>(params.start_low) + bitcast<f32>(product);
  return {{ "half(sum)" if sink.bytes == 2 else "bitcast<u32>(sum)" }};
}
//$ elif sink.bytes == 8
alias Acc = vec2<u32>;
//$ set acc, fixed_order = {"number": "u64"}, false
//$ include "lib/wide.wgsl"
fn item_at(i: u32) -> Item {
  let product = wide_multiply(Item(i + params.first, 0u), Item(params.step_low, params.step_high));
  return wide_add(Item(params.start_low, params.start_high), product);
}
//$ else
fn item_at(i: u32) -> Item {
  let x = params.start_low + (i + params.first) * params.step_low;
  return {{ {1: "x & 0xffu", 2: "x & 0xffffu", 4: "x"}[sink.bytes] }};
}
//$ endif

//$ set own_quads = false
//$ include "lib/quads.wgsl"
