// The index of the first item that is not 0. Each workgroup looks at a tile; one that starts after an earlier item was found
// skips its tile. GPUs start workgroups in about the order of their numbers, so little behind the item is read.
// Source: the early exit is that of FindIf in NVIDIA's CUB.
// Forward progress: no workgroup waits for another. The minimum does not depend on which workgroups skip their tiles: those
// have no item before one that was found. Bindings: params, input, and found for the least index.

struct Params {
  n: u32,  // items of the window
//$ include "lib/params_counted.wgsl"
  tiles: u32,
  window_first: u32,  // the first item of the window
//$ if counted
  length: u32,  // items of all windows that there is room for
//$ endif
  {{ fields.input }}
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
override WORKGROUP_SIZE: u32 = 256u;
const NONE: u32 = 0xffffffffu;
var<workgroup> known: u32;
var<workgroup> least: atomic<u32>;

//$ if item_bytes == 8
fn holds(item: vec2<u32>) -> bool { return (item.x | {{ "(item.y << 1u)" if kind == "f" else "item.y" }}) != 0u; }
//$ else
fn holds(item: u32) -> bool { return {{ "(item << 1u)" if kind == "f" else "item" }} != 0u; }
//$ endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let tile = workgroup_index(workgroup, grid);
  if (tile >= params.tiles) { return; }
  let begin = tile * WORKGROUP_SIZE * {{ 4 * vecs }}u;
  if (local == 0u) {
//$ if counted
    // Where there is none, the result is the number of items that count.
    if (tile == 0u) { atomicMin(&found[0], min(params.n, params.length)); }
//$ endif
    known = atomicLoad(&found[0]);
    atomicStore(&least, NONE);
  }
  if (workgroupUniformLoad(&known) <= params.window_first + begin || begin >= {{ used.n }}) { return; }
  var mine = NONE;
//$ if item_bytes == 8
  // Later rows have later items.
//$ for r in range(4 * vecs)
  let i_{{ r }} = begin + {{ r }}u * WORKGROUP_SIZE + local;
  var item_{{ r }} = vec2<u32>(0u);
  if (i_{{ r }} < {{ used.n }}) { item_{{ r }} = load_input(i_{{ r }}); }
//$ endfor
//$ for r in range(4 * vecs) | reverse
  mine = select(mine, i_{{ r }}, holds(item_{{ r }}));
//$ endfor
//$ else
  if (begin + WORKGROUP_SIZE * {{ 4 * vecs }}u <= {{ used.n }}) {
    // All loads come first, so that they are in flight together. Later rows have later items.
    let i = begin + local * 4u;
//$ for r in range(vecs)
    let items_{{ r }} = load4_input(i + {{ 4 * r }}u * WORKGROUP_SIZE);
//$ endfor
//$ for r in range(vecs) | reverse
//$ for c in (3, 2, 1, 0)
    mine = select(mine, i + {{ 4 * r }}u * WORKGROUP_SIZE + {{ c }}u, holds(items_{{ r }}.{{ "xyzw"[c] }}));
//$ endfor
//$ endfor
  } else {
    for (var i = begin + local; i < {{ used.n }} && mine == NONE; i += WORKGROUP_SIZE) {
      if (holds(load_input(i))) { mine = i; }
    }
  }
//$ endif
  if (mine != NONE) { atomicMin(&least, mine); }
  workgroupBarrier();
  if (local == 0u) {
    let first = atomicLoad(&least);
    if (first != NONE) { atomicMin(&found[0], params.window_first + first); }
  }
}
