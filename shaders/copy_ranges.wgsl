// Copies ranges of items: items source_offsets[s] … of the source to destination_offsets[s] … of the output, as many as the
// ranges' scanned lengths, `ends`, say. Workgroups share all items equally, however long the ranges are: each finds the ranges
// of its tile among the ends of all, and each invocation those of its items among these. Items that are not there are left out.
// Source: the search is that of Baxter, "Modern GPU" (2013), load-balancing search.
// Forward progress: no workgroup waits for another.
// Bindings: params, source, source_offsets, destination_offsets, ends, output.
// Params: ranges; blocks (workgroups, which take turns); source_length; output_length; search_steps.

const ITEMS: u32 = {{ items }}u;  // of an invocation, in a tile
const NOWHERE: u32 = 0xffffffffu;
var<private> local: u32;
var<workgroup> shared_total: u32;
fn end_of(s: u32) -> u32 { return load_ends(s); }
fn begin_of(s: u32) -> u32 {
  if (s == 0u) { return 0u; }
  return load_ends(s - 1u);
}
fn segments_in_all() -> u32 { return params.ranges; }
fn items_in_all() -> u32 { return load_ends(params.ranges - 1u); }
fn tile_size() -> u32 { return WORKGROUP_SIZE * ITEMS; }
fn tile_begin(tile: u32) -> u32 { return tile * tile_size(); }
fn used_tiles() -> u32 { return NOWHERE; }  // no tile has all the ranges that are left
fn more_follows() -> bool { return false; }
//$ include "lib/segment_search.wgsl"
//$ include "lib/segment_at.wgsl"

fn run(block: u32, invocation: u32) {
  local = invocation;
  if (local == 0u) { shared_total = items_in_all(); }
  let total = workgroupUniformLoad(&shared_total);
  let tiles = (total - min(total, 1u)) / tile_size() + min(total, 1u);
  for (var tile = block; tile < tiles; tile += params.blocks) {
    let bounds = find_segments(tile);
    let most = min(bounds[PARTS], params.ranges - 1u);
    let first = tile_begin(tile) + local;
    var s = min(bounds[0], most);
    // All loads come before the stores, so that they are in flight together.
//$ for k in range(items)
    let i_{{ k }} = first + {{ k }}u * WORKGROUP_SIZE;
    var to_{{ k }} = NOWHERE;
    var item_{{ k }} = {{ "vec2<u32>(0u)" if item_bytes == 8 else "0u" }};
    if (i_{{ k }} < total) {
      if (end_of(s) <= i_{{ k }}) { s = segment_at(i_{{ k }}, s, most); }
      let at = i_{{ k }} - begin_of(s);
      let from_begin = load_source_offsets(s);
      let to_begin = load_destination_offsets(s);
      let place = from_begin + at;
      // A sum beyond 32 bits is no place.
      if (place < params.source_length && place >= from_begin && to_begin + at < params.output_length && to_begin + at >= to_begin) {
        to_{{ k }} = to_begin + at;
        item_{{ k }} = load_source(place);
      }
    }
//$ endfor
    if (to_{{ k }} != NOWHERE) { store_output(to_{{ k }}, item_{{ k }}); }  //$ for k in range(items)
  }
}
