// The tiles of long segments: one invocation finds, for one tile, the segment that it is a part of.
// Forward progress: no workgroup waits for another. Bindings: params, ends, windows, long_ends, list.
// Params: tiles (that there may be); windows; tile_items.

fn run(t: u32) {
  var low = 0u;
  var high = params.windows;
  while (low < high) {
    let middle = (low + high) >> 1u;
    if (load_ends(middle) <= t) { low = middle + 1u; } else { high = middle; }
  }
  var entry = vec4<u32>(0u);  // items from and to, tiles of the segment from and to
  // More tiles than there may be are those of offsets that fall.
  if (low < params.windows && load_ends(low) <= params.tiles) {
    let first = select(0u, load_ends(max(low, 1u) - 1u), low > 0u);
    let begin = load_windows(4u * low + 3u) + (t - first) * params.tile_items;
    entry = vec4<u32>(begin, min(begin + params.tile_items, load_long_ends(low)), first, load_ends(low));
  }
  store4_list(4u * t, entry);
}
