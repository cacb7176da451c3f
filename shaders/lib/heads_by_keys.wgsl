// Heads by keys: an item begins a run if its key differs from that of the item before it, also over the edge of a tile. So
// the chain of a tile needs nothing of its neighbour.
//$ set pairs = key.bytes == 8
//$ set Key = "vec2<u32>" if pairs else "u32"
//$ if pairs
struct KeyQuad { x: vec2<u32>, y: vec2<u32>, z: vec2<u32>, w: vec2<u32> }
fn key4(i: u32) -> KeyQuad { return KeyQuad(key(i), key(i + 1u), key(i + 2u), key(i + 3u)); }
fn differ(a: vec2<u32>, b: vec2<u32>) -> bool { return any(a != b); }
//$ else
alias KeyQuad = vec4<u32>;
//$ if key.kind == "f"
// −0 equals +0; a NaN equals one of the same bits.
fn plain_key(word: u32) -> u32 { return select(word, 0u, word == 0x80000000u); }
fn key4(i: u32) -> KeyQuad {
  let words = load4_keys(i);
  return select(words, vec4<u32>(0u), words == vec4<u32>(0x80000000u));
}
//$ else
fn key4(i: u32) -> KeyQuad { return load4_keys(i); }
//$ endif
fn differ(a: u32, b: u32) -> bool { return a != b; }
//$ endif
//$ if key.kind == "f" and pairs
fn plain_key(words: vec2<u32>) -> vec2<u32> { return select(words, vec2<u32>(0u), words.x == 0u && words.y == 0x80000000u); }
//$ endif
fn key(i: u32) -> {{ Key }} { return {{ "plain_key(load_keys(i))" if key.kind == "f" else "load_keys(i)" }}; }

//$ if carried
// In a later window the item before the first one lies in the binding, too.
fn is_first(i: u32) -> bool { return i == 0u && (params.flags & HAS_CARRY) == 0u; }
//$ else
fn is_first(i: u32) -> bool { return i == 0u; }
//$ endif
//$ if emission == "runs"
var<private> tile_keys: array<KeyQuad, VECS>;
//$ endif

fn heads_begin(tile: u32) {}
fn row_keys(i: u32, full: bool) -> KeyQuad {
  if (full) { return key4(i); }
  let last = max(item_count(), 1u) - 1u;
  return KeyQuad(key(min(i, last)), key(min(i + 1u, last)), key(min(i + 2u, last)), key(min(i + 3u, last)));
}
fn heads_of_keys(i: u32, k: KeyQuad, full: bool) -> u32 {
  let n = item_count();
  let first = is_first(i);
//$ if subgroups == "native"
  // Of the lanes' own keys, but for the first lane. All lanes load the item before the row, from one address.
  let row_first = i - 4u * sg_lane;
  let before_row = key(select(min(row_first, n) - 1u, 0u, is_first(row_first)));
  let left = select(subgroupShuffleUp(k.w, 1u), before_row, sg_lane == 0u);
//$ else
  var left = k.x;
  if (i < n) { left = key(select(i - 1u, 0u, first)); }
//$ endif
  let here = bits_of(first || differ(left, k.x), differ(k.x, k.y), differ(k.y, k.z), differ(k.z, k.w));
  if (full) { return here; }
  return here & ((1u << min(n - min(n, i), 4u)) - 1u);
}
// The heads of a row of the tile that is loaded, and of any tile.
fn tile_heads_of(tile: u32, r: u32, full: bool) -> u32 {
  let i = tile_item(tile, r);
  let k = row_keys(i, full);
//$ if emission == "runs"
  tile_keys[r] = k;
//$ endif
  return heads_of_keys(i, k, full);
}
fn heads_of(tile: u32, r: u32) -> u32 {
  let i = tile_item(tile, r);
  return heads_of_keys(i, row_keys(i, false), false);
}
