// Columns of matrices of few columns, for commutative operators: each workgroup combines a block of consecutive rows.
// Its first `lanes` invocations load consecutive quads, again and again: a tile of them is a whole number of rows, so each
// invocation keeps its columns. The rows of the totals are combined in workgroup memory. Which invocation combines which
// items depends on the shape alone.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.

struct Params {
  n: u32,  // items of the input
  matrix_items: u32,
  columns: u32,
  lanes: u32,
  tiles_per_block: u32,
  blocks: u32,  // of a matrix
  workgroups: u32,  // that have work: blocks × matrices
//$ include "lib/params_operator.wgsl"
  {{ fields.input }}
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"
//$ include "lib/masked.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
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
//$ for k in range(vecs)
    let v_{{ k }} = item4(min(i + {{ k }}u * step, last));
//$ endfor
    if (i + {{ vecs - 1 }}u * step + 4u <= end) {
//$ for k in range(vecs)
      sums = combine4(sums, v_{{ k }});
//$ endfor
    } else {
//$ for k in range(vecs)
      sums = combine4(sums, masked4(v_{{ k }}, i + {{ k }}u * step, first, end));
//$ endfor
    }
//$ else
//$ for k in range(vecs)
    sums = combine4(sums, guarded4(i + {{ k }}u * step, first, end));
//$ endfor
//$ endif
  }
  return sums;
}

//$ endfor
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let number = workgroup_index(workgroup, grid);
  if (number >= params.workgroups) { return; }
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
