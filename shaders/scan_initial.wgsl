// The value that a scan starts from, as an accumulator: item 0 of the input.
// Forward progress: one invocation, no loop. Bindings: params, input, output.
// Params: n (items of the input: 1); flags (RAW_OUTPUT).

//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"

fn run(_local: u32) { put(0u, item(0u)); }
