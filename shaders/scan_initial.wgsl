// The value that a scan starts from, as an accumulator: item 0 of the input.
// Forward progress: one invocation, no loop. Bindings: params, input, output.

struct Params {
  n: u32,  // items of the input: 1
  flags: u32,  // RAW_OUTPUT
//$ include "lib/params_operator.wgsl"
  {{ fields.input }}
  {{ fields.output }}
}
{{ bindings }}
//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"

@compute @workgroup_size(1)
fn main() { put(0u, item(0u)); }
