// Rows of a matrix: TEAM invocations combine a row, or one of several parts of it, into one item of the output.
// Loads are quads of consecutive items that begin at a multiple of 4, whatever the length of a row; of the first and the
// last quad only the items of the row count. Which invocation combines which items depends on the shape alone.
// Forward progress: no workgroup waits for another. Bindings: params, input, output.
// Params: n (items of the input); row_items; parts (of each row); part_quads (quads of a part; the last one has the
// rest); units (rows × parts).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/items.wgsl"
//$ include "lib/masked.wgsl"

override TEAM: u32 = 256u;  // invocations of a unit: a power of two
const VECS: u32 = {{ vecs }}u;    // quads that an invocation loads at once
const UNITS: u32 = {{ units }}u;  // units that a team combines at once
//$ include "lib/team_total.wgsl"

struct Unit {
  first: u32,  // its first item
  end: u32,
  quad: u32,   // the first quad of this invocation
  stop: u32,   // and the end of its quads
}

fn unit_of(number: u32, lane: u32) -> Unit {
  if (number >= params.units) { return Unit(); }
  let row = number / params.parts;
  let first = row * params.row_items;
  let end = first + params.row_items;
  let begin = first / 4u + (number - row * params.parts) * params.part_quads;
  let stop = min(begin + params.part_quads, (end + 3u) / 4u);
//$ if op.commutative
  return Unit(first, end, begin + lane, stop);
//$ else
  let each = (max(stop, begin) - begin + TEAM - 1u) / TEAM;
  let mine = begin + lane * each;
  return Unit(first, end, mine, min(mine + each, stop));
//$ endif
}

//$ set stride = "TEAM" if op.commutative else "1u"
//$ for whole in [true, false]
// {{ "All quads lie within the input." if whole else "The input may end within a quad." }}
fn totals_{{ "whole" if whole else "guarded" }}(first_unit: u32, lane: u32) -> array<Acc, UNITS> {
  var totals: array<Acc, UNITS>;
  let teams = WORKGROUP_SIZE / TEAM;
  let last_quad = max(params.n, 4u) / 4u - 1u;
//$ for u in range(units)
  let unit_{{ u }} = unit_of(first_unit + {{ u }}u * teams, lane);
//$ if op.commutative
  var sums_{{ u }} = quad_of(identity());
//$ else
  var sums_{{ u }} = identity();
//$ endif
//$ if looped
  for (var q = unit_{{ u }}.quad; q < unit_{{ u }}.stop; q += VECS * {{ stride }}) {
//$ else
  let q_{{ u }} = unit_{{ u }}.quad;
//$ endif
//$ set q = "q" if looped else "q_%d" % u
//$ for k in range(vecs)
    let i_{{ u }}_{{ k }} = {{ q }} + {{ k }}u * {{ stride }};
//$ if whole
    let v_{{ u }}_{{ k }} = item4(min(i_{{ u }}_{{ k }}, last_quad) * 4u);
//$ endif
//$ endfor
//$ if looped
//$ set us = [u]
//$ else
//$ set us = range(units) if u == units - 1 else []
//$ endif
//$ for w in us
    let end_{{ w }} = min(unit_{{ w }}.end, 4u * unit_{{ w }}.stop);
//$ if whole
    if (4u * i_{{ w }}_0 >= unit_{{ w }}.first && 4u * i_{{ w }}_{{ vecs - 1 }} + 4u <= end_{{ w }}) {
//$ for k in range(vecs)
      sums_{{ w }} = {{ "combine4(sums_%d, v_%d_%d)" % (w, w, k) if op.commutative else "combine(sums_%d, join4(v_%d_%d))" % (w, w, k) }};
//$ endfor
    } else {
//$ for k in range(vecs)
//$ set v = "masked4(v_%d_%d, 4u * i_%d_%d, unit_%d.first, end_%d)" % (w, k, w, k, w, w)
      sums_{{ w }} = {{ "combine4(sums_%d, %s)" % (w, v) if op.commutative else "combine(sums_%d, join4(%s))" % (w, v) }};
//$ endfor
    }
//$ else
//$ for k in range(vecs)
//$ set v = "guarded4(4u * i_%d_%d, unit_%d.first, end_%d)" % (w, k, w, w)
    sums_{{ w }} = {{ "combine4(sums_%d, %s)" % (w, v) if op.commutative else "combine(sums_%d, join4(%s))" % (w, v) }};
//$ endfor
//$ endif
//$ endfor
//$ if looped
  }
//$ endif
//$ endfor
  totals[{{ u }}] = {{ "join4(sums_%d)" % u if op.commutative else "sums_%d" % u }};  //$ for u in range(units)
  return totals;
}

//$ endfor
fn run(number: u32, lanes: Lanes) {
  let teams = WORKGROUP_SIZE / TEAM;
  let first_of_workgroup = number * teams * UNITS;
  if (first_of_workgroup >= params.units) { return; }
  enter(lanes);
  me = sg_id * sg_size + sg_lane;
  let first_unit = first_of_workgroup + me / TEAM;
  let lane = me % TEAM;
  let last_unit = min(first_of_workgroup + teams * UNITS, params.units) - 1u;
  let end = (last_unit / params.parts + 1u) * params.row_items;
  var totals: array<Acc, UNITS>;
  if ((end + 3u) / 4u * 4u <= params.n) {
    totals = totals_whole(first_unit, lane);
  } else {
    totals = totals_guarded(first_unit, lane);
  }
//$ for u in range(units)
  let total_{{ u }} = team_total(totals[{{ u }}], TEAM);
  if (lane == 0u && first_unit + {{ u }}u * teams < params.units) { put(first_unit + {{ u }}u * teams, total_{{ u }}); }
//$ endfor
}
