// Stable ranking of a tile of keys by one digit, for subgroups of any size and for none.
// Row r of a tile is held by 32 neighbouring lanes: ITEMS rounds of 32 consecutive keys. Every row has a counter per
// bin in `stage`, which later holds the keys.
// Source: the ranking by matching lanes is that of Adinets and Merrill, "Onesweep" (2022). WGSL cannot match lanes, so
// eight ballots replace it.
//$ if partial is defined
// A tile may have fewer rounds, `rounds`: its rows are then shorter.
//$ endif
const ITEMS: u32 = {{ items }}u;
const ROWS: u32 = {{ rows }}u;
const ROW_ITEMS: u32 = 32u * ITEMS;
const TILE: u32 = ROWS * ROW_ITEMS;
// Counters of the rows, then keys{{ "; digits, which become ranks, lie behind the counters" if subgroups == "none" }}.
var<workgroup> stage: array<atomic<u32>, {{ stage_words }}>;
//$ if takes_turns
var<workgroup> rank_steps: u32;
//$ endif

var<private> lane: u32;  // in the workgroup, in the order of the subgroups
var<private> row: u32;
//$ for items_of in held
var<private> {{ items_of.name }}: array<{{ "u32" if items_of.words == 1 else "vec%d<u32>" % items_of.words }}, ITEMS>;
//$ endfor
// Ranks in the tile, two per word: registers decide how many workgroups fit on a multiprocessor.
var<private> ranks: array<u32, (ITEMS + 1u) / 2u>;

fn rank_of(k: u32) -> u32 { return (ranks[k >> 1u] >> (16u * (k & 1u))) & 0xffffu; }
fn set_rank(k: u32, rank: u32) {
  if ((k & 1u) == 0u) { ranks[k >> 1u] = rank; } else { ranks[k >> 1u] |= rank << 16u; }
}
fn add_to_rank(k: u32, more: u32) { ranks[k >> 1u] += more << (16u * (k & 1u)); }

//$ if partial is defined
var<private> row_items: u32;  // 32 × rounds
//$ set Ranked, row_items, rounds, passed = "Ranked", "row_items", "rounds: u32", "rounds"
//$ else
//$ set Ranked, row_items, rounds, passed = "Key", "ROW_ITEMS", "", ""
fn ranked_digit(code: Key) -> u32 { return key_digit(key_fixed(code)); }

//$ endif
// Position in the tile of this invocation's key in round k.
fn tile_position(k: u32) -> u32 { return row * {{ row_items }} + k * 32u + (lane & 31u); }

fn rank_enter(lanes: Lanes) {
  enter(lanes);
  lane = sg_id * sg_size + sg_lane;
  row = lane >> 5u;
//$ if takes_turns
  if (local == 0u) { rank_steps = max(1u, 32u / sg_size); }
//$ endif
}

//$ include "lib/sort_scan.wgsl"

// Ranks the tile's keys in their rows, and returns to invocation b < BINS the number of keys in bin b.
fn tile_count({{ rounds }}) -> u32 {
  atomicStore(&stage[lane + {{ i }}u * WORKGROUP_SIZE], 0u);  //$ for i in range(8)
  workgroupBarrier();
  rank_rows({{ passed }});
  var total = 0u;
  if (lane < BINS) {
    total += atomicLoad(&stage[{{ constants.BINS * r }}u + lane]);  //$ for r in range(rows)
  }
  return total;
}

// Turns ranks in a row into ranks in the tile. `first` is the rank of the first key of this invocation's bin.
fn tile_rank(first: u32) {
  if (lane < BINS) {
    // Read a second time: kept in registers, these counts would cost the second workgroup on a multiprocessor.
    var next = first;
//$ for r in range(rows)
    let count_{{ r }} = atomicLoad(&stage[{{ constants.BINS * r }}u + lane]);
    atomicStore(&stage[{{ constants.BINS * r }}u + lane], next);
    next += count_{{ r }};
//$ endfor
  }
  workgroupBarrier();
//$ for k in range(items)
//$ if partial is defined
  if ({{ 32 * k }}u < row_items) { add_to_rank({{ k }}u, atomicLoad(&stage[row * BINS + ranked_digit(keys[{{ k }}])])); }
//$ else
  add_to_rank({{ k }}u, atomicLoad(&stage[row * BINS + ranked_digit(keys[{{ k }}])]));
//$ endif
//$ endfor
  workgroupBarrier();
}

//$ if subgroups == "none"
// One invocation per row ranks its keys, one by one.
fn rank_rows({{ rounds }}) {
  let digits = ROWS * BINS;
//$ for k in range(items)
//$ if partial is defined
  if ({{ k }}u < rounds) { atomicStore(&stage[digits + tile_position({{ k }}u)], ranked_digit(keys[{{ k }}])); }
//$ else
  atomicStore(&stage[digits + tile_position({{ k }}u)], ranked_digit(keys[{{ k }}]));
//$ endif
//$ endfor
  workgroupBarrier();
  if (lane < ROWS) {
    for (var i = digits + lane * {{ row_items }}; i < digits + (lane + 1u) * {{ row_items }}; i++) {
      let counter = lane * BINS + atomicLoad(&stage[i]);
      let rank = atomicLoad(&stage[counter]);
      atomicStore(&stage[counter], rank + 1u);
      atomicStore(&stage[i], rank);
    }
  }
  workgroupBarrier();
//$ for k in range(items)
//$ if partial is defined
  if ({{ k }}u < rounds) { set_rank({{ k }}u, atomicLoad(&stage[digits + tile_position({{ k }}u)])); }
//$ else
  set_rank({{ k }}u, atomicLoad(&stage[digits + tile_position({{ k }}u)]));
//$ endif
//$ endfor
  workgroupBarrier();
}
//$ else
// The lanes of the row and of the subgroup with the same digit.
fn matching_lanes(digit: u32, all: u32) -> u32 {
  var lanes = all;
  var votes = 0u;
//$ if subgroups == "emulated"
  // A loop, not written out: an emulated vote is long, and its text would be repeated for every bit of every round.
  for (var bit = 1u; bit < BINS; bit <<= 1u) {
    votes = sg_ballot((digit & bit) != 0u);
    lanes &= select(~votes, votes, (digit & bit) != 0u);
  }
//$ else
//$ for bit in range(8)
  votes = sg_ballot((digit & {{ 2 ** bit }}u) != 0u);
  lanes &= select(~votes, votes, (digit & {{ 2 ** bit }}u) != 0u);
//$ endfor
//$ endif
  return lanes;
}

fn rank_lane() -> u32 { return sg_lane & 31u; }
fn leader_of(lanes: u32) -> u32 { return (sg_lane & ~31u) + countTrailingZeros(lanes); }

// A row that is (part of) one subgroup, whose lanes run in step. The shuffle depends on the addition's result, so the
// additions of a row keep the order of its rounds.
fn rank_in_step(key: {{ Ranked }}, all: u32) -> u32 {
  let digit = ranked_digit(key);
  let lanes = matching_lanes(digit, all);
  let before = countOneBits(lanes & ((1u << rank_lane()) - 1u));
  var first = 0u;
  if (before == 0u) {
    // No other lane accesses this counter meanwhile; a load and a store are faster than an atomic addition.
    first = atomicLoad(&stage[row * BINS + digit]);
    atomicStore(&stage[row * BINS + digit], first + countOneBits(lanes));
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
}

//$ if takes_turns
// A row of several subgroups, which rank one after the other.
fn rank_in_turn(key: {{ Ranked }}, all: u32, steps: u32) -> u32 {
  let digit = ranked_digit(key);
  let lanes = matching_lanes(digit, all);
  let before = countOneBits(lanes & ((1u << rank_lane()) - 1u));
  let turn = (lane & 31u) / sg_size;
  var first = 0u;
  for (var step = 0u; step < steps; step++) {
    if (step == turn && before == 0u) { first = atomicAdd(&stage[row * BINS + digit], countOneBits(lanes)); }
    workgroupBarrier();
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
}
//$ endif

fn rank_rows({{ rounds }}) {
  let all = select((1u << (sg_size & 31u)) - 1u, 0xffffffffu, sg_size >= 32u);
//$ if takes_turns
  let steps = workgroupUniformLoad(&rank_steps);
//$ endif
//$ if subgroups == "emulated"
  for (var k = 0u; k < {{ "rounds" if partial is defined else "ITEMS" }}; k++) { set_rank(k, rank_in_turn(keys[k], all, steps)); }
//$ elif not takes_turns
//$ for k in range(items)
//$ if partial is defined
  if ({{ k }}u < rounds) { set_rank({{ k }}u, rank_in_step(keys[{{ k }}], all)); }
//$ else
  set_rank({{ k }}u, rank_in_step(keys[{{ k }}], all));
//$ endif
//$ endfor
//$ else
  if (steps == 1u) {
//$ for k in range(items)
//$ if partial is defined
    if ({{ k }}u < rounds) { set_rank({{ k }}u, rank_in_step(keys[{{ k }}], all)); }
//$ else
    set_rank({{ k }}u, rank_in_step(keys[{{ k }}], all));
//$ endif
//$ endfor
  } else {
//$ for k in range(items)
//$ if partial is defined
    if ({{ k }}u < rounds) { set_rank({{ k }}u, rank_in_turn(keys[{{ k }}], all, steps)); }
//$ else
    set_rank({{ k }}u, rank_in_turn(keys[{{ k }}], all, steps));
//$ endif
//$ endfor
  }
//$ endif
  workgroupBarrier();
}
//$ endif

//$ include "lib/sort_stage.wgsl"
