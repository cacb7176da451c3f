// The segments that begin in each window of the items: one invocation finds them for one window.
// Only the last segment of a window may be longer than a window, so short segments of a window lie in one range of items.
// Forward progress: no workgroup waits for another. Bindings: params, offsets, windows{{ ", long_tiles, long_ends" if longs }}.
// Params: n (items); segments; windows; window_items; most (items of a short segment); tile_items.

fn offset_at(s: u32) -> u32 { return min(load_offsets(s), {{ used.n }}); }

// The first segment that begins at item i or behind it.
fn first_segment(i: u32) -> u32 {
  var low = 0u;
  var high = params.segments;
  while (low < high) {
    let middle = (low + high) >> 1u;
    if (offset_at(middle) < i) { low = middle + 1u; } else { high = middle; }
  }
  return low;
}

fn run(w: u32) {
  let least = first_segment(w * params.window_items);
  let most = first_segment((w + 1u) * params.window_items);
  var begin = 0u;
  var end = 0u;
//$ if longs
  var long_end = 0u;
  var tiles = 0u;
//$ endif
  if (least < most) {
    // Offsets that fall, which nobody checks, leave segments that are not sorted, but no range that is too large: the
    // searches have seen that the first segment does not begin before the window, and the last one not behind it.
    begin = offset_at(least);
    end = max(offset_at(most), begin);
    let last = clamp(offset_at(most - 1u), begin, end);
    if (end - last > params.most) {
//$ if longs
      tiles = (end - last + params.tile_items - 1u) / params.tile_items;
      long_end = end;
//$ endif
      end = last;
    }
  }
  store4_windows(4u * w, vec4<u32>(least, most, begin, end));
//$ if longs
  store_long_tiles(w, tiles);
  store_long_ends(w, long_end);
//$ endif
}
