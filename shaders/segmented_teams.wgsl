// Segmented reduction by teams: a few invocations to a workgroup combine each segment, so most results need nobody else's
// items. A segment that is long for its team is combined by the whole workgroup, and one that is long for a workgroup by
// further ones, each of which has a piece of the items: the last of them to finish combines what they published.
// Neighbouring segments belong to different workgroups, but for SIDE of them, because long ones are often neighbours.
// Forward progress: no workgroup waits for another. The last one of a segment knows that all pieces were published, but WGSL
// does not promise that it sees them at once: it recomputes a piece that it has not seen after SPIN_LIMIT polls.
// Sources: as of segmented_reduce.wgsl, on rows of any length; and of reduce.wgsl, on the last one's step.
// Bindings: params, items, offsets, output, and for the pieces control, states, and a counter of each.
// Params: n (items; the GPU may have counted them); first (0); capacity; segments; team (invocations of a segment: a power of
// two); team_items, piece_items (the most that a team, and a workgroup, does alone); pieces; workgroups (these, and of teams).
//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segmented_items.wgsl"
//$ include "lib/masked.wgsl"
//$ include "lib/put_segment.wgsl"
//$ include "lib/team_total.wgsl"
//$ include "lib/state.wgsl"
const VECS: u32 = {{ vecs }}u;  // quads that an invocation loads at once
const SIDE: u32 = 8u;
fn end_of(s: u32) -> u32 { return load_offsets(s + 1u); }
//$ include "lib/segment_behind.wgsl"
// The segments of a group that are long for a team.
var<workgroup> long_segments: array<u32, WORKGROUP_SIZE>;
var<workgroup> long_count: atomic<u32>;
var<workgroup> long_end: u32;
struct Range { first: u32, end: u32 }
fn length_of(x: Range) -> u32 { return max(x.end, x.first) - x.first; }
fn segment(s: u32) -> Range {
  if (s >= params.segments) { return Range(); }
  return Range(min(load_offsets(s), item_count()), min(end_of(s), item_count()));
}
// What one invocation of a team has of a range: whole quads, of which items in the range count. Behind these the last one's items.
fn part_of(x: Range, lane: u32, team: u32) -> Acc {
  let quads = item_count() / 4u;
  let stop = select(0u, min((x.end + 3u) / 4u, quads), x.first < x.end);
//$ if op.commutative
  var sums = quad_of(identity());
  for (var q = x.first / 4u + lane; q < stop; q += VECS * team) {
//$ for k in range(vecs)
    var v_{{ k }} = quad_of(identity());
    if (q + {{ k }}u * team < stop) { v_{{ k }} = item4(4u * (q + {{ k }}u * team)); }
//$ endfor
    if (4u * q >= x.first && 4u * (q + {{ vecs - 1 }}u * team) + 4u <= x.end) {
      sums = combine4(sums, v_{{ k }});  //$ for k in range(vecs)
    } else {
      sums = combine4(sums, masked4(v_{{ k }}, 4u * (q + {{ k }}u * team), x.first, x.end));  //$ for k in range(vecs)
    }
  }
  var sum = join4(sums);
//$ else
  let first = x.first / 4u;
  let each = (max(stop, first) - first + team - 1u) / team;
  var sum = identity();
  for (var q = first + lane * each; q < min(first + lane * each + each, stop); q++) {
    sum = combine(sum, join4(masked4(item4(4u * q), 4u * q, x.first, x.end)));
  }
//$ endif
  if (lane == team - 1u) {
    for (var i = max(x.first, 4u * quads); i < x.end; i++) { sum = combine(sum, item(i)); }
  }
  return sum;
}
// The first invocation gets it.
fn workgroup_total(x: Range) -> Acc { return team_total(part_of(x, me, WORKGROUP_SIZE), WORKGROUP_SIZE); }
//$ if team_is_workgroup
fn do_group(group: u32) {
  let here = segment(group);
  let is_short = length_of(here) <= params.piece_items;
  let total = workgroup_total(Range(here.first, select(here.first, here.end, is_short)));
  if (me == 0u && is_short) { put_segment(group, total); }
}
//$ else
fn do_group(group: u32) {
  let team = me / params.team;
  let side = min(SIDE, WORKGROUP_SIZE / params.team);
  let s = (team / side * (params.workgroups - params.pieces) + group) * side + team % side;
  let here = segment(s);
  let is_short = length_of(here) <= params.team_items;
  let lane = me % params.team;
  if (lane == 0u && !is_short && length_of(here) <= params.piece_items) { long_segments[atomicAdd(&long_count, 1u)] = s; }
  let total = team_total(part_of(Range(here.first, select(here.first, here.end, is_short)), lane, params.team), params.team);
  if (lane == 0u && is_short && s < params.segments) { put_segment(s, total); }
  workgroupBarrier();
  if (local == 0u) { long_end = atomicLoad(&long_count); }
  let end = workgroupUniformLoad(&long_end);
  for (var k = 0u; k < end; k++) {
    let whole = workgroup_total(segment(long_segments[k]));
    if (me == 0u) { put_segment(long_segments[k], whole); }
  }
}
//$ endif
// The one segment that is too long for a workgroup and has items of a piece, and which these are: where it is the first whole
// piece, those before it, too. The segment's pieces are those from `begin` to `end` - 1, none if these are equal.
struct Piece { segment: u32, items: Range, begin: u32, end: u32 }
fn piece_of(number: u32) -> Piece {
  let first = number * params.piece_items;
  let s = segment_behind(first, params.segments);
  let whole = segment(s);
  let begin = (whole.first + params.piece_items - 1u) / params.piece_items;
  if (length_of(whole) <= params.piece_items || begin > number) { return Piece(); }
  let end = (whole.end - 1u) / params.piece_items + 1u;
  return Piece(s, Range(select(first, whole.first, begin == number), min(first + params.piece_items, whole.end)), begin, end);
}
var<workgroup> again_value: Acc;
fn block_total(number: u32) -> Acc {
  let total = workgroup_total(piece_of(number).items);
  if (me == 0u) { again_value = total; }
  return workgroupUniformLoad(&again_value);
}
//$ include "lib/combine_published.wgsl"
var<workgroup> finish: vec2<u32>;  // whether a piece is the last one of its segment to be published, and the epoch
fn do_piece(number: u32) {
  // A workgroup for each piece counts its own dispatches, so all have the same epoch.
  if (is_leader()) {
    epoch = atomicLoad(&{{ control }}[number]);
    atomicStore(&{{ control }}[number], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
  }
  let piece = piece_of(number);
  let total = workgroup_total(piece.items);
  if (is_leader()) {
    state_publish(number, TOTAL, total);
    finish = vec2<u32>(0u, epoch);
    if (piece.begin < piece.end) {
      finish.x = select(0u, 1u, atomicAdd(&arrived[piece.begin], 1u) == piece.end - piece.begin - 1u);
    }
  }
  let end = workgroupUniformLoad(&finish);
  if (end.x == 0u) { return; }
  epoch = end.y;
  let whole = combine_published(piece.begin, piece.end);
  if (is_leader()) {
    put_segment(piece.segment, whole);
    atomicStore(&arrived[piece.begin], 0u);
  }
}
fn run(number: u32, lanes: Lanes) {
  enter(lanes);
  me = sg_id * sg_size + sg_lane;
  if (number < params.pieces) { do_piece(number); } else { do_group(number - params.pieces); }
}
