// output = value in every item.
// Forward progress: no workgroup waits for another. Bindings: params, output.
// Params: n (items of the window); blocks (workgroups that have work); low, high (the words of the value).

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"

fn item_at(_i: u32) -> Item { return {{ "Item(params.low, params.high)" if sink.bytes == 8 else "params.low" }}; }

//$ include "lib/quads.wgsl"
