// output[b, j, i] = input[b, i, j]: matrices with rows and columns exchanged, through tiles in workgroup memory.
// A tile has 32 columns; its rows are one item longer in workgroup memory, so that the items of a column lie in different
// banks. Where rows (or columns) are whole quads, four items are loaded (or stored) at once.
// Tiles are taken by bands of columns, so that those at work at one time are about a square: what they read and what they write
// then lies in long pieces.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: rows; columns; tiles_down (of a matrix); tiles_across; blocks (workgroups that have work).

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
const SIDE: u32 = 32u;
const STRIDE: u32 = SIDE + 1u;
const WORKGROUP_SIZE: u32 = {{ lanes }}u;
const BAND: u32 = {{ band }}u;  // tiles
const PLANES: u32 = {{ planes }}u;  // squares of a tile, one below the other
var<workgroup> tile: array<Item, PLANES * SIDE * STRIDE>;

fn run(block: u32, local: u32) {
  let matrix = block / (params.tiles_down * params.tiles_across);
  let in_matrix = block % (params.tiles_down * params.tiles_across);
  let band = in_matrix / (params.tiles_down * BAND);
  let in_band = in_matrix % (params.tiles_down * BAND);
  let width = min(BAND, params.tiles_across - band * BAND);
  let first_row = in_band / width * (PLANES * SIDE);
  let first_column = (band * BAND + in_band % width) * SIDE;
  let begin = matrix * params.rows * params.columns;
//$ if quads_in
//$ set step_rows = lanes // 8
  let from_row = local >> 3u;
  let from_column = (local & 7u) * 4u;
//$ for s in range(32 * planes // step_rows)
  let row_{{ s }} = from_row + {{ s * step_rows }}u;
  var quad_{{ s }} = Quad();
  if (first_row + row_{{ s }} < params.rows && first_column + from_column < params.columns) {
    quad_{{ s }} = load4_input(begin + (first_row + row_{{ s }}) * params.columns + first_column + from_column);
  }
//$ endfor
//$ for s in range(32 * planes // step_rows)
//$ for j in range(4)
//$ if sink.bytes == 4
  tile[row_{{ s }} * STRIDE + from_column + {{ j }}u] = quad_{{ s }}.{{ "xyzw"[j] }};
//$ elif sink.bytes == 2
  tile[row_{{ s }} * STRIDE + from_column + {{ j }}u] = (quad_{{ s }}.{{ "xy"[j // 2] }} >> {{ 16 * (j % 2) }}u) & 0xffffu;
//$ else
  tile[row_{{ s }} * STRIDE + from_column + {{ j }}u] = (quad_{{ s }} >> {{ 8 * j }}u) & 0xffu;
//$ endif
//$ endfor
//$ endfor
//$ else
//$ set step_rows = lanes // 32
  let from_column = local & 31u;
//$ for s in range(32 * planes // step_rows)
  let row_{{ s }} = (local >> 5u) + {{ s * step_rows }}u;
  var item_{{ s }} = Item();
  if (first_row + row_{{ s }} < params.rows && first_column + from_column < params.columns) {
    item_{{ s }} = load_input(begin + (first_row + row_{{ s }}) * params.columns + first_column + from_column);
  }
//$ endfor
  tile[row_{{ s }} * STRIDE + from_column] = item_{{ s }};  //$ for s in range(32 * planes // step_rows)
//$ endif
  workgroupBarrier();
//$ set step_columns = lanes // (8 if quads_out else 32)
//$ for plane in range(planes)
//$ for s in range(32 // step_columns)
  {
//$ if quads_out
    let column = (local >> 3u) + {{ s * step_columns }}u;
    let row = {{ 32 * plane }}u + (local & 7u) * 4u;
//$ else
    let column = (local >> 5u) + {{ s * step_columns }}u;
    let row = {{ 32 * plane }}u + (local & 31u);
//$ endif
    if (first_column + column < params.columns && first_row + row < params.rows) {
      let to = begin + (first_column + column) * params.rows + first_row + row;
      let at = row * STRIDE + column;
//$ if quads_out
      store4_output(to, quad_of(tile[at], tile[at + STRIDE], tile[at + 2u * STRIDE], tile[at + 3u * STRIDE]));
//$ else
      store_output(to, tile[at]);
//$ endif
    }
  }
//$ endfor
//$ endfor
}
