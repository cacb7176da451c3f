// output = input as another datatype, or the same one, item by item.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: n (items of the window); blocks (workgroups that have work).

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ include "lib/number.wgsl"
//$ set name = "input"
//$ include "lib/cast.wgsl"

fn item_at(i: u32) -> Item { return cast_input(load_input(i)); }

// Of four items, read at once.
fn quad_at(i: u32) -> Quad {
  let four = load4_input(i);
  let items = {{ {
    8: "array<vec2<u32>, 4>(four[0].xy, four[0].zw, four[1].xy, four[1].zw)",
    4: "four",
    2: "vec4<u32>(four.x & 0xffffu, four.x >> 16u, four.y & 0xffffu, four.y >> 16u)",
    1: "vec4<u32>(four, four >> 8u, four >> 16u, four >> 24u) & vec4<u32>(0xffu)",
  }[source.bytes] }};
  return quad_of(cast_input(items[0]), cast_input(items[1]), cast_input(items[2]), cast_input(items[3]));
}
//$ set own_quads = true
//$ include "lib/quads.wgsl"
