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
fn do_group(group: u32) {
  // All are powers of two, and shifts are faster than divisions.
  let of_team = countTrailingZeros(params.team);
  let of_side = min(countTrailingZeros(SIDE), countTrailingZeros(WORKGROUP_SIZE) - of_team);
  let number = me >> of_team;
  let side = (number >> of_side) * (params.workgroups - params.pieces) + group;
  var s = (side << of_side) + (number & ((1u << of_side) - 1u));
  if (local == 0u) { atomicStore(&long_count, 0u); }
  // First each team its segment, then the workgroup one after the other of those that are long for a team.
  for (var k = 0u; ; k++) {
    let here = segment(s);
    let team = select(WORKGROUP_SIZE, params.team, k == 0u);
    let is_first = (me & (team - 1u)) == 0u;
    let is_short = length_of(here) <= select(params.piece_items, params.team_items, k == 0u);
    let total = team_total(part_of(Range(here.first, select(here.first, here.end, is_short)), me & (team - 1u), team), team);
    if (is_first && is_short && s < params.segments) { put_segment(s, total); }
    if (params.team_items == params.piece_items) { return; }
    workgroupBarrier();
    if (is_first && !is_short && length_of(here) <= params.piece_items) { long_segments[atomicAdd(&long_count, 1u)] = s; }
    workgroupBarrier();
    if (local == 0u) { long_end = atomicLoad(&long_count); }
    if (k == workgroupUniformLoad(&long_end)) { return; }
    s = long_segments[k];
  }
}
// The one segment that is too long for a workgroup and has items of a piece, and which these are: where it is the first whole
// piece, those before it, too. The segment's pieces are those from `begin` to `end` - 1, none if these are equal.
struct Piece { segment: u32, items: Range, begin: u32, end: u32 }
fn piece_of(number: u32) -> Piece {
  let first = number * params.piece_items;
  let s = segment_behind(first, params.segments);
  let whole = segment(s);
  let begin = (whole.first + params.piece_items - 1u) / params.piece_items;
  if (length_of(whole) <= params.piece_items || begin > number) { return Piece(); }
  let items = Range(select(first, whole.first, begin == number), min(first + params.piece_items, whole.end));
  return Piece(s, items, begin, (whole.end - 1u) / params.piece_items + 1u);
}
var<workgroup> again_value: Acc;
fn block_total(number: u32) -> Acc {
  let total = workgroup_total(piece_of(number).items);
  if (me == 0u) { again_value = total; }
  return workgroupUniformLoad(&again_value);
}
//$ include "lib/combine_published.wgsl"
var<workgroup> finish: vec2<u32>;  // whether this workgroup goes on, and the epoch
fn do_piece(number: u32) {
  // A piece's workgroup counts its dispatches, so all have the same epoch; and publishes in each, if only that it has nothing.
  if (is_leader()) { epoch = atomicLoad(&{{ control }}[number]); }
  let piece = piece_of(number);
  if (is_leader()) {
    atomicStore(&{{ control }}[number], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
    finish = vec2<u32>(piece.end - piece.begin, epoch);
    if (finish.x == 0u) { state_publish(number, EMPTY, identity()); }
  }
  let start = workgroupUniformLoad(&finish);
  if (start.x == 0u) { return; }
  epoch = start.y;
  let total = workgroup_total(piece.items);
  if (is_leader()) {
    state_publish(number, TOTAL, total);
    finish.x = select(0u, 1u, atomicAdd(&arrived[piece.begin], 1u) == start.x - 1u);
  }
  if (workgroupUniformLoad(&finish).x == 0u) { return; }
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
