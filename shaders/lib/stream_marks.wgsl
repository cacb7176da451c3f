// The marks of a stream's items, four of a row as bits: an item has a mark or none, or one of two. Leaves behind row_marks(i), the
// marks of items i to i + 3; row_marks_guarded(i, n), without those from item n on; and what tiles add up.
//$ include "lib/stream_quads.wgsl"

// The bits of the items among i to i + 3 that lie before item n.
fn within(i: u32, n: u32) -> u32 { return (1u << min(4u, max(n, i) - i)) - 1u; }

//$ for mark in marks
//$ set k = loop.index0
//$ include "lib/stream_marks_by_" ~ mark.kind ~ ".wgsl"
//$ endfor
//$ if two
// Of an item with both marks the first one counts.
fn row_marks(i: u32) -> Counts {
  let first = marks_0(i);
  return Counts(first, marks_1(i) & ~first);
}
fn row_marks_guarded(i: u32, n: u32) -> Counts {
  let first = marks_0_guarded(i, n);
  return Counts(first, marks_1_guarded(i, n) & ~first);
}
//$ else
fn row_marks(i: u32) -> Counts { return marks_0(i); }
fn row_marks_guarded(i: u32, n: u32) -> Counts { return marks_0_guarded(i, n); }
//$ endif

// What a lane has with the marks of its row r, or with those of several rows from r on, four bits each.
fn with_marks(before: Acc, marks: Counts, tile: u32, r: u32) -> Acc {
  var lane = with_counts(before, countOneBits(marks));
//$ if runs
  if (marks != 0u) {
    let last = firstLeadingBit(marks);
    lane.y = tile_item(tile, r + (last >> 2u)) + (last & 3u) + 1u;
  }
//$ endif
  return lane;
}

// The total of another tile, counted from the inputs; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  let n = item_count();
  var lane = identity();
  for (var r = 0u; r < VECS; r++) { lane = with_marks(lane, row_marks_guarded(tile_item(tile, r), n), tile, r); }
  return wg_scan(sg_reduce(lane)).total;
}
