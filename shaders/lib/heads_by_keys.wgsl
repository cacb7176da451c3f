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
alias KeyRow = array<KeyQuad, {{ quads }}>;
fn row_keys(i: u32, full: bool) -> KeyRow {
  if (full) {
    return KeyRow(
      key4(i{{ " + %du" % (4 * q) if q }}),  //$ for q in range(quads)
    );
  }
  let last = max(item_count(), 1u) - 1u;
  return KeyRow(
//$ for q in range(quads)
    KeyQuad(
      key(min(i{{ " + %du" % (4 * q) if q }}, last)), key(min(i + {{ 4 * q + 1 }}u, last)),
      key(min(i + {{ 4 * q + 2 }}u, last)), key(min(i + {{ 4 * q + 3 }}u, last)),
    ),
//$ endfor
  );
}
fn heads_of_keys(i: u32, k: KeyRow, full: bool) -> u32 {
  let n = item_count();
  let first = is_first(i);
//$ if subgroups == "native"
  // Of the lanes' own keys, but for the first lane. All lanes load the item before the row, from one address; behind the
  // items, and where no items count, some address within the binding.
  let row_first = min(i - WIDTH * sg_lane, max(n, 1u) - 1u);
  let before_row = key(select(row_first - 1u, 0u, is_first(row_first)));
  let left = select(subgroupShuffleUp(k[{{ quads - 1 }}].w, 1u), before_row, sg_lane == 0u);
//$ else
  var left = k[0].x;
  if (i < n) { left = key(select(i - 1u, 0u, first)); }
//$ endif
  let here = bits_of(first || differ(left, k[0].x), differ(k[0].x, k[0].y), differ(k[0].y, k[0].z), differ(k[0].z, k[0].w))
//$ for q in range(1, quads)
    | (bits_of(
      differ(k[{{ q - 1 }}].w, k[{{ q }}].x), differ(k[{{ q }}].x, k[{{ q }}].y),
      differ(k[{{ q }}].y, k[{{ q }}].z), differ(k[{{ q }}].z, k[{{ q }}].w),
    ) << {{ 4 * q }}u)
//$ endfor
  ;
  if (full) { return here; }
  return here & ((1u << min(n - min(n, i), WIDTH)) - 1u);
}
// The heads of a row of the tile that is loaded, and of any tile.
fn tile_heads_of(tile: u32, r: u32, full: bool) -> u32 {
  let i = tile_item(tile, r);
  let k = row_keys(i, full);
//$ if emission == "runs"
  tile_keys[r * {{ quads }}u + {{ q }}u] = k[{{ q }}];  //$ for q in range(quads)
//$ endif
  return heads_of_keys(i, k, full);
}
fn heads_of(tile: u32, r: u32) -> u32 {
  let i = tile_item(tile, r);
  return heads_of_keys(i, row_keys(i, false), false);
}
