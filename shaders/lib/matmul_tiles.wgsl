// What all products of matrices by tiles have: items, and tiles.
// Params: m (rows of a); n (columns of b); k (columns of a, rows of b); tiles_m (tiles that cover the rows of the output);
// tiles_n (tiles that cover its columns); blocks (tiles_m × tiles_n).
//$ include "lib/matmul_items.wgsl"

const TILE_M: u32 = {{ tile_m }}u;
const TILE_N: u32 = {{ tile_n }}u;
const TILE_K: u32 = {{ tile_k }}u;
// Rows of tiles that are processed together, column by column, so that concurrent workgroups share cached data.
const GROUP: u32 = 16u;
