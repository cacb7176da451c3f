// Prefix sums of the rows of a matrix: a workgroup scans a row, or one of several parts of it, tile by tile.
// Loads are quads of consecutive items that begin at a multiple of 4, whatever the length of a row; of the first and the
// last quad only the items of the part count. With `totals` only the total of each part is written.
// Forward progress: no workgroup waits for another. Bindings: params, input, carries, output (or one for both).
// Params: row_items; parts (of each row); part_quads (quads of a part; the last one has the rest); units (rows ×
// parts).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/items.wgsl"
//$ include "lib/masked.wgsl"
//$ if carried
//$ set raw, raw_written = ["carries"], []
//$ include "lib/accumulators.wgsl"
//$ endif

//$ set of = kinds[-1].suffix
const VECS: u32 = {{ vecs }}u;  // quads that an invocation loads at once

fn quad_of_part(q: u32, first: u32, end: u32) -> Quad {
  if (4u * q >= first && 4u * q + 4u <= end) { return item4(4u * q); }
  return guarded4(4u * q, first, end);
}

//$ if not totals
// Writes four results; `before` is the prefix of the quad, whose prefixes are in v.
fn quad_write(q: u32, first: u32, end: u32, to: u32, before: Acc, v: Quad) {
  let i = 4u * q;
//$ if exclusive
  let results = Quad(before, combine(before, v.x), combine(before, v.y), combine(before, v.z));
//$ else
  let results = combine4(quad_of(before), v);
//$ endif
//$ if not initial
  if (i >= first && i + 4u <= end) {
    put4(i, results);
    return;
  }
//$ endif
  if (i >= first && i < end) { put(i + to, results.x); }
  if (i + 1u >= first && i + 1u < end) { put(i + 1u + to, results.y); }
  if (i + 2u >= first && i + 2u < end) { put(i + 2u + to, results.z); }
  if (i + 3u >= first && i + 3u < end) { put(i + 3u + to, results.w); }
}
//$ endif

fn run(unit: u32, lanes: Lanes) {
  enter(lanes);
  let row = unit / params.parts;
  let part = unit - row * params.parts;
  let first = row * params.row_items;
  let begin = first / 4u + part * params.part_quads;
  let stop = min(begin + params.part_quads, (first + params.row_items + 3u) / 4u);
  let end = min(first + params.row_items, 4u * stop);
  // Each row of the output has one item more than that of the input: the identity, which comes first.
  let to = {{ "row + 1u" if initial else "0u" }};
  var carry = {{ "load_acc_carries(unit)" if carried else "identity()" }};
  for (var at = begin; at < stop; at += WORKGROUP_SIZE * VECS) {
    let q = at + sg_id * VECS * sg_size + sg_lane;
    var sum = identity();
    let v_{{ k }} = quad_of_part(q + {{ k }}u * sg_size, first, end);  //$ for k in range(vecs)
//$ for k in range(vecs)
    let y_{{ k }} = combine(v_{{ k }}.x, v_{{ k }}.y);
    let z_{{ k }} = combine(y_{{ k }}, v_{{ k }}.z);
    let w_{{ k }} = combine(z_{{ k }}, v_{{ k }}.w);
    let lanes_{{ k }} = sg_scan{{ of }}(w_{{ k }});
    let before_{{ k }} = combine(sum, lanes_{{ k }}.exclusive);
    sum = combine(sum, sg_last{{ of }}(lanes_{{ k }}.inclusive));
//$ endfor
    let of_tile = wg_scan{{ of }}(sum);
//$ if not totals
    let before = combine(carry, of_tile.before);
//$ for k in range(vecs)
    quad_write(
      q + {{ k }}u * sg_size, first, end, to, combine(before, before_{{ k }}),
      Quad(v_{{ k }}.x, y_{{ k }}, z_{{ k }}, w_{{ k }}),
    );
//$ endfor
//$ endif
    carry = combine(carry, of_tile.total);
  }
//$ if totals
  if (sg_id == 0u && sg_lane == 0u) { put(unit, carry); }
//$ elif initial
  if (part == 0u && sg_id == 0u && sg_lane == 0u) { put(first + row, identity()); }
//$ endif
}
