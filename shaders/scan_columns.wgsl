// Prefix sums of the columns of matrices: an invocation scans a block of rows of WIDTH columns, row after row.
// Neighbouring invocations read and write neighbouring columns. With `totals` only the total of each block is written.
// Forward progress: no workgroup waits for another. Bindings: params, input, carries, output (or one for both).
// Params: rows; columns; strips (columns / WIDTH); blocks (of the rows of a matrix); rows_per_block; units
// (invocations that have work: strips × blocks × matrices).

//$ include "lib/operator.wgsl"
//$ include "lib/items.wgsl"
//$ if carried
//$ set raw, raw_written = ["carries"], []
//$ include "lib/accumulators.wgsl"
//$ endif
//$ include "lib/columns.wgsl"
//$ if carried
fn carry_of(i: u32) -> Columns {
  let carry_{{ k }} = load_acc_carries(i + {{ k }}u);  //$ for k in range(width)
  return {{ "Quad(carry_0, carry_1, carry_2, carry_3)" if width == 4 else "carry_0" }};
}
//$ endif

fn run(unit: u32) {
  let block_of_all = unit / params.strips;
  let column = (unit - block_of_all * params.strips) * WIDTH;
  let matrix = block_of_all / params.blocks;
  let block = block_of_all - matrix * params.blocks;
  let first = block * params.rows_per_block;
  let end = min(first + params.rows_per_block, params.rows);
  let base = matrix * params.rows * params.columns + column;
  var sum = {{ "carry_of(block_of_all * params.columns + column)" if carried else "start()" }};
//$ if not totals
  // Each column of the output may have one item more than that of the input: the identity, which comes first.
  let to = {{ "base + (matrix + 1u) * params.columns" if initial else "base" }};
//$ if initial
  if (block == 0u) { save(base + matrix * params.columns, start()); }
//$ endif
//$ endif
  for (var row = first; row < end; row += VECS) {
    let v_{{ k }} = load(base + min(row + {{ k }}u, end - 1u) * params.columns);  //$ for k in range(vecs)
//$ for k in range(vecs)
    if (row + {{ k }}u < end) {
//$ if totals
      sum = join(sum, v_{{ k }});
//$ elif exclusive
      save(to + (row + {{ k }}u) * params.columns, sum);
      sum = join(sum, v_{{ k }});
//$ else
      sum = join(sum, v_{{ k }});
      save(to + (row + {{ k }}u) * params.columns, sum);
//$ endif
    }
//$ endfor
  }
//$ if totals
  save(block_of_all * params.columns + column, sum);
//$ endif
}
