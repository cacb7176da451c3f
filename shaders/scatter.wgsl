// output[indices[i]] = items[i]. Negative indices count from the end. An index that is out of range is dropped: nothing is
// written for it. Of equal indices any may be written last.
// Forward progress: no workgroup waits for another. Bindings: params, items, indices, output.
// Params: n (items of the window); blocks (workgroups that have work); length (of the output).

//$ include "lib/number.wgsl"
//$ set name = "indices"
//$ set sink = {"name": "i64", "kind": "i", "bytes": 8} if source.name != "u64" else source
//$ include "lib/cast.wgsl"
const NOWHERE: u32 = 0xffffffffu;

// A u64 or i64 as a place in the output.
fn place_of(x: vec2<u32>) -> u32 {
//$ if source.kind == "i"
  if (x.y == 0xffffffffu) { return select(NOWHERE, params.length + x.x, x.x != 0u && 0u - x.x <= params.length); }
//$ endif
  return select(NOWHERE, x.x, x.y == 0u && x.x < params.length);
}

fn run(block: u32, local: u32) {
  let begin = block * WORKGROUP_SIZE * {{ 4 * vecs }}u + local;
  // All loads come first, so that they are in flight together.
//$ for k in range(4 * vecs)
  let i_{{ k }} = begin + {{ k }}u * WORKGROUP_SIZE;
  var to_{{ k }} = NOWHERE;
  var item_{{ k }} = {{ "vec2<u32>(0u)" if item_bytes == 8 else "0u" }};
  if (i_{{ k }} < {{ used.n }}) {
    to_{{ k }} = place_of(cast_indices(load_indices(i_{{ k }})));
    item_{{ k }} = load_items(i_{{ k }});
  }
//$ endfor
  if (to_{{ k }} != NOWHERE) { store_output(to_{{ k }}, item_{{ k }}); }  //$ for k in range(4 * vecs)
}
