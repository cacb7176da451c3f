// What all products of matrices by tiles have: parameters, items, and tiles.
struct Params {
  m: u32,  // rows of a
  n: u32,  // columns of b
  k: u32,  // columns of a, rows of b
  tiles_m: u32,  // tiles that cover the rows of the output
  tiles_n: u32,  // tiles that cover its columns
  a_offset: u32,
  b_offset: u32,
  output_offset: u32,
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/matmul_items.wgsl"

const TILE_M: u32 = {{ tile_m }}u;
const TILE_N: u32 = {{ tile_n }}u;
const TILE_K: u32 = {{ tile_k }}u;
// Rows of tiles that are processed together, column by column, so that concurrent workgroups share cached data.
const GROUP: u32 = 16u;
