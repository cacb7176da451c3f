// splits[t] = how many keys of the first run come before tile t: where the path of the merge crosses the diagonal on which
// the tile begins. Of equal keys those of the first run come first.
// Source: S. Odeh, O. Green, Z. Mwassi, O. Shmueli, Y. Birk, "Merge Path - Parallel Merging Made Simple" (2012).
// An invocation does the binary search of one diagonal. Each step waits for memory, and reads lines that no other search
// reads. So the first probe is where the path would be if both runs were spread alike, and the second one a step beside it:
// mostly the path lies between the two, and half of the steps are saved.
//$ if less
// A workgroup also searches the splits of the tree (lib/merge_bounds.wgsl) that lie over those of its tiles, one of each level.
//$ endif
// Forward progress: no workgroup waits for another.
// Bindings: params, {{ "input" if runs else "a, b" }}, splits{{ ", count" if counted_output }}.
// Params: tile_items; tiles; blocks (workgroups that have work); step (the second probe lies so far from the first).

//$ include "lib/merge_order.wgsl"
//$ include "lib/merge_runs.wgsl"

//$ if less
const TILES: u32 = {{ partition_tiles }}u;  // of a workgroup

// Where the path crosses the diagonals of these tiles, and then those of the levels above: 64 tiles apart, 128 and so on.
var<workgroup> crossings: array<u32, {{ partition_size }}>;
//$ set place = "select(first + k, TILES + countTrailingZeros(step / TILES), step >= TILES)"
//$ set bounds = {"name": "ends_of_tile", "width": "params.tile_items", "split": "crossings[%s]" % place}
//$ include "lib/merge_bounds.wgsl"
//$ endif

fn run(block: u32, local: u32) {
//$ if less
  let block_tile = block * TILES;
  let block_first = block_tile * params.tile_items;
  var t = block_tile + local;
//$ else
  let t = block * WORKGROUP_SIZE + local;
//$ endif
//$ if counted_output
  if (t == 0u) { store_count(0u, total()); }
//$ endif
//$ if less
  if (block >= params.blocks || block_first >= total()) { return; }
  if (local >= TILES) {
    // The walk down to any of these tiles comes by the same splits of the levels above.
    let pair_tile = runs_of(block_first).first / params.tile_items;
    let step = TILES << (local - TILES);
    t = pair_tile + ((block_tile - pair_tile) & ~(2u * step - 1u)) + step;
  }
  let is_tile = t < params.tiles && t * params.tile_items < total();
  let first = select(block_first, t * params.tile_items, is_tile);
//$ else
  let first = t * params.tile_items;
  if (block >= params.blocks || t >= params.tiles || first >= total()) { return; }
//$ endif
  let runs = runs_of(first);
  let diagonal = first - runs.first;
  // The path crosses the diagonal between these places in the first run.
  var low = max(diagonal, runs.length_b) - runs.length_b;
  var high = min(diagonal, runs.length_a);
  var probe = u32(f32(diagonal) * (f32(runs.length_a) / f32(runs.length_a + runs.length_b)));
  for (var k = 0u; low < high; k++) {
    probe = clamp(probe, low, high - 1u);
    if (is_before({{ "key_b(runs, " if runs else "key_b(" }}diagonal - 1u - probe), {{ "key_a(runs, " if runs else "key_a(" }}probe))) {
      high = probe;
      probe = max(probe, params.step) - params.step;
    } else {
      low = probe + 1u;
      probe += params.step;
    }
    if (k > 0u) { probe = low + (high - low) / 2u; }
  }
//$ if less
  crossings[local] = low;
  workgroupBarrier();
  if (is_tile && local < TILES) {
    let part = diagonal / params.tile_items;
    store_splits(t, ends_of_tile(local - part, part, runs.length_a + runs.length_b, runs.length_a).x);
  }
//$ else
  store_splits(t, low);
//$ endif
}
