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
const WIDTH: u32 = {{ width }}u;
const VECS: u32 = {{ vecs }}u;  // rows that an invocation loads at once
//$ if width == 4
alias Columns = Quad;
fn start() -> Columns { return quad_of(identity()); }
fn join(a: Columns, b: Columns) -> Columns { return combine4(a, b); }
fn load(i: u32) -> Columns { return item4(i); }
fn save(i: u32, x: Columns) { put4(i, x); }
//$ if carried
fn carry_of(i: u32) -> Columns {
  return Quad(load_acc_carries(i), load_acc_carries(i + 1u), load_acc_carries(i + 2u), load_acc_carries(i + 3u));
}
//$ endif
//$ else
alias Columns = Acc;
fn start() -> Columns { return identity(); }
fn join(a: Columns, b: Columns) -> Columns { return combine(a, b); }
fn load(i: u32) -> Columns { return item(i); }
fn save(i: u32, x: Columns) { put(i, x); }
//$ if carried
fn carry_of(i: u32) -> Columns { return load_acc_carries(i); }
//$ endif
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
