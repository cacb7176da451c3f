// output[o, j, i] = input[o, indices[j], i], of outer, taken and inner lengths: numpy's take along an axis. An index that
// is out of range is {{ "clipped to the first or last item" if clip else "taken modulo the length" }}, so that no other memory is read.
// Forward progress: no workgroup waits for another. Bindings: params, input, indices, output (fewer where they share buffers).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length (of
// the axis; at least 1); count (of the indices); inner.

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ include "lib/number.wgsl"
//$ set name, sink_of_output = "indices", sink
//$ set sink = {"name": "i64", "kind": "i", "bytes": 8} if source.name != "u64" else source
//$ include "lib/cast.wgsl"

// A u32 or i64 as an index within the axis.
fn index_of(x: vec2<u32>) -> u32 {
  let negative = {{ "false" if source.name == "u64" else "(x.y >> 31u) == 1u" }};
//$ if clip
  if (negative) { return 0u; }
  return select(min(x.x, params.length - 1u), params.length - 1u, x.y != 0u);
//$ else
  if (x.y == 0u && x.x < params.length) { return x.x; }
  // Of −1 − x, which is not negative, counted from the end.
  let size = select(x, ~x, negative);
  var rest = 0u;
  if (size.y == 0u) {
    rest = size.x % params.length;
  } else {
    for (var bit = 0u; bit < 64u; bit++) {
      let over = (rest >> 31u) == 1u;
      rest = (rest << 1u) | (shr64(size, 63u - bit).x & 1u);
      if (over || rest >= params.length) { rest -= params.length; }
    }
  }
  return select(rest, params.length - 1u - rest, negative);
//$ endif
}

fn item_at(i: u32) -> Item {
  let at = i + params.first;
//$ if flat
  return load_input(index_of(cast_indices(load_indices(at))));
//$ else
  let outer = at / params.inner;
  let index = index_of(cast_indices(load_indices(outer % params.count)));
  return load_input((outer / params.count * params.length + index) * params.inner + at % params.inner);
//$ endif
}

//$ include "lib/quads.wgsl"
