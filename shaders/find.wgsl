// The index of the first item that is not 0. Each workgroup looks at a tile; one that starts after an earlier item was found
// skips its tile. GPUs start workgroups in about the order of their numbers, so little behind the item is read.
// Source: the early exit is that of FindIf in NVIDIA's CUB.
// Forward progress: no workgroup waits for another. The minimum does not depend on which workgroups skip their tiles: those
// have no item before one that was found. Bindings: params, input, and found for the least index.
// Params: n (items of the window); tiles; window_first (the first item of the window); length (items of all windows
// that there is room for).

const NONE: u32 = 0xffffffffu;
var<workgroup> known: u32;
var<workgroup> least: atomic<u32>;

//$ if item_bytes == 8
fn holds(item: vec2<u32>) -> bool { return (item.x | {{ "(item.y << 1u)" if kind == "f" else "item.y" }}) != 0u; }
//$ else
fn holds(item: u32) -> bool { return {{ "(item << 1u)" if kind == "f" else "item" }} != 0u; }
//$ endif

fn run(tile: u32, local: u32) {
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
  mine = select(mine, i_{{ r }}, holds(item_{{ r }}));  //$ for r in range(4 * vecs) | reverse
//$ else
  if (begin + WORKGROUP_SIZE * {{ 4 * vecs }}u <= {{ used.n }}) {
    // All loads come first, so that they are in flight together. Later rows have later items.
    let i = begin + local * 4u;
    let items_{{ r }} = load4_input(i + {{ 4 * r }}u * WORKGROUP_SIZE);  //$ for r in range(vecs)
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
