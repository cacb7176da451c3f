// A tile of a stream in registers. tile_load leaves behind the marks of its items and the items that are written from registers,
// tile_count what the tile adds up, tile_rank the ranks of the marks within their rows. The template writes out every row, see
// lib/tile.wgsl: a function of a row r is called with constants, and arrays are indexed by constants.
// Ranking: a lane has at most 4 marks in a row, so the counts of PACK rows are packed into one word, and one exclusive sum over
// the subgroup ranks PACK rows: of up to 32 lanes 4 rows, since a sum of at most 128 fits a byte; of more lanes 2.
const PACK: u32 = {{ pack }}u;
const COUNT_BITS: u32 = 32u / PACK;
const COUNT_MASK: u32 = (1u << COUNT_BITS) - 1u;
var<private> marks: array<Counts, (VECS + 7u) / 8u>;  // four bits for each row
var<private> ranks: array<Counts, (VECS + PACK - 1u) / PACK>;  // marks of earlier lanes in the row
var<private> row_counts: array<Counts, (VECS + PACK - 1u) / PACK>;  // marks of all lanes in the row
var<private> held_{{ f.name }}: array<{{ f.quad }}, VECS>;  //$ for f in held
//$ for f in guarded
//$ include "lib/stream_load_guarded.wgsl"
//$ endfor

fn tile_load(tile: u32) {
  marks[{{ loop.index0 }}] = Counts();  //$ for word in range(0, vecs, 8)
  if (tile_is_full(tile)) {
    tile_load_row(tile, {{ r }}u);  //$ for r in range(vecs)
  } else {
    tile_load_row_guarded(tile, {{ r }}u);  //$ for r in range(vecs)
  }
}
fn tile_load_row(tile: u32, r: u32) {
  let i = tile_item(tile, r);
  held_{{ f.name }}[r] = load4_{{ f.name }}(i);  //$ for f in held
  keep_marks(r, {{ "marks_of_items(i, held_%s[r])" % marks[0].name if heads and marks[0].held else "row_marks(i)" }});
}
fn tile_load_row_guarded(tile: u32, r: u32) {
  let i = tile_item(tile, r);
  let n = item_count();
  held_{{ f.name }}[r] = load4_{{ f.name }}_guarded(i, n);  //$ for f in held
  keep_marks(r, row_marks_guarded(i, n));
}
fn keep_marks(r: u32, of_row: Counts) { marks[r / 8u] |= of_row << Counts(4u * (r % 8u)); }

// Returns what the subgroups before this one have, and what the tile has.
fn tile_count(tile: u32) -> WorkgroupScan {
  var lane = identity();
  lane = with_marks(lane, marks[{{ loop.index0 }}], tile, {{ r }}u);  //$ for r in range(0, vecs, 8)
  return wg_scan(sg_reduce(lane));
}

// Ranks the tile's marks within their rows, without barriers.
fn tile_rank() {
  tile_rank_rows({{ g }}u);  //$ for g in range((vecs + pack - 1) // pack)
}
//$ set of = "_counts" if runs else ""
fn tile_rank_rows(g: u32) {
  let counts = packed_counts(marks[g * PACK / 8u] >> Counts(4u * (g * PACK % 8u)));
  ranks[g] = sg_scan{{ of }}(counts).exclusive;
  row_counts[g] = sg_last{{ of }}(ranks[g] + counts);
}
// The counts of PACK rows, whose marks are the low 4 × PACK bits, as bytes or halves of a word.
fn packed_counts(marks: Counts) -> Counts {
//$ if pack == 4
  var x = marks & Counts(0xffffu);
  x = (x | (x << Counts(8u))) & Counts(0x00ff00ffu);
  x = (x | (x << Counts(4u))) & Counts(0x0f0f0f0fu);
  x -= (x >> Counts(1u)) & Counts(0x05050505u);
  return (x & Counts(0x03030303u)) + ((x >> Counts(2u)) & Counts(0x03030303u));
//$ else
  var x = marks & Counts(0xffu);
  x = (x | (x << Counts(12u))) & Counts(0x000f000fu);
  x -= (x >> Counts(1u)) & Counts(0x00050005u);
  return (x & Counts(0x00030003u)) + ((x >> Counts(2u)) & Counts(0x00030003u));
//$ endif
}

// After tile_rank: the marks of this lane in row r; the marks of earlier lanes there; and those of all lanes.
fn row_bits(r: u32) -> Counts { return (marks[r / 8u] >> Counts(4u * (r % 8u))) & Counts(15u); }
fn row_rank(r: u32) -> Counts { return (ranks[r / PACK] >> Counts(COUNT_BITS * (r % PACK))) & Counts(COUNT_MASK); }
fn row_count(r: u32) -> Counts { return (row_counts[r / PACK] >> Counts(COUNT_BITS * (r % PACK))) & Counts(COUNT_MASK); }
// Of item j of a row: whether it has a mark, and the same as a number. Ranks of the items of a row are running sums of these, since
// population counts are slow (15 % of a select on an H200).
fn has_mark(bits: u32, j: u32) -> bool { return (bits & (1u << j)) != 0u; }
fn bit_of(bits: Counts, j: u32) -> Counts { return (bits >> Counts(j)) & Counts(1u); }
