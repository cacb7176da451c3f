// A tile in which many short segments end: each invocation combines the items of whole segments, which the cache has, since the
// tile was loaded. So nothing is scanned, and nothing goes through workgroup memory. Segments of one item take 12 bytes of memory
// and otherwise some 40 accesses to workgroup memory.
const SHORT_TILE: u32 = 8u;  // items per segment, at most
const LONGEST: u32 = 32u;  // items of a segment that one invocation combines
// Whether some segment is longer. Then the tile is done again, as one of long segments.
var<workgroup> short_failed: u32;

fn are_short(segments: u32) -> bool { return segments * SHORT_TILE >= tile_size(); }
//$ macro short_segment(j)
    if (s_{{ j }} < end) {
      if (begin_{{ j }} >= end_{{ j }}) {
        put_segment(s_{{ j }}, identity());
      } else if (end_{{ j }} <= from_{{ j }} || end_{{ j }} - from_{{ j }} > LONGEST) {
        short_failed = 1u;
      } else {
        var x = item_{{ j }};
        for (var i = from_{{ j }} + 1u; i < end_{{ j }}; i++) { x = combine(x, item(i - params.first)); }
        if (begin_{{ j }} < tile_first) { x = combine(chain_value(before), x); }
        if (begin_{{ j }} < block_begin) {
          unfinished = s_{{ j }};
          unfinished_value = x;
        } else {
          put_segment(s_{{ j }}, x);
        }
      }
    }
//$ endmacro
// Writes the results of the segments from `first` to `end` - 1, which end in the tile; parameters as of emit_ends. Returns whether
// all were short. All invocations of the workgroup take part.
fn emit_short(tile: u32, first: u32, end: u32, block_begin: u32, before: Chain) -> bool {
  if (local == 0u) { short_failed = 0u; }
  workgroupBarrier();
  let tile_first = tile_begin(tile);
  let last_item = max(item_count(), 1u) - 1u;
  for (var s = first + local; s < end; s += 4u * WORKGROUP_SIZE) {
    // Four at a time, so that their loads are on their way at once.
//$ for j in range(4)
    let s_{{ j }} = s{{ " + %du * WORKGROUP_SIZE" % j if j }};
    let begin_{{ j }} = load_offsets(min(s_{{ j }}, end - 1u));
    let end_{{ j }} = segment_end(min(s_{{ j }}, end - 1u));
//$ endfor
//$ for j in range(4)
    let from_{{ j }} = max(begin_{{ j }}, tile_first);
    let item_{{ j }} = item(min(from_{{ j }} - params.first, last_item));
//$ endfor
//$ for j in range(4)
{{ short_segment(j) -}}
//$ endfor
  }
  return workgroupUniformLoad(&short_failed) == 0u;
}
// First item behind the last segment that ends in a tile.
fn tail_begin(tile: u32, end: u32) -> u32 { return clamp(segment_end(end - 1u), tile_begin(tile), tail_end(tile)); }
fn tail_end(tile: u32) -> u32 { return min(tile_begin(tile) + tile_size(), items_in_all()); }
// The items behind it.
fn tail_value(tile: u32, end: u32) -> Acc {
  var x = identity();
  for (var i = tail_begin(tile, end); i < tail_end(tile); i++) { x = combine(x, item(i - params.first)); }
  return x;
}
