// Emission of a stream through workgroup memory, of which each subgroup has its own part, ROUND_ROWS rows of the tile in a round:
// lanes stage items in the order in which they are written, then neighbouring lanes write neighbouring items. Every item is staged
// once, itself or its position in the tile, and there is room for all of a round, whatever the marks. A tile has a round for each
// pass (what is staged) and each ROUND_ROWS rows; while one is written, the items of the next one are loaded.
// With lib/stream_emit_parts.wgsl beside it, names have a prefix, and the memory is that one's.
//$ set d = d if d is defined else ""
const ROUND_ROWS: u32 = {{ round_rows }}u;
//$ if not d
const STAGE_ITEMS: u32 = {{ 4 * round_rows * workgroup_size }}u;
//$ include "lib/stream_stage.wgsl"
//$ endif
fn stage_begin() -> u32 { return sg_id * sg_size * 4u * ROUND_ROWS; }
// The marks of a round.
fn round_count(round: u32) -> Counts {
  var count = row_count(round * ROUND_ROWS);
  count += row_count(round * ROUND_ROWS + {{ k }}u);  //$ for k in range(1, round_rows)
  return count;
}
// The first item of a subgroup's round, and the most that are written of it.
fn round_begin(tile: u32, round: u32) -> u32 { return tile * tile_size() + (sg_id * VECS + round * ROUND_ROWS) * sg_size * 4u; }
fn round_length(tile: u32, round: u32) -> u32 {
  return written_of(round_begin(tile, round), 4u * ROUND_ROWS * sg_size, round_count(round));
}

//$ for pass in passes
//$ set name, words, Item = pass.name, pass.words, "vec2<u32>" if pass.words == 2 else "u32"
// What is staged for item j of row k of a round, which is item i of the tile.
//$ if pass.source == "row"
var<private> round_{{ name }}: array<{{ pass.quad }}, ROUND_ROWS>;
fn load_{{ name }}_of_round(tile: u32, round: u32) {
  if (tile_is_full(tile)) {
    round_{{ name }}[{{ k }}] = load4_{{ name }}(tile_item(tile, round * ROUND_ROWS + {{ k }}u));  //$ for k in range(round_rows)
  } else {
//$ for k in range(round_rows)
    round_{{ name }}[{{ k }}] = load4_{{ name }}_guarded(tile_item(tile, round * ROUND_ROWS + {{ k }}u), item_count());
//$ endfor
  }
}
fn {{ d }}item_of_{{ name }}(i: u32, round: u32, k: u32, j: u32) -> {{ Item }} { return item{{ pass.bytes }}(round_{{ name }}[k], j); }
//$ else
fn load_{{ name }}_of_round(tile: u32, round: u32) {}
//$ if pass.source == "held"
fn {{ d }}item_of_{{ name }}(i: u32, round: u32, k: u32, j: u32) -> {{ Item }} {
  return item{{ pass.bytes }}(held_{{ name }}[round * ROUND_ROWS + k], j);
}
//$ else
fn {{ d }}item_of_{{ name }}(i: u32, round: u32, k: u32, j: u32) -> u32 { return i; }
//$ endif
//$ endif
fn {{ d }}stage_{{ name }}(tile: u32, round: u32) {
  var rank = Counts();  // in the round, of the first mark of a row
//$ for k in range(round_rows)
  {{ d }}stage_row_of_{{ name }}(tile, round, {{ k }}u, rank);
  rank += row_count(round * ROUND_ROWS + {{ k }}u);
//$ endfor
}
fn {{ d }}stage_row_of_{{ name }}(tile: u32, round: u32, k: u32, first_rank: Counts) {
  let bits = row_bits(round * ROUND_ROWS + k);
  let i = tile_item(tile, round * ROUND_ROWS + k) - tile * tile_size();
  var rank = first_rank + row_rank(round * ROUND_ROWS + k);
//$ if splits
  let i_of_round = (k * sg_size + sg_lane) * 4u;
//$ for j in range(4)
  stage{{ words }}(stage_begin() + rank_of(i_of_round + {{ j }}u, bits, {{ j }}u, rank, round_count(round)), {{ d }}item_of_{{ name }}(i + {{ j }}u, round, k, {{ j }}u));
  rank += bit_of(bits, {{ j }}u);
//$ endfor
//$ else
  rank += stage_begin();
//$ for j in range(4)
  if (has_mark(bits, {{ j }}u)) {
    stage{{ words }}(rank, {{ d }}item_of_{{ name }}(i + {{ j }}u, round, k, {{ j }}u));
    rank++;
  }
//$ endfor
//$ endif
}
// Writes a round; `before` has the counts of all items before it.
fn write_{{ name }}_of_round(tile: u32, round: u32, before: Acc) {
  let length = round_length(tile, round);
  if (length > {{ 4 * k }}u * sg_size) { write_row_of_{{ name }}(tile, round, {{ k }}u, before); }  //$ for k in range(round_rows)
//$ if runs and name == "positions"
  if (length > 0u) { run_start = params.first + tile * tile_size() + stage[stage_begin() + length - 1u] + 1u; }
//$ endif
}
// Writes as many items as a row has, four for each lane. What is loaded for them is loaded before any of them is written, so that
// they wait for memory together.
fn write_row_of_{{ name }}(tile: u32, round: u32, k: u32, before: Acc) {
  let length = round_length(tile, round);
//$ for j in range(4)
  let rank_{{ j }} = sg_lane + (4u * k + {{ j }}u) * sg_size;
//$ if name == "positions"
  let staged_{{ j }} = select(0u, stage[stage_begin() + rank_{{ j }}], rank_{{ j }} < length);
  let i_{{ j }} = tile * tile_size() + staged_{{ j }};
  let {{ f.name }}_{{ j }} = load_{{ f.name }}(i_{{ j }});  //$ for f in late if f.read_together
//$ if runs
  let head_before_{{ j }} = stage[stage_begin() + max(rank_{{ j }}, 1u) - 1u];
//$ endif
//$ else
  let item_{{ j }} = staged{{ words }}(stage_begin() + rank_{{ j }});
//$ endif
//$ endfor
//$ for j in range(4)
  if (rank_{{ j }} < length) {
    let to = place_in_output(rank_{{ j }}, round_begin(tile, round), before, round_count(round));
//$ if name == "positions"
//$ for f in late
//$ if f.read_together
    if (to < params.room) { store_{{ f.outputs[0] }}(to, {{ f.name }}_{{ j }}); }
//$ else
    write_{{ f.name }}(to, i_{{ j }});
//$ endif
//$ endfor
//$ if runs
    // A run's length is written by the head behind it.
    if (to > 0u && to <= params.room) {
      store_lengths(to - 1u, select(params.first + i_{{ j }} + 1u - run_start, staged_{{ j }} - head_before_{{ j }}, rank_{{ j }} > 0u));
    }
//$ endif
//$ else
    {{ "if (to < params.room) { store_%s(to, item_%d); }" % (pass.outputs[0], j) if d else "write_%s(to, item_%d);" % (name, j) }}
//$ endif
  }
//$ endfor
}

//$ endfor
//$ if not d
fn announce_total(total: Acc) {}
//$ endif
// Stages what needs not wait for what comes before the tile.
fn {{ d }}stage_first(tile: u32, count: WorkgroupScan) {
  load_{{ passes[0].name }}_of_round(tile, 0u);
  {{ d }}stage_{{ passes[0].name }}(tile, 0u);
}

// Writes the tile; stage_first has staged the first round.
fn {{ d }}emit_tile(tile: u32, before_tile: Acc, count: WorkgroupScan) {
//$ if runs
  run_start = select(before_tile.y, params.first + count.before.y, count.before.y > 0u);
//$ endif
  let before_subgroup = with_counts(before_tile, counts_of(count.before));
  var before = before_subgroup;
//$ for pass, round in rounds
//$ if not loop.last
  load_{{ loop.nextitem[0] }}_of_round(tile, {{ loop.nextitem[1] }}u);
//$ endif
  {{ barrier }}Barrier();
  write_{{ pass }}_of_round(tile, {{ round }}u, before);
//$ if not loop.last
  before = {{ "with_counts(before, round_count(%du))" % round if loop.nextitem[1] else "before_subgroup" }};
  {{ barrier }}Barrier();
  {{ d }}stage_{{ loop.nextitem[0] }}(tile, {{ loop.nextitem[1] }}u);
//$ endif
//$ endfor
}
