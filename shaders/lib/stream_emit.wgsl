// Writes what the items of a ranked tile give: items with a mark{{ ", then those without," if splits }} in their order, to as many outputs
// as there are {{ "kinds of items" if splits else "fields" }}. `before` has the counts of all earlier tiles, those of earlier windows included.
//$ set width = 32 // pack
//$ set mask = "0xffu" if pack == 4 else "0xffffu"
//$ set two = marks | length > 1

//$ for f in moved
//$ for output in f.outputs
// `at` is the place in the output{{ ", `i` the item" if f.source in ("index", "late") }}; what does not fit is only counted.
//$ if f.source in ("held", "row")
fn write_{{ output }}(at: u32, item: {{ f.item }}) {
  if (at < params.room) { store_{{ output }}(at, item); }
}
//$ else
fn write_{{ output }}(at: u32, i: u32) {
  if (at >= params.room) { return; }
//$ if f.source == "index"
  store_{{ output }}(at, params.first + i);
//$ elif f.elements == 1
  store_{{ output }}(at, load_{{ f.name }}(i));
//$ else
//$ for e in range(f.elements)
  store_{{ output }}({{ f.elements }}u * at + {{ e }}u, load_{{ f.name }}({{ f.elements }}u * i + {{ e }}u));
//$ endfor
//$ endif
}
//$ endif
//$ endfor
//$ endfor

//$ if splits
// Where item i of {{ "a round" if rounds else "the tile" }} goes among its items, from the ranks that it has, or would have, among those with a mark.
fn place_of(i: u32, marked: bool, rank: u32{{ ", also_marked: bool, other_rank: u32" if two }}, total: Acc) -> u32 {
//$ if two
  return select(select(total.x + total.y + i - rank - other_rank, total.x + other_rank, also_marked), rank, marked);
//$ else
  return select(total + i - rank, rank, marked);
//$ endif
}
// Where a place among the items from `first` on lies: the output, and the place in it.
struct Place { output: u32, at: u32 }
fn place_in_output(place: u32, first: u32, before: Acc, total: Acc) -> Place {
//$ if two
  if (place < total.x) { return Place(0u, before.x + place); }
  if (place < total.x + total.y) { return Place(1u, before.y + place - total.x); }
  return Place(2u, params.first + first - before.x - before.y + place - total.x - total.y);
//$ else
  if (place < total) { return Place(0u, before + place); }
  return Place(1u, params.first + first - before + place - total);
//$ endif
}
//$ for f in moved
fn write_{{ f.name }}(to: Place, {{ "item: " ~ f.item if f.source in ("held", "row") else "i: u32" }}) {
//$ for output in f.outputs
  {{ "else " if not loop.first }}{{ "if (to.output == %du) " % loop.index0 if not loop.last }}{ write_{{ output }}(to.at, {{ "item" if f.source in ("held", "row") else "i" }}); }
//$ endfor
}
//$ endfor
//$ endif

//$ macro row_count(k, r)
{{ "(row_counts_%d[%d] >> %du) & %s" % (k, r // pack, (r % pack) * width, mask) -}}
//$ endmacro
//$ macro ranks(r)
//$ for m in marks
//$ set k, g, shift = loop.index0, r // pack, (r % pack) * width
  let bits_{{ k }}_{{ r }} = (marks_{{ k }}[{{ r // 8 }}] >> {{ 4 * (r % 8) }}u) & 15u;
  let rank_{{ k }}_{{ r }} = row_{{ k }} + ((ranks_{{ k }}[{{ g }}] >> {{ shift }}u) & {{ mask }});
  row_{{ k }} += {{ row_count(k, r) }};
//$ endfor
//$ endmacro
// Ranks of the next item of a row: running sums, since population counts are slow (15 % of a select on an H200).
//$ macro running_ranks(r)
//$ for m in marks
  var next_{{ loop.index0 }}_{{ r }} = rank_{{ loop.index0 }}_{{ r }};
//$ endfor
//$ endmacro
//$ macro advance(r, j)
//$ if j < 3
//$ for m in marks
//$ set k = loop.index0
  next_{{ k }}_{{ r }} += (bits_{{ k }}_{{ r }} >> {{ j }}u) & 1u;
//$ endfor
//$ endif
//$ endmacro
//$ macro first_ranks()
//$ for m in marks
  var row_{{ loop.index0 }} = count.before{{ "" if words == 1 else "." ~ "xy"[loop.index0] }};  // the rank of a row's first mark
//$ endfor
//$ endmacro
//$ if dense
// Writes the number of marks up to each item, less 1: the number of its run. It goes to the place that `places` says.
fn emit_tile(tile: u32, before: Acc, count: TileCount) {
  let n = item_count();
{{ first_ranks() -}}
//$ for r in range(vecs)
  {
{{ ranks(r) -}}
  let i = tile_item(tile, {{ r }}u);
{{ running_ranks(r) -}}
//$ for j in range(4)
  if (i + {{ j }}u < n) { store_output(load_places(i + {{ j }}u), before + next_0_{{ r }} + ((bits_0_{{ r }} >> {{ j }}u) & 1u) - 1u); }
{{ advance(r, j) -}}
//$ endfor
  }
//$ endfor
}
//$ elif rounds
//$ include "lib/stream_rounds.wgsl"
//$ elif staged
// Through workgroup memory in the order in which they are written, PART items at a time: so neighbouring invocations write
// neighbouring items.
const PART: u32 = {{ part_items }}u;
var<workgroup> stage: array<u32, {{ part_items * stage_words }}>;

//$ for pass in passes
//$ set item = "vec2<u32>" if pass.words == 2 else "u32"
fn put_{{ pass.name }}(to: u32, item: {{ item }}) {
  if (to >= PART) { return; }  // it belongs to another part
//$ if pass.words == 2
  stage[to] = item.x;
  stage[PART + to] = item.y;
//$ else
  stage[to] = item;
//$ endif
}
fn staged_{{ pass.name }}(i: u32) -> {{ item }} { return {{ "vec2<u32>(stage[i], stage[PART + i])" if pass.words == 2 else "stage[i]" }}; }

fn stage_{{ pass.name }}(tile: u32, part: u32, count: TileCount) {
{{ first_ranks() -}}
//$ for r in range(vecs)
{{ ranks(r) -}}
//$ if splits
  let first_{{ r }} = tile_item(tile, {{ r }}u) - tile * tile_size();
{{ running_ranks(r) -}}
//$ for j in range(4)
//$ set value = pass.picks[j] % ("held_%s[%d]" % (pass.name, r)) if pass.held else "first_%d + %du" % (r, j)
//$ set one = "(bits_0_%d & %du) != 0u, next_0_%d" % (r, 2 ** j, r)
//$ set other = ", (bits_1_%d & %du) != 0u, next_1_%d" % (r, 2 ** j, r) if two else ""
  put_{{ pass.name }}(place_of(first_{{ r }} + {{ j }}u, {{ one }}{{ other }}, count.total) - part * PART, {{ value }});
{{ advance(r, j) -}}
//$ endfor
//$ else
  // A subgroup skips rows that belong to other parts.
  if (row_0 > part * PART && rank_0_{{ r }} < (part + 1u) * PART) {
//$ if not pass.held
    let first = tile_item(tile, {{ r }}u) - tile * tile_size();
//$ endif
    var to = rank_0_{{ r }} - part * PART;
//$ for j in range(4)
//$ set value = pass.picks[j] % ("held_%s[%d]" % (pass.name, r)) if pass.held else "first + %du" % j
    if ((bits_0_{{ r }} & {{ 2 ** j }}u) != 0u) {
      put_{{ pass.name }}(to, {{ value }});
      to++;
    }
//$ endfor
  }
//$ endif
//$ endfor
}
//$ endfor

//$ for pass in passes
//$ set written = [pass.field] if pass.held else late
// Writes a staged part: `length` items from place `part` × PART of the tile on.
fn write_{{ pass.name }}_part(tile: u32, part: u32, length: u32, before: Acc, total: Acc) {
  for (var j = local; j < length; j += WORKGROUP_SIZE) {
//$ if splits
    let to = place_in_output(part * PART + j, tile * tile_size(), before, total);
//$ else
    let to = {{ "before" if words == 1 else "before.x" }} + part * PART + j;
//$ endif
//$ if pass.held
    write_{{ pass.field.name if splits else pass.field.outputs[0] }}(to, staged_{{ pass.name }}(j));
//$ else
    let i = tile * tile_size() + stage[j];
//$ for f in late
    write_{{ f.name if splits else f.outputs[0] }}(to, i);
//$ endfor
//$ if runs
    // A run's length is written by the head behind it.
    if (to > 0u && to <= params.room) {
      if (j > 0u) { store_lengths(to - 1u, stage[j] - stage[j - 1u]); } else { store_lengths(to - 1u, params.first + i + 1u - run_start); }
    }
//$ endif
//$ endif
  }
//$ if runs and not pass.held
  // The run that is open at the end of the part.
  if (length > 0u) { run_start = params.first + tile * tile_size() + stage[length - 1u] + 1u; }
//$ endif
}
//$ endfor
//$ if runs
var<private> run_start: u32;  // position of the last head before the part, plus 1
//$ endif

//$ if not splits
var<workgroup> staged_items: u32;
//$ endif
// The first thing that a tile stages, which need not wait for `before`.
fn stage_first(tile: u32, count: TileCount) { stage_{{ passes[0].name }}(tile, 0u, count); }

fn emit_tile(tile: u32, before: Acc, count: TileCount) {
//$ if splits
  let items = min(tile_size(), item_count() - tile * tile_size());
//$ else
  let items = workgroupUniformLoad(&staged_items);
//$ endif
//$ if runs
  run_start = before.y;
//$ endif
  for (var part = 0u; part * PART < items; part++) {
    let length = min(PART, items - part * PART);
//$ for pass in passes
//$ if loop.first
    if (part > 0u) {
      workgroupBarrier();
      stage_{{ pass.name }}(tile, part, count);
    }
//$ else
    workgroupBarrier();
    stage_{{ pass.name }}(tile, part, count);
//$ endif
    workgroupBarrier();
    write_{{ pass.name }}_part(tile, part, length, before, count.total);
//$ endfor
  }
}
//$ elif not moved
fn emit_tile(tile: u32, before: Acc, count: TileCount) {}
//$ else
// From registers to the outputs: the items of a row lie close together.
fn emit_tile(tile: u32, before: Acc, count: TileCount) {
  let n = item_count();
{{ first_ranks() -}}
//$ for r in range(vecs)
  {
{{ ranks(r) -}}
  let i = tile_item(tile, {{ r }}u);
{{ running_ranks(r) -}}
//$ for j in range(4)
//$ if splits
//$ set one = "(bits_0_%d & %du) != 0u, next_0_%d" % (r, 2 ** j, r)
//$ set other = ", (bits_1_%d & %du) != 0u, next_1_%d" % (r, 2 ** j, r) if two else ""
  if (i + {{ j }}u < n) {
    let to_{{ j }} = place_in_output(place_of(i + {{ j }}u - tile * tile_size(), {{ one }}{{ other }}, count.total), tile * tile_size(), before, count.total);
//$ else
  if ((bits_0_{{ r }} & {{ 2 ** j }}u) != 0u) {
    let to_{{ j }} = before + next_0_{{ r }};
//$ endif
//$ for f in moved
    write_{{ f.name if splits else f.outputs[0] }}(to_{{ j }}, {{ f.picks[j] % ("held_%s[%d]" % (f.name, r)) if f.source == "held" else "i + %du" % j }});
//$ endfor
  }
{{ advance(r, j) -}}
//$ endfor
  }
//$ endfor
}
//$ endif
