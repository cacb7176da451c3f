// output[b, j, i] = input[b, i, j]: matrices with rows and columns exchanged, through tiles in workgroup memory.
// A tile has 32 columns; its rows are one word longer in workgroup memory, so that the items of a column lie in different
// banks. Where rows (or columns) are whole quads, four items are loaded (or stored) at once.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).

struct Params {
  rows: u32,
  columns: u32,
  tiles_down: u32,  // of a matrix
  tiles_across: u32,
  blocks: u32,  // workgroups that have work
  input_offset: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/quad.wgsl"
const SIDE: u32 = 32u;
const STRIDE: u32 = SIDE + 1u;
const PLANES: u32 = {{ planes }}u;  // squares of a tile, one below the other
var<workgroup> tile: array<Item, PLANES * SIDE * STRIDE>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  let matrix = block / (params.tiles_down * params.tiles_across);
  let in_matrix = block % (params.tiles_down * params.tiles_across);
  let first_row = in_matrix / params.tiles_across * (PLANES * SIDE);
  let first_column = in_matrix % params.tiles_across * SIDE;
  let begin = matrix * params.rows * params.columns;
//$ if quads_in
  let from_row = local >> 3u;
  let from_column = (local & 7u) * 4u;
//$ for p in range(planes)
  var quad_{{ p }} = Quad();
  if (first_row + {{ 32 * p }}u + from_row < params.rows && first_column + from_column < params.columns) {
    quad_{{ p }} = load4_input(begin + (first_row + {{ 32 * p }}u + from_row) * params.columns + first_column + from_column);
  }
//$ endfor
//$ for p in range(planes)
  let at_{{ p }} = ({{ 32 * p }}u + from_row) * STRIDE + from_column;
//$ for j in range(4)
//$ set quad = "quad_%d" % p
//$ if sink.bytes == 4
  tile[at_{{ p }} + {{ j }}u] = {{ quad }}.{{ "xyzw"[j] }};
//$ elif sink.bytes == 2
  tile[at_{{ p }} + {{ j }}u] = ({{ quad }}.{{ "xy"[j // 2] }} >> {{ 16 * (j % 2) }}u) & 0xffffu;
//$ else
  tile[at_{{ p }} + {{ j }}u] = ({{ quad }} >> {{ 8 * j }}u) & 0xffu;
//$ endif
//$ endfor
//$ endfor
//$ else
//$ for step in range(4 * planes)
  let row_{{ step }} = (local >> 5u) + {{ 8 * step }}u;
  var item_{{ step }} = Item();
  if (first_row + row_{{ step }} < params.rows && first_column + (local & 31u) < params.columns) {
    item_{{ step }} = load_input(begin + (first_row + row_{{ step }}) * params.columns + first_column + (local & 31u));
  }
//$ endfor
//$ for step in range(4 * planes)
  tile[row_{{ step }} * STRIDE + (local & 31u)] = item_{{ step }};
//$ endfor
//$ endif
  workgroupBarrier();
//$ if quads_out
  let column = local >> 3u;
  if (first_column + column >= params.columns) { return; }
//$ for p in range(planes)
  let row_to_{{ p }} = {{ 32 * p }}u + (local & 7u) * 4u;
  if (first_row + row_to_{{ p }} < params.rows) {
    let at = row_to_{{ p }} * STRIDE + column;
    store4_output(
      begin + (first_column + column) * params.rows + first_row + row_to_{{ p }},
      quad_of(tile[at], tile[at + STRIDE], tile[at + 2u * STRIDE], tile[at + 3u * STRIDE]),
    );
  }
//$ endfor
//$ else
//$ for p in range(planes)
//$ for step in range(4)
  if (first_column + (local >> 5u) + {{ 8 * step }}u < params.columns && first_row + {{ 32 * p }}u + (local & 31u) < params.rows) {
    store_output(
      begin + (first_column + (local >> 5u) + {{ 8 * step }}u) * params.rows + first_row + {{ 32 * p }}u + (local & 31u),
      tile[({{ 32 * p }}u + (local & 31u)) * STRIDE + (local >> 5u) + {{ 8 * step }}u],
    );
  }
//$ endfor
//$ endfor
//$ endif
}
