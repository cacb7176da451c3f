// Writes what the items of blocks of consecutive tiles give, from what comes before each block: the last of three
// dispatches where look-back is not safe; see stream_count.wgsl.
// Forward progress: no workgroup waits for another. Bindings: params, inputs, outputs, block_carries, and carries.

//$ include "lib/stream_params.wgsl"
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/stream_acc.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/stream_marks.wgsl"
//$ include "lib/stream_tile.wgsl"
//$ include "lib/stream_carry.wgsl"
//$ include "lib/stream_emit.wgsl"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  lanes: Lanes,
) {
  let block = workgroup_index(workgroup, grid);
  if (block >= params.blocks) { return; }
  enter(lanes);
  let first = block * params.tiles_per_block;
  let end = min(first + params.tiles_per_block, used_tiles());
//$ if words == 1
  var before = load_block_carries(block);
//$ else
  var before = Acc(load_block_carries(2u * block), load_block_carries(2u * block + 1u));
//$ endif
  for (var tile = first; tile < end; tile++) {
    tile_load(tile);
    let count = tile_count(tile);
    tile_rank();
//$ if staged
//$ if not splits and not rounds
    if (local == 0u) { staged_items = {{ "count.total" if words == 1 else "count.total.x" }}; }
//$ endif
    stage_first(tile, count);
//$ endif
    emit_tile(tile, before, count);
//$ if runs
    let last = params.first + count.total.y;
    before = Acc(before.x + count.total.x, select(before.y, last, count.total.y > 0u));
//$ else
    before = combine(before, count.total);
//$ endif
  }
}
