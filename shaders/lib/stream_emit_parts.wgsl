// Emission of a stream through workgroup memory, PART items of the tile at a time, in the order in which they are written: so
// neighbouring invocations write neighbouring items. What is staged for an item is the item itself, or its position in the tile.
const PART: u32 = {{ part_items }}u;
const STAGE_ITEMS: u32 = PART;
//$ include "lib/stream_stage.wgsl"

//$ if splits
fn announce_total(total: Acc) {}
//$ else
// The marks of the whole tile: one invocation announces them to all, for emit_tile.
var<workgroup> staged_items: u32;
fn announce_total(total: Acc) { staged_items = counts_of(total); }
//$ endif

//$ for pass in passes
// What is staged for item j of row r of this lane, which is item i of the tile.
//$ if pass.source == "held"
fn item_of_{{ pass.name }}(i: u32, r: u32, j: u32) -> Item{{ pass.bytes }} { return item{{ pass.bytes }}(held_{{ pass.name }}[r], j); }
//$ else
fn item_of_positions(i: u32, r: u32, j: u32) -> u32 { return i; }
//$ endif
// Stages those items of the tile whose ranks lie in a part.
fn stage_{{ pass.name }}(tile: u32, part: u32, count: WorkgroupScan) {
  var rank = counts_of(count.before);  // of the first mark of a row
//$ for r in range(vecs)
  stage_row_of_{{ pass.name }}(tile, {{ r }}u, part, rank, counts_of(count.total));
  rank += row_count({{ r }}u);
//$ endfor
}
fn stage_row_of_{{ pass.name }}(tile: u32, r: u32, part: u32, first_rank: Counts, count: Counts) {
  let bits = row_bits(r);
  var rank = first_rank + row_rank(r);
  let i = tile_item(tile, r) - tile * tile_size();
//$ if splits
//$ for j in range(4)
  stage_{{ pass.name }}_at(rank_of(i + {{ j }}u, bits, {{ j }}u, rank, count) - part * PART, item_of_{{ pass.name }}(i + {{ j }}u, r, {{ j }}u));
  rank += bit_of(bits, {{ j }}u);
//$ endfor
//$ else
  // A subgroup skips rows that belong to other parts.
  if (first_rank + row_count(r) > part * PART && rank < (part + 1u) * PART) {
    rank -= part * PART;
//$ for j in range(4)
    if (has_mark(bits, {{ j }}u)) {
      stage_{{ pass.name }}_at(rank, item_of_{{ pass.name }}(i + {{ j }}u, r, {{ j }}u));
      rank++;
    }
//$ endfor
  }
//$ endif
}
fn stage_{{ pass.name }}_at(at: u32, item: {{ "vec2<u32>" if pass.words == 2 else "u32" }}) {
  if (at < PART) { stage{{ pass.words }}(at, item); }  // else it belongs to another part
}
// Writes a part, of `length` items.
fn write_part_of_{{ pass.name }}(tile: u32, part: u32, length: u32, before: Acc, count: Counts) {
  for (var j = local; j < length; j += WORKGROUP_SIZE) {
    let to = place_in_output(part * PART + j, tile * tile_size(), before, count);
//$ if pass.source == "held"
    write_{{ pass.name }}(to, staged{{ pass.words }}(j));
//$ else
    let i = tile * tile_size() + stage[j];
    write_{{ f.name }}(to, i);  //$ for f in late
//$ if runs
    // A run's length is written by the head behind it.
    if (to > 0u && to <= params.room) {
      if (j > 0u) { store_lengths(to - 1u, stage[j] - stage[j - 1u]); } else { store_lengths(to - 1u, params.first + i + 1u - run_start); }
    }
//$ endif
//$ endif
  }
//$ if runs and not pass.source == "held"
  if (length > 0u) { run_start = params.first + tile * tile_size() + stage[length - 1u] + 1u; }
//$ endif
}

//$ endfor
//$ if dense
// A tile with more marks than a part holds: each subgroup orders its own items, so that all of them stage at once.
//$ with d = "dense_", passes = dense_passes, rounds = dense_rounds, late = late if dense_passes == passes else []
//$ include "lib/stream_emit_rounds.wgsl"
//$ endwith
//$ endif
// Stages what needs not wait for what comes before the tile.
fn stage_first(tile: u32, count: WorkgroupScan) {
  {{ "if (counts_of(count.total) > PART) { dense_stage_first(tile, count); } else" if dense }}
  { stage_{{ passes[0].name }}(tile, 0u, count); }
}

// Writes the tile; stage_first has staged the first pass of part 0.
fn emit_tile(tile: u32, before: Acc, count: WorkgroupScan) {
//$ if splits
  let items = written_of(tile * tile_size(), tile_size(), count.total);
//$ else
  let items = workgroupUniformLoad(&staged_items);
//$ endif
  {{ "if (items > PART) { dense_emit_tile(tile, before, count); return; }" if dense }}
//$ if runs
  run_start = before.y;
//$ endif
  for (var part = 0u; part * PART < items; part++) {
    let length = min(PART, items - part * PART);
    if (part > 0u) {
      workgroupBarrier();
      stage_{{ passes[0].name }}(tile, part, count);
    }
    workgroupBarrier();
    write_part_of_{{ passes[0].name }}(tile, part, length, before, counts_of(count.total));
//$ for pass in passes[1:]
    workgroupBarrier();
    stage_{{ pass.name }}(tile, part, count);
    workgroupBarrier();
    write_part_of_{{ pass.name }}(tile, part, length, before, counts_of(count.total));
//$ endfor
  }
}
