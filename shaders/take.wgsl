// output[o, j, i] = input[o, indices[j], i], of outer, taken and inner lengths: numpy's take along an axis. An index that
// is out of range is {{ "clipped to the first or last item" if clip else "taken modulo the length" }}, so that no other memory is read.
// Forward progress: no workgroup waits for another. Bindings: params, input, indices, output (fewer where they share buffers).
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length (of
// the axis; at least 1); count (of the indices); inner{{ "; part (items of the input that are read at a time)" if parts }}.

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

fn source_of(j: u32) -> u32 { return index_of(cast_indices(load_indices(j))); }

//$ if parts
// A whole tile, from one part of the input after another: all workgroups read about the same part at a time.
fn run_tile(block: u32, local: u32) {
  let begin = (block * VECS * WORKGROUP_SIZE + local) * 4u;
//$ for k in range(4 * vecs)
  let at_{{ k }} = source_of(params.first + begin + {{ k // 4 * 4 }}u * WORKGROUP_SIZE + {{ k % 4 }}u);
  var item_{{ k }} = Item();
//$ endfor
  var least = at_0;
  var most = at_0;
  least = min(least, at_{{ k }}); most = max(most, at_{{ k }});  //$ for k in range(1, 4 * vecs)
  for (var first = 0u; first < params.length; first += params.part) {
    if (most >= first && least < first + params.part) {  // neighbours with indices in order pass most parts
      if (at_{{ k }} - first < params.part) { item_{{ k }} = load_input(at_{{ k }}); }  //$ for k in range(4 * vecs)
    }
    workgroupBarrier();
  }
//$ for k in range(0, 4 * vecs, 4)
  store4_output(begin + {{ k }}u * WORKGROUP_SIZE, quad_of(item_{{ k }}, item_{{ k + 1 }}, item_{{ k + 2 }}, item_{{ k + 3 }}));
//$ endfor
}
//$ endif

//$ set axis = "count"
//$ include "lib/along_axis.wgsl"
