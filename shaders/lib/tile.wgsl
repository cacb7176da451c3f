// A tile: WORKGROUP_SIZE × VECS × 4 consecutive items. A subgroup owns consecutive rows; a row is one vec4 per lane. So
// loads and stores are contiguous over the lanes, and combining lane by lane, row by row, subgroup by subgroup keeps
// the order of the items.
// The template writes out every row: a driver that does not unroll a loop over them keeps the items in slow memory
// instead of registers (half the speed with 8 rows on an H200).
const VECS: u32 = {{ vecs }}u;
var<private> tile_items: array<vec4<Acc>, VECS>;

fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// First item of this invocation's vec4 in row r.
fn tile_item(tile: u32, r: u32) -> u32 {
  return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size + sg_lane) * 4u;
}

// The input holds items, or accumulators packed by an earlier kernel.
const RAW_INPUT: u32 = {{ constants.RAW_INPUT }}u;
const RAW_OUTPUT: u32 = {{ constants.RAW_OUTPUT }}u;
//$ if acc.key
fn item(i: u32) -> Acc {
  let word = load_input(i);
  if ((params.flags & RAW_INPUT) != 0u) { return unpack(word); }
  return lift(word);
}
fn item4(i: u32) -> vec4<Acc> {
  let words = load4_input(i);
  if ((params.flags & RAW_INPUT) != 0u) { return bitcast<vec4<Acc>>(words); }
  return lift4(words);
}
fn result(x: Acc) -> u32 {
  if ((params.flags & RAW_OUTPUT) != 0u) { return pack(x); }
  return lower(x);
}
fn result4(x: vec4<Acc>) -> vec4<u32> {
  if ((params.flags & RAW_OUTPUT) != 0u) { return bitcast<vec4<u32>>(x); }
  return lower4(x);
}
//$ else
fn item(i: u32) -> Acc { return lift(load_input(i)); }
fn item4(i: u32) -> vec4<Acc> { return lift4(load4_input(i)); }
fn result(x: Acc) -> u32 { return lower(x); }
fn result4(x: vec4<Acc>) -> vec4<u32> { return lower4(x); }
//$ endif

// Items i to i + 3 as accumulators, with the identity for those past the end.
fn lifted4_guarded(i: u32) -> vec4<Acc> {
  if (i + 4u <= params.n) { return item4(i); }
  var v = vec4<Acc>(identity());
  if (i < params.n) { v.x = item(i); }
  if (i + 1u < params.n) { v.y = item(i + 1u); }
  if (i + 2u < params.n) { v.z = item(i + 2u); }
  return v;
}

fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= params.n; }

fn tile_load(tile: u32) {
  if (tile_is_full(tile)) {
//$ for r in range(vecs)
    tile_items[{{ r }}] = item4(tile_item(tile, {{ r }}u));
//$ endfor
  } else {
//$ for r in range(vecs)
    tile_items[{{ r }}] = lifted4_guarded(tile_item(tile, {{ r }}u));
//$ endfor
  }
}

// The tile's total, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  var total = identity();
  for (var r = 0u; r < VECS; r++) {
    let v = lifted4_guarded(tile_item(tile, r));
    total = combine(total, sg_reduce(combine(combine(v.x, v.y), combine(v.z, v.w))));
  }
  return wg_scan(total).total;
}
