// Columns of matrices of few columns, for commutative operators: each workgroup combines a block of consecutive rows.
// Its first `lanes` invocations load consecutive quads, again and again: a tile of them is a whole number of rows, so each
// invocation keeps its columns. The rows of the totals are combined in workgroup memory. Which invocation combines which
// items depends on the shape alone.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the input); matrix_items; columns; lanes; tiles_per_block; blocks (of a matrix); workgroups
// (that have work: blocks × matrices).

//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"
//$ include "lib/masked.wgsl"
override ITEMS: u32 = 1024u;  // WORKGROUP_SIZE × 4
const VECS: u32 = {{ vecs }}u;  // tiles that an invocation loads from at once
var<workgroup> totals: array<Acc, ITEMS>;

//$ for whole in [true, false]
// {{ "All quads lie within the input." if whole else "The input may end within a quad." }}
fn sums_{{ "whole" if whole else "guarded" }}(first: u32, end: u32, lane: u32) -> Quad {
  let step = 4u * params.lanes;
  var sums = quad_of(identity());
//$ if whole
  let last = (params.n / 4u - 1u) * 4u;
//$ endif
  for (var i = first + 4u * lane; i < end; i += VECS * step) {
//$ if whole
    let v_{{ k }} = item4(min(i + {{ k }}u * step, last));  //$ for k in range(vecs)
    if (i + {{ vecs - 1 }}u * step + 4u <= end) {
      sums = combine4(sums, v_{{ k }});  //$ for k in range(vecs)
    } else {
      sums = combine4(sums, masked4(v_{{ k }}, i + {{ k }}u * step, first, end));  //$ for k in range(vecs)
    }
//$ else
    sums = combine4(sums, guarded4(i + {{ k }}u * step, first, end));  //$ for k in range(vecs)
//$ endif
  }
  return sums;
}

//$ endfor
fn run(number: u32, local: u32) {
  let matrix = number / params.blocks;
  let block = number - matrix * params.blocks;
  let begin = matrix * params.matrix_items;
  let tile = 4u * params.lanes;
  let first = begin + block * params.tiles_per_block * tile;
  let end = begin + min((block + 1u) * params.tiles_per_block * tile, params.matrix_items);
  if (local < params.lanes) {
    var sums: Quad;
    if ((end + 3u) / 4u * 4u <= params.n) {
      sums = sums_whole(first, end, local);
    } else {
      sums = sums_guarded(first, end, local);
    }
    totals[4u * local] = sums.x;
    totals[4u * local + 1u] = sums.y;
    totals[4u * local + 2u] = sums.z;
    totals[4u * local + 3u] = sums.w;
  }
  workgroupBarrier();
  for (var rows = tile / params.columns; rows > 1u; rows = (rows + 1u) / 2u) {
    let upper = (rows + 1u) / 2u * params.columns;
    for (var k = local; k < rows * params.columns - upper; k += WORKGROUP_SIZE) {
      totals[k] = combine(totals[k], totals[k + upper]);
    }
    workgroupBarrier();
  }
  for (var k = local; k < params.columns; k += WORKGROUP_SIZE) { put(number * params.columns + k, totals[k]); }
}
