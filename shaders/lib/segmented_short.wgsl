// A tile in which many short segments end: each invocation combines the items of whole segments, one after another, until one
// ends behind the tile. So no head is marked, nothing is scanned, and nothing goes through workgroup memory. A segment of one
// item moves 12 bytes; the usual way would access workgroup memory some 40 times for it.
const SHORT_TILE: u32 = 8u;  // items per segment, at most
const LONGEST: u32 = 32u;  // items of a segment that one invocation combines
// Whether some segment is longer. Then the tile is done again, as one of long segments.
var<workgroup> short_failed: u32;
// Of the segments that end in the tile.
var<workgroup> short_end: atomic<u32>;
var<workgroup> short_found: u32;

// Whether so many segments end in the tile, of which `first` is the first, that they are short on average.
fn are_short(tile: u32, first: u32) -> bool {
  let s = first + tile_size() / SHORT_TILE - 1u;
//$ if offsets_are_written
  // In a binding that is written, as the output's may be, WGSL takes no load for the same in all invocations.
  if (local == 0u) { short_found = select(0u, 1u, s < params.segments && end_of(s) <= tile_limit(tile)); }
  return workgroupUniformLoad(&short_found) != 0u;
//$ else
  return s < params.segments && end_of(s) <= tile_limit(tile);
//$ endif
}
//$ macro short_segment(j)
    if (is_here_{{ j }}) {
      let end = min(end_{{ j }}, items_in_all());
      if (begin_{{ j }} >= end) {
        put_segment(s_{{ j }}, identity());
      } else if (end <= from_{{ j }} || end - from_{{ j }} > LONGEST) {
        short_failed = 1u;
      } else {
        var x = item_{{ j }};
        for (var i = from_{{ j }} + 1u; i < end; i++) { x = combine(x, item(i - params.first)); }
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
// Writes the results of the segments from `first` on that end in the tile, and returns the end of these; NO_SEGMENT if one of
// them is long. `before` is what comes before the tile in the block, which begins with item `block_begin`. All invocations of
// the workgroup take part.
fn emit_short(tile: u32, first: u32, block_begin: u32, before: Chain) -> u32 {
  if (local == 0u) {
    short_failed = 0u;
    atomicStore(&short_end, first);
  }
  workgroupBarrier();
  let tile_first = tile_begin(tile);
  let limit = tile_limit(tile);
  let last_segment = params.segments - 1u;
  let last_item = max(item_count(), 1u) - 1u;
  var end = first;
  for (var s = first + local; ; s += 8u * WORKGROUP_SIZE) {
    // Eight at a time, so that their loads are on their way at once.
//$ for j in range(8)
    let s_{{ j }} = min(s{{ " + %du * WORKGROUP_SIZE" % j if j }}, last_segment);
    let begin_{{ j }} = load_offsets(s_{{ j }});
    let end_{{ j }} = end_of(s_{{ j }});
//$ endfor
//$ for j in range(8)
    let is_here_{{ j }} = s{{ " + %du * WORKGROUP_SIZE" % j if j }} <= last_segment && end_{{ j }} <= limit;
    let from_{{ j }} = max(begin_{{ j }}, tile_first);
    let item_{{ j }} = item(min(from_{{ j }} - params.first, last_item));
//$ endfor
{{ short_segment(j) -}}  //$ for j in range(8)
    if (is_here_{{ j }}) { end = s_{{ j }} + 1u; }  //$ for j in range(8)
    if (!is_here_7) { break; }
  }
  atomicMax(&short_end, end);
  workgroupBarrier();
  if (local == 0u) { short_found = select(atomicLoad(&short_end), NO_SEGMENT, short_failed != 0u); }
  return workgroupUniformLoad(&short_found);
}
// First item behind the last segment that ends in a tile.
fn tail_begin(tile: u32, end: u32) -> u32 { return clamp(segment_end(end - 1u), tile_begin(tile), tail_end(tile)); }
fn tail_end(tile: u32) -> u32 { return min(tile_begin(tile) + tile_size(), items_in_all()); }
fn tail_is_short(tile: u32, end: u32) -> bool {
//$ if offsets_are_written
  if (local == 0u) { short_found = select(0u, 1u, tail_end(tile) - tail_begin(tile, end) <= LONGEST); }
  return workgroupUniformLoad(&short_found) != 0u;
//$ else
  return tail_end(tile) - tail_begin(tile, end) <= LONGEST;
//$ endif
}
// The items behind it.
fn tail_value(tile: u32, end: u32) -> Acc {
  var x = identity();
  for (var i = tail_begin(tile, end); i < tail_end(tile); i++) { x = combine(x, item(i - params.first)); }
  return x;
}
