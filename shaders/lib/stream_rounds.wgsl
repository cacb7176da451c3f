// Through workgroup memory, each subgroup in its own part of it, {{ "%d rows" % round_rows if round_rows > 1 else "one row" }} of the tile in a round: lanes put the items
// there in the order in which they are written, then neighbouring lanes write neighbouring items. Every item is put there once,
// and there is room for all of a round, whatever the marks.
//$ from "lib/stream_quad.wgsl" import guarded_quad
const ROUND_ITEMS: u32 = {{ 4 * round_rows }}u;  // for each lane
var<workgroup> stage: array<u32, {{ stage_words * 4 * round_rows * workgroup_size }}>;

//$ for pass in passes
//$ if pass.reloaded and not (heads and pass.name == marks[0].name)
{{ guarded_quad(pass.field) }}
//$ endif
//$ if pass.words == 2
fn put_{{ pass.name }}(to: u32, item: vec2<u32>) {
  stage[to] = item.x;
  stage[ROUND_ITEMS * WORKGROUP_SIZE + to] = item.y;
}
fn staged_{{ pass.name }}(place: u32) -> vec2<u32> { return vec2<u32>(stage[place], stage[ROUND_ITEMS * WORKGROUP_SIZE + place]); }
//$ else
fn put_{{ pass.name }}(to: u32, item: u32) { stage[to] = item; }
fn staged_{{ pass.name }}(place: u32) -> u32 { return stage[place]; }
//$ endif
//$ endfor
fn stage_begin() -> u32 { return sg_id * sg_size * ROUND_ITEMS; }
//$ if runs
var<private> run_start: u32;  // position of the last head before the round, plus 1
//$ endif

//$ macro round_count(k, rows)
//$ for r in rows
{{ " + " if not loop.first }}({{ row_count(k, r) }})
//$- endfor
//$ endmacro
//$ macro round_counts(rows)
//$ if words == 1 or runs
{{ round_count(0, rows) -}}
//$ else
Acc({{ round_count(0, rows) }}, {{ round_count(1, rows) }})
//$- endif
//$ endmacro
// Loads the items of a round that are not in registers: before the round, while others are written.
//$ macro load_round(pass, rows)
//$ if pass.reloaded
//$ for r in rows
  var items_{{ pass.name }}_{{ r }}: {{ pass.field.quad }};
//$ endfor
  if (tile_is_full(tile)) {
//$ for r in rows
    items_{{ pass.name }}_{{ r }} = load4_{{ pass.name }}(tile_item(tile, {{ r }}u));
//$ endfor
  } else {
//$ for r in rows
    items_{{ pass.name }}_{{ r }} = quad_{{ pass.name }}_guarded(tile_item(tile, {{ r }}u), item_count());
//$ endfor
  }
//$ endif
//$ endmacro
// Puts the items of a round into workgroup memory.
//$ macro stage_round(pass, rows)
  {
//$ for m in marks
    var row_{{ loop.index0 }} = 0u;
//$ endfor
//$ for r in rows
{{ ranks(r) -}}
//$ endfor
//$ if splits
    let in_round = {{ "Acc(row_0, row_1)" if two else "row_0" }};
//$ endif
//$ for r in rows
//$ set items = "held_%s[%d]" % (pass.name, r) if pass.held else "items_%s_%d" % (pass.name, r)
//$ if pass.name == "positions"
    let first_{{ r }} = tile_item(tile, {{ r }}u) - tile * tile_size();
//$ endif
//$ if splits
{{ running_ranks(r) -}}
//$ else
    var to_{{ r }} = stage_begin() + rank_0_{{ r }};
//$ endif
//$ set row = loop.index0
//$ for j in range(4)
//$ set item = "first_%d + %du" % (r, j) if pass.name == "positions" else pass.picks[j] % items
//$ if splits
//$ set one = "(bits_0_%d & %du) != 0u, next_0_%d" % (r, 2 ** j, r)
//$ set other = ", (bits_1_%d & %du) != 0u, next_1_%d" % (r, 2 ** j, r) if two else ""
    put_{{ pass.name }}(stage_begin() + place_of(({{ row }}u * sg_size + sg_lane) * 4u + {{ j }}u, {{ one }}{{ other }}, in_round), {{ item }});
{{ advance(r, j) -}}
//$ else
    if ((bits_0_{{ r }} & {{ 2 ** j }}u) != 0u) {
      put_{{ pass.name }}(to_{{ r }}, {{ item }});
      to_{{ r }}++;
    }
//$ endif
//$ endfor
//$ endfor
  }
//$ endmacro
// Writes the items of a round; `before` has the counts of all items before it, and then of those up to its end. What is read
// for four items is read before any of them is written, so that they wait for memory together.
//$ macro write_round(pass, rows)
  {
    let in_round = {{ round_counts(rows) }};
//$ if splits
    let first = tile * tile_size() + (sg_id * VECS + {{ rows[0] }}u) * sg_size * 4u;
    let length = min({{ 4 * rows | length }}u * sg_size, max(item_count(), first) - first);
//$ else
    let length = in_round;
//$ endif
//$ for row in range(rows | length)
    if (length > {{ 4 * row }}u * sg_size) {
//$ for j in range(4)
      let place_{{ j }} = sg_lane + {{ 4 * row + j }}u * sg_size;
//$ if pass.name == "positions"
      let staged_{{ j }} = select(0u, stage[stage_begin() + place_{{ j }}], place_{{ j }} < length);
      let i_{{ j }} = tile * tile_size() + staged_{{ j }};
//$ for f in late
//$ if f.read_together
      let {{ f.name }}_{{ j }} = load_{{ f.name }}(i_{{ j }});
//$ endif
//$ endfor
//$ if runs
      let head_before_{{ j }} = stage[stage_begin() + max(place_{{ j }}, 1u) - 1u];
//$ endif
//$ else
      let item_{{ j }} = staged_{{ pass.name }}(stage_begin() + place_{{ j }});
//$ endif
//$ endfor
//$ for j in range(4)
      if (place_{{ j }} < length) {
//$ if splits
        let to = place_in_output(place_{{ j }}, first, before, in_round);
//$ else
        let to = {{ "before" if words == 1 else "before.x" }} + place_{{ j }};
//$ endif
//$ if pass.name == "positions"
//$ for f in late
//$ if f.read_together
        if (to < params.room) { store_{{ f.outputs[0] }}(to, {{ f.name }}_{{ j }}); }
//$ else
        write_{{ f.name if splits else f.outputs[0] }}(to, i_{{ j }});
//$ endif
//$ endfor
//$ if runs
        // A run's length is written by the head behind it.
        if (to > 0u && to <= params.room) {
          store_lengths(to - 1u, select(params.first + i_{{ j }} + 1u - run_start, staged_{{ j }} - head_before_{{ j }}, place_{{ j }} > 0u));
        }
//$ endif
//$ else
        write_{{ pass.name if splits else pass.field.outputs[0] }}(to, item_{{ j }});
//$ endif
      }
//$ endfor
    }
//$ endfor
//$ if runs and pass.name == "positions"
    if (length > 0u) { run_start = params.first + tile * tile_size() + stage[stage_begin() + length - 1u] + 1u; }
//$ endif
//$ if words == 1
    before += in_round;
//$ elif runs
    before.x += in_round;
//$ else
    before = combine(before, in_round);
//$ endif
  }
//$ endmacro

// The first thing that a tile stages, which need not wait for `before`.
fn stage_first(tile: u32, count: TileCount) {
{{ load_round(passes[0], rounds[0]) -}}
{{ stage_round(passes[0], rounds[0]) -}}
}

fn emit_tile(tile: u32, before_tile: Acc, count: TileCount) {
//$ if runs
  run_start = select(before_tile.y, params.first + count.before.y, count.before.y > 0u);
  let before_subgroup = Acc(before_tile.x + count.before.x, 0u);
//$ else
  let before_subgroup = combine(before_tile, count.before);
//$ endif
  var before = before_subgroup;
//$ set steps = []
//$ for pass in passes
//$ for rows in rounds
{{ steps.append((pass, rows)) or "" -}}
//$ endfor
//$ endfor
//$ for pass, rows in steps
//$ if not loop.last
{{ load_round(*steps[loop.index]) -}}
//$ endif
  workgroupBarrier();
{{ write_round(pass, rows) -}}
//$ if not loop.last
//$ if rows == rounds[-1]
  before = before_subgroup;
//$ endif
  workgroupBarrier();
{{ stage_round(*steps[loop.index]) -}}
//$ endif
//$ endfor
}
