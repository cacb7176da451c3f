// Columns of matrices: each workgroup combines a block of rows of a strip of columns. STRIP invocations lie side by side,
// with {{ width }} columns each, and WORKGROUP_SIZE / STRIP on top of each other, whose totals are combined in workgroup memory.
// Which invocation combines which items depends on the shape alone.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: rows; columns; strips; blocks (of the rows of a matrix); rows_per_block; workgroups (that have work:
// strips × blocks × matrices).

//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"
override STRIP: u32 = 64u;
//$ include "lib/columns.wgsl"
var<workgroup> totals: array<Columns, WORKGROUP_SIZE>;

fn run(number: u32, local: u32) {
  let strip = number % params.strips;
  let block_of_all = number / params.strips;
  let block = block_of_all % params.blocks;
  let matrix = block_of_all / params.blocks;
  let column = (strip * STRIP + local % STRIP) * WIDTH;
  let level = local / STRIP;
  let levels = WORKGROUP_SIZE / STRIP;
  let first = block * params.rows_per_block;
  let end = min(first + params.rows_per_block, params.rows);
//$ if op.commutative
  let start_row = first + level;
  let stop = end;
//$ set stride = "levels"
//$ else
  let each = (end - first + levels - 1u) / levels;
  let start_row = first + level * each;
  let stop = min(start_row + each, end);
//$ set stride = "1u"
//$ endif
  let base = matrix * params.rows * params.columns + column;
  var sum = start();
  if (column < params.columns) {
    for (var row = start_row; row < stop; row += VECS * {{ stride }}) {
//$ for k in range(vecs)
      let row_{{ k }} = row + {{ k }}u * {{ stride }};
      let v_{{ k }} = load(base + min(row_{{ k }}, stop - 1u) * params.columns);
//$ endfor
      if (row_{{ vecs - 1 }} < stop) {
        sum = join(sum, v_{{ k }});  //$ for k in range(vecs)
      } else {
        if (row_{{ k }} < stop) { sum = join(sum, v_{{ k }}); }  //$ for k in range(vecs)
      }
    }
  }
  for (var d = 1u; d < levels; d <<= 1u) {
    workgroupBarrier();
    totals[local] = sum;
    workgroupBarrier();
    if (level % (2u * d) == 0u) { sum = join(sum, totals[local + d * STRIP]); }
  }
  if (level == 0u && column < params.columns) {
    save((matrix * params.blocks + block) * params.columns + column, sum);
  }
}
