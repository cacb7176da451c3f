// A tile of a stream: its marks, its items that stay in registers, and the ranks of its marks.
// Ranking: a lane has at most 4 marks in a row, so the counts of {{ pack }} rows are packed into one word, and one exclusive
// sum over the subgroup ranks {{ pack }} rows. Of {{ "32 lanes a sum is at most 128, which a byte holds" if pack == 4 else "128 lanes a sum is at most 512, which half a word holds" }}.
//$ from "lib/stream_quad.wgsl" import guarded_quad
//$ set groups = (vecs + pack - 1) // pack
//$ set words_of_marks = (vecs + 7) // 8

//$ for m in marks
var<private> marks_{{ loop.index0 }}: array<u32, {{ words_of_marks }}>;
var<private> ranks_{{ loop.index0 }}: array<u32, {{ groups }}>;
var<private> row_counts_{{ loop.index0 }}: array<u32, {{ groups }}>;  // of the whole subgroup
//$ endfor
//$ for f in held
var<private> held_{{ f.name }}: array<{{ f.quad }}, VECS>;
//$ endfor

fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= item_count(); }

//$ for f in held
//$ if not (heads and f.name == marks[0].name)
{{ guarded_quad(f) }}
//$ endif
//$ endfor
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
//$ include "lib/stream_pack.wgsl"
  } else {
//$ for r in range(vecs)
//$ for f in held
    held_{{ f.name }}[{{ r }}] = quad_{{ f.name }}_guarded(tile_item(tile, {{ r }}u), n);
//$ endfor
//$ for m in marks
    let mark_{{ loop.index0 }}_{{ r }} = row_marks_{{ loop.index0 }}_guarded(tile_item(tile, {{ r }}u), n);
//$ endfor
//$ endfor
//$ include "lib/stream_pack.wgsl"
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
  row_counts_{{ k }}[{{ g }}] = sg_last(ranks_{{ k }}[{{ g }}] + counts_{{ k }}_{{ g }});
//$ endfor
//$ endfor
}
