// A tile of a stream: WORKGROUP_SIZE × VECS × 4 consecutive items, in rows of one vec4 per lane (see lib/tile.wgsl). Every
// item has a mark or none{{ ", from one of two kinds" if marks | length > 1 }}. Marks are kept as bits: four to a row, eight rows to a word.
// Ranking: a lane has at most 4 marks in a row, so the counts of {{ pack }} rows are packed into one word, and one exclusive
// sum over the subgroup ranks {{ pack }} rows. Of {{ "64 lanes an exclusive sum is at most 252, which a byte holds" if pack == 4 else "128 lanes a sum is at most 512, which half a word holds" }}.
const VECS: u32 = {{ vecs }}u;
//$ set groups = (vecs + pack - 1) // pack
//$ set words_of_marks = (vecs + 7) // 8

//$ for m in marks
var<private> marks_{{ loop.index0 }}: array<u32, {{ words_of_marks }}>;
var<private> ranks_{{ loop.index0 }}: array<u32, {{ groups }}>;
var<private> last_ranks_{{ loop.index0 }}: array<u32, {{ groups }}>;  // of the subgroup's last lane
var<private> last_counts_{{ loop.index0 }}: array<u32, {{ groups }}>;
//$ endfor
//$ for f in held
var<private> held_{{ f.name }}: array<{{ f.quad }}, VECS>;
//$ endfor

fn tile_size() -> u32 { return WORKGROUP_SIZE * VECS * 4u; }

// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 { return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size + sg_lane) * 4u; }

fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }

//$ for f in quads
// Four items, of which those from the end on are 0.
fn quad_{{ f.name }}_guarded(i: u32, n: u32) -> {{ f.quad }} {
  if (i + 4u <= n) { return load4_{{ f.name }}(i); }
  var x = {{ f.item }}();
  var y = {{ f.item }}();
  var z = {{ f.item }}();
  if (i < n) { x = load_{{ f.name }}(i); }
  if (i + 1u < n) { y = load_{{ f.name }}(i + 1u); }
  if (i + 2u < n) { z = load_{{ f.name }}(i + 2u); }
//$ if f.bytes == 8
  return {{ f.quad }}(vec4<u32>(x, y), vec4<u32>(z, 0u, 0u));
//$ elif f.bytes == 4
  return vec4<u32>(x, y, z, 0u);
//$ elif f.bytes == 2
  return vec2<u32>(x | (y << 16u), z);
//$ else
  return x | (y << 8u) | (z << 16u);
//$ endif
}
//$ endfor

//$ for m in marks
//$ set k = loop.index0
//$ if m.kind == "heads"
//$ if m.of == "f"
// Equal items have equal codes: −0 is +0, and {{ "all NaN are one" if m.equal_nan else "a NaN equals nothing" }}.
//$ endif
fn same(a: {{ m.item }}, b: {{ m.item }}) -> bool {
//$ if m.of != "f"
  return {{ "all(a == b)" if m.bytes == 8 else "a == b" }};
//$ elif m.bytes == 8
  let nan_a = (a.y & 0x7fffffffu) > 0x7ff00000u || ((a.y & 0x7fffffffu) == 0x7ff00000u && a.x != 0u);
  let nan_b = (b.y & 0x7fffffffu) > 0x7ff00000u || ((b.y & 0x7fffffffu) == 0x7ff00000u && b.x != 0u);
  let zeros = ((a.y | b.y) & 0x7fffffffu) == 0u && (a.x | b.x) == 0u;
//$ else
//$ set infinity, magnitude = ("0x7f800000u", "0x7fffffffu") if m.bytes == 4 else ("0x7c00u", "0x7fffu")
  let nan_a = (a & {{ magnitude }}) > {{ infinity }};
  let nan_b = (b & {{ magnitude }}) > {{ infinity }};
  let zeros = ((a | b) & {{ magnitude }}) == 0u;
//$ endif
//$ if m.of == "f"
//$ set equal = "all(a == b)" if m.bytes == 8 else "a == b"
//$ if m.equal_nan
  return {{ equal }} || zeros || (nan_a && nan_b);
//$ else
  return ({{ equal }} || zeros) && !(nan_a || nan_b);
//$ endif
//$ endif
}
// The item before item i; one more load, so that a tile that is recounted needs nothing of its neighbours.
//$ if carried
fn previous_item(i: u32) -> {{ m.item }} {
  if (i > 0u) { return load_{{ m.name }}(i - 1u); }
  return carried_item();
}
fn has_previous(i: u32) -> bool { return i > 0u || has_carry(); }
//$ else
fn previous_item(i: u32) -> {{ m.item }} { return load_{{ m.name }}(max(i, 1u) - 1u); }
fn has_previous(i: u32) -> bool { return i > 0u; }
//$ endif
// Bit k is set where item i + k differs from the one before it.
fn mark4_{{ k }}(i: u32, items: {{ m.quad }}) -> u32 {
  let x = {{ m.picks[0] % "items" }};
  let y = {{ m.picks[1] % "items" }};
  let z = {{ m.picks[2] % "items" }};
  let w = {{ m.picks[3] % "items" }};
  return select(1u, 0u, same(previous_item(i), x) && has_previous(i)) | select(2u, 0u, same(x, y)) | select(4u, 0u, same(y, z))
    | select(8u, 0u, same(z, w));
}
fn row_marks_{{ k }}(i: u32) -> u32 { return mark4_{{ k }}(i, load4_{{ m.name }}(i)); }
fn row_marks_{{ k }}_guarded(i: u32, n: u32) -> u32 {
  if (i >= n) { return 0u; }
  return mark4_{{ k }}(i, quad_{{ m.name }}_guarded(i, n)) & within(i, n);
}
//$ else
fn row_marks_{{ k }}(i: u32) -> u32 {
//$ if m.bytes == 1
  // The lowest bit of every byte that is not 0, brought together by a product.
  var bits = load4_{{ m.name }}(i);
  bits |= bits >> 4u;
  bits |= bits >> 2u;
  bits |= bits >> 1u;
  return ((bits & 0x01010101u) * 0x10204080u) >> 28u;
//$ else
  let bits = select(vec4<u32>(0u), vec4<u32>(1u, 2u, 4u, 8u), load4_{{ m.name }}(i) != vec4<u32>(0u));
  return bits.x | bits.y | bits.z | bits.w;
//$ endif
}
fn row_marks_{{ k }}_guarded(i: u32, n: u32) -> u32 {
  if (i + 4u <= n) { return row_marks_{{ k }}(i); }
  var bits = 0u;
  if (i < n) { bits |= select(0u, 1u, load_{{ m.name }}(i) != 0u); }
  if (i + 1u < n) { bits |= select(0u, 2u, load_{{ m.name }}(i + 1u) != 0u); }
  if (i + 2u < n) { bits |= select(0u, 4u, load_{{ m.name }}(i + 2u) != 0u); }
  return bits;
}
//$ endif
//$ endfor
// The bits of the items among i to i + 3 that lie before item n.
fn within(i: u32, n: u32) -> u32 { return (1u << min(4u, max(n, i) - i)) - 1u; }

// Loads the tile's marks, and the items that stay in registers. The template writes out every row, see lib/tile.wgsl.
fn tile_load(tile: u32) {
  let n = item_count();
  if (tile_is_full(tile)) {
//$ for r in range(vecs)
//$ for f in held
    held_{{ f.name }}[{{ r }}] = load4_{{ f.name }}(tile_item(tile, {{ r }}u));
//$ endfor
//$ for m in marks
//$ set k = loop.index0
//$ if m.kind == "heads" and m.held
    let mark_{{ k }}_{{ r }} = mark4_{{ k }}(tile_item(tile, {{ r }}u), held_{{ m.name }}[{{ r }}]);
//$ else
    let mark_{{ k }}_{{ r }} = row_marks_{{ k }}(tile_item(tile, {{ r }}u));
//$ endif
//$ endfor
//$ endfor
//$ include "lib/stream_marks.wgsl"
  } else {
//$ for r in range(vecs)
//$ for f in held
    held_{{ f.name }}[{{ r }}] = quad_{{ f.name }}_guarded(tile_item(tile, {{ r }}u), n);
//$ endfor
//$ for m in marks
    let mark_{{ loop.index0 }}_{{ r }} = row_marks_{{ loop.index0 }}_guarded(tile_item(tile, {{ r }}u), n);
//$ endfor
//$ endfor
//$ include "lib/stream_marks.wgsl"
  }
}

// What the subgroups before this one have, and what the tile has.
struct TileCount { before: Acc, total: Acc }

//$ if runs
fn tile_count(tile: u32) -> TileCount {
  var lane = identity();
//$ for m in range(words_of_marks)
  lane.x += countOneBits(marks_0[{{ m }}]);
//$ endfor
//$ for m in range(words_of_marks)
  if (marks_0[{{ m }}] != 0u) {
    let last = firstLeadingBit(marks_0[{{ m }}]);
    lane.y = tile_item(tile, {{ 8 * m }}u + (last >> 2u)) + (last & 3u) + 1u;
  }
//$ endfor
  let sums = wg_scan_acc(sg_reduce_acc(lane));
  return TileCount(sums.before, sums.total);
}
//$ else
fn tile_count(tile: u32) -> TileCount {
//$ for m in marks
//$ set k = loop.index0
  var lane_{{ k }} = 0u;
//$ for m in range(words_of_marks)
  lane_{{ k }} += countOneBits(marks_{{ k }}[{{ m }}]);
//$ endfor
//$ endfor
//$ if words == 1
  let sums = wg_scan(sg_reduce(lane_0));
//$ else
  let sums = wg_scan_acc(Acc(sg_reduce(lane_0), sg_reduce(lane_1)));
//$ endif
  return TileCount(sums.before, sums.total);
}
//$ endif

// The total of another tile, counted from the inputs; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  let n = item_count();
  var lane = identity();
  for (var r = 0u; r < VECS; r++) {
    let i = tile_item(tile, r);
//$ if runs
    let bits = row_marks_0_guarded(i, n);
    lane.x += countOneBits(bits);
    if (bits != 0u) { lane.y = i + firstLeadingBit(bits) + 1u; }
//$ elif words == 1
    lane += countOneBits(row_marks_0_guarded(i, n));
//$ else
    let bits = row_marks_0_guarded(i, n);
    lane += Acc(countOneBits(bits), countOneBits(row_marks_1_guarded(i, n) & ~bits));
//$ endif
  }
//$ if words == 1
  return wg_scan(sg_reduce(lane)).total;
//$ elif runs
  return wg_scan_acc(sg_reduce_acc(lane)).total;
//$ else
  return wg_scan_acc(Acc(sg_reduce(lane.x), sg_reduce(lane.y))).total;
//$ endif
}

// The counts of {{ pack }} rows, whose marks are the low {{ 4 * pack }} bits, as {{ "bytes" if pack == 4 else "halves" }} of a word.
fn packed_counts(marks: u32) -> u32 {
//$ if pack == 4
  var x = marks & 0xffffu;
  x = (x | (x << 8u)) & 0x00ff00ffu;
  x = (x | (x << 4u)) & 0x0f0f0f0fu;
  x -= (x >> 1u) & 0x05050505u;
  return (x & 0x03030303u) + ((x >> 2u) & 0x03030303u);
//$ else
  var x = marks & 0xffu;
  x = (x | (x << 12u)) & 0x000f000fu;
  x -= (x >> 1u) & 0x00050005u;
  return (x & 0x00030003u) + ((x >> 2u) & 0x00030003u);
//$ endif
}

//$ set width = 32 // pack
//$ set mask = "0xffu" if pack == 4 else "0xffffu"
// Ranks the tile's marks within their rows, in registers, without barriers.
fn tile_rank() {
//$ for m in marks
//$ set k = loop.index0
//$ for g in range(groups)
//$ set first = g * pack
  let counts_{{ k }}_{{ g }} = packed_counts(marks_{{ k }}[{{ first // 8 }}] >> {{ 4 * (first % 8) }}u);
  ranks_{{ k }}[{{ g }}] = sg_scan(counts_{{ k }}_{{ g }}).exclusive;
  last_ranks_{{ k }}[{{ g }}] = sg_last(ranks_{{ k }}[{{ g }}]);
  last_counts_{{ k }}[{{ g }}] = sg_last(counts_{{ k }}_{{ g }});
//$ endfor
//$ endfor
}
