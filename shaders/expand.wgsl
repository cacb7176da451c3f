// Values repeated: item s of the values fills the places of segment s in the output. A workgroup finds the segments of its
// tile among the ends of all; each invocation finds those of its items among these.
// Source: the search is that of Baxter, "Modern GPU" (2013), load-balancing search.
// Forward progress: no workgroup waits for another. Bindings: params, values, ends or offsets, output, count.
// Params: n (segments; the GPU may have counted them); first (0); capacity (segments that there is room for); tiles;
// size (items that the output has room for); search_steps.

const VECS: u32 = {{ vecs }}u;
var<private> local: u32;
fn end_of(s: u32) -> u32 { return {{ "load_offsets(s + 1u)" if by == "offsets" else "load_ends(s)" }}; }
fn segments_in_all() -> u32 { return item_count(); }
fn items_in_all() -> u32 {
  if (item_count() == 0u) { return 0u; }
  return end_of(item_count() - 1u);
}
fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }
fn tile_begin(tile: u32) -> u32 { return tile * tile_size(); }
fn used_tiles() -> u32 { return params.tiles + 1u; }  // no tile has all the segments that are left
fn more_follows() -> bool { return false; }
//$ include "lib/segment_search.wgsl"
//$ include "lib/segment_at.wgsl"
//$ set Item = "vec2<u32>" if item_bytes == 8 else "u32"
fn value_of(s: u32) -> {{ Item }} { return {{ "load_values(s)" if values else "s" }}; }

fn run(tile: u32, invocation: u32) {
  local = invocation;
  let total = items_in_all();
  if (tile == 0u && local == 0u) { store_count(0u, total); }
  let room = min(total, params.size);
  if (tile_begin(tile) >= room) { return; }
  let bounds = find_segments(tile);
  let most = min(bounds[PARTS], item_count() - 1u);
  for (var r = 0u; r < VECS; r++) {
    let i = tile_begin(tile) + (r * WORKGROUP_SIZE + local) * 4u;
    if (i >= room) { break; }
    let s_0 = segment_at(i, bounds[0], most);
//$ for c in range(1, 4)
    var s_{{ c }} = s_{{ c - 1 }};
    if (end_of(s_{{ c }}) <= i + {{ c }}u) { s_{{ c }} = segment_at(i + {{ c }}u, min(s_{{ c }} + 1u, most), most); }
//$ endfor
//$ if item_bytes == 4
    if (i + 4u <= room) {
      store4_output(i, vec4<u32>(value_of(s_0), value_of(s_1), value_of(s_2), value_of(s_3)));
      continue;
    }
//$ endif
    store_output(i, value_of(s_0));
    if (i + {{ c }}u < room) { store_output(i + {{ c }}u, value_of(s_{{ c }})); }  //$ for c in range(1, 4)
  }
}
