// output = value in every item.
// Forward progress: no workgroup waits for another. Bindings: params, output.

struct Params {
  n: u32,  // items of the window
  blocks: u32,  // workgroups that have work
  low: u32,  // the words of the value
  high: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/quad.wgsl"

fn item_at(_i: u32) -> Item { return {{ "Item(params.low, params.high)" if sink.bytes == 8 else "params.low" }}; }

//$ set own_quads = false
//$ include "lib/quads.wgsl"
