// Items along one axis, backwards or shifted in a circle: numpy's flip and roll. output[o, j, i] = input[o, k, i], of sizes
// outer, length and inner, where k is {{ "length − 1 − j" if reverse else "(j − shift) modulo length" }}.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length (of
// the axis); inner; shift (less than the length).

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"

fn source_of(j: u32) -> u32 {
//$ if reverse
  return params.length - 1u - j;
//$ else
  return select(j - params.shift, j + (params.length - params.shift), j < params.shift);
//$ endif
}

//$ set axis = "length"
//$ include "lib/along_axis.wgsl"
