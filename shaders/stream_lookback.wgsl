// Marked items, in order: selects, partitions, finds the heads of runs. Each item is read once, in one dispatch.
// A workgroup takes a tile, marks its items, and publishes how many have a mark. One subgroup looks back over several earlier
// tiles at a time, until it finds one that has published the count of all tiles up to itself. Then the workgroup writes.
// Sources: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back" (NVIDIA, 2016), of which
// this is the stream compaction; the fallback is from Smith, Levien and Owens, "Decoupled Fallback" (SPAA 2025).
// Forward progress: none is assumed. After SPIN_LIMIT unsuccessful polls in total, a workgroup recounts every unpublished
// tile from the inputs. So every loop is bounded, and the outputs must not share items with the inputs.
// The number of items may come from the GPU. A workgroup whose tile has no items publishes a count of 0 and leaves: so
// that every dispatch publishes every tile.
// In windows (`carried`), counts start at 0 in each; carries has the counts of all earlier windows.
// Bindings: params, inputs, outputs, count, states, and carries.
// Params: n (items of all windows; those behind the last window do not count); first (the window's first item); capacity (items
// of the window); room (items of an output); tiles; tiles_per_block; blocks (workgroups that have work); flags (HAS_CARRY or 0).

//$ include "lib/stream_acc.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/window_tiles.wgsl"
//$ include "lib/stream_marks.wgsl"
//$ include "lib/stream_tile.wgsl"
//$ include "lib/stream_places_of_" ~ places_of ~ ".wgsl"
//$ include "lib/stream_emit_" ~ emission ~ ".wgsl"
//$ include "lib/stream_carry.wgsl"
//$ include "lib/stream_end.wgsl"
//$ include "lib/stream_state.wgsl"
//$ set any_order = true
//$ include "lib/look_back.wgsl"
//$ include "lib/look_back_resume.wgsl"

fn run(number: u32, lanes: Lanes) {
  // Surplus workgroups of the grid must not take a ticket: the last one to finish may have reset the counter.
  if (number >= params.tiles) { return; }
  enter(lanes);
  let tile = state_enter(number);
  if (look_back_enter()) { state_begin(); }
  if (tile >= used_tiles()) {
    if (is_leader()) {
      state_publish(tile, TOTAL, identity());
      if (state_count_finished(params.tiles)) { state_next_epoch(); }
    }
    return;
  }
  tile_load(tile);
  let count = tile_count(tile);
  if (is_leader()) {
    state_publish(tile, select(TOTAL, INCLUSIVE, tile == 0u), count.total);
    announce_total(count.total);
  }
  tile_rank();
  stage_first(tile, count);
  var before = identity();
  if (tile > 0u) {
    before = look_back_from(tile);
    if (is_leader()) { state_publish(tile, INCLUSIVE, combine(before, count.total)); }
  }
  if (is_leader()) {
    if (tile == used_tiles() - 1u) { emit_end(combine(before, count.total)); }
    if (state_count_finished(params.tiles)) { state_next_epoch(); }
  }
  emit_tile(tile, carried_before(before), count);
}
