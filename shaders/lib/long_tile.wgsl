// A tile of a long segment: its items from and to, and the tiles of its segment from and to. A tile without items is not used.
//$ if fixed
fn long_tile(t: u32) -> vec4<u32> {
  let segment = t / params.segment_tiles;
  let first = segment * params.segment_tiles;
  let begin = segment * params.length + (t - first) * params.tile_items;
  let end = min(min(begin + params.tile_items, (segment + 1u) * params.length), {{ used.n }});
  // The last segment may have fewer tiles.
  return vec4<u32>(begin, max(begin, end), first, min(first + params.segment_tiles, params.tiles));
}
//$ else
fn long_tile(t: u32) -> vec4<u32> { return load4_list(4u * t); }
//$ endif
