// output[b, j, i] = input[b, i, j]: matrices with rows and columns exchanged, through tiles in workgroup memory.
// A tile has 32 columns; its rows are one item longer in workgroup memory, so that the items of a column lie in different
// banks. Where rows (or columns) are whole quads, four items are loaded (or stored) at once.
// Tiles are taken by bands of columns, so that those at work at one time are about a square: what they read and what they write
// then lies in long pieces.
// Forward progress: no workgroup waits for another. Bindings: params, input, output (or one buffer for both).
// Params: rows; columns; tiles_down (of a matrix); tiles_across; blocks (workgroups that have work).

struct Params {
  rows: u32,
  columns: u32,
  tiles_down: u32,
  tiles_across: u32,
  blocks: u32,
  input_offset: u32,
  output_offset: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> words_2: array<vec4<u32>>;

fn load_input(i: u32) -> u32 {
  let k = params.input_offset + i;
  return words_1[k >> 2u][k & 3u];
}
fn load_row_input(i: u32) -> vec4<u32> {
  let k = params.input_offset + i;
  let words = words_1[k >> 2u];
  return words;
}
fn load4_input(i: u32) -> vec4<u32> {
  return load_row_input(i);
}
fn load_output(i: u32) -> u32 {
  let k = params.output_offset + i;
  return words_2[k >> 2u][k & 3u];
}
fn load_row_output(i: u32) -> vec4<u32> {
  let k = params.output_offset + i;
  let words = words_2[k >> 2u];
  return words;
}
fn load4_output(i: u32) -> vec4<u32> {
  return load_row_output(i);
}
fn store_output(i: u32, item: u32) {
  let k = params.output_offset + i;
  words_2[k >> 2u][k & 3u] = item;
}
fn store_row_output(i: u32, row: vec4<u32>) {
  let k = params.output_offset + i;
  words_2[k >> 2u] = row;
}
fn store4_output(i: u32, items: vec4<u32>) {
  store_row_output(i, items);
}

// Items of 4 bytes, and four of them as they lie in memory.
alias Item = u32;
alias Quad = vec4<u32>;
fn quad_of(x: Item, y: Item, z: Item, w: Item) -> Quad { return Quad(x, y, z, w); }
const SIDE: u32 = 32u;
const STRIDE: u32 = SIDE + 1u;
const WORKGROUP_SIZE: u32 = 128u;
const BAND: u32 = 8u;  // tiles
const PLANES: u32 = 1u;  // squares of a tile, one below the other
var<workgroup> tile: array<Item, PLANES * SIDE * STRIDE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z);
  if (block >= params.blocks) { return; }
  let matrix = block / (params.tiles_down * params.tiles_across);
  let in_matrix = block % (params.tiles_down * params.tiles_across);
  let band = in_matrix / (params.tiles_down * BAND);
  let in_band = in_matrix % (params.tiles_down * BAND);
  let width = min(BAND, params.tiles_across - band * BAND);
  let first_row = in_band / width * (PLANES * SIDE);
  let first_column = (band * BAND + in_band % width) * SIDE;
  let begin = matrix * params.rows * params.columns;
  let from_row = local >> 3u;
  let from_column = (local & 7u) * 4u;
  let row_0 = from_row + 0u;
  var quad_0 = Quad();
  if (first_row + row_0 < params.rows && first_column + from_column < params.columns) {
    quad_0 = load4_input(begin + (first_row + row_0) * params.columns + first_column + from_column);
  }
  let row_1 = from_row + 16u;
  var quad_1 = Quad();
  if (first_row + row_1 < params.rows && first_column + from_column < params.columns) {
    quad_1 = load4_input(begin + (first_row + row_1) * params.columns + first_column + from_column);
  }
  tile[row_0 * STRIDE + from_column + 0u] = quad_0.x;
  tile[row_0 * STRIDE + from_column + 1u] = quad_0.y;
  tile[row_0 * STRIDE + from_column + 2u] = quad_0.z;
  tile[row_0 * STRIDE + from_column + 3u] = quad_0.w;
  tile[row_1 * STRIDE + from_column + 0u] = quad_1.x;
  tile[row_1 * STRIDE + from_column + 1u] = quad_1.y;
  tile[row_1 * STRIDE + from_column + 2u] = quad_1.z;
  tile[row_1 * STRIDE + from_column + 3u] = quad_1.w;
  workgroupBarrier();
  {
    let column = (local >> 3u) + 0u;
    let row = 0u + (local & 7u) * 4u;
    if (first_column + column < params.columns && first_row + row < params.rows) {
      let to = begin + (first_column + column) * params.rows + first_row + row;
      let at = row * STRIDE + column;
      store4_output(to, quad_of(tile[at], tile[at + STRIDE], tile[at + 2u * STRIDE], tile[at + 3u * STRIDE]));
    }
  }
  {
    let column = (local >> 3u) + 16u;
    let row = 0u + (local & 7u) * 4u;
    if (first_column + column < params.columns && first_row + row < params.rows) {
      let to = begin + (first_column + column) * params.rows + first_row + row;
      let at = row * STRIDE + column;
      store4_output(to, quad_of(tile[at], tile[at + STRIDE], tile[at + 2u * STRIDE], tile[at + 3u * STRIDE]));
    }
  }
}
