// Subgroup building blocks in three forms with one meaning:
//   native    the hardware's subgroups, of any size that divides the workgroup
//   none      no subgroups: every invocation is a subgroup of one (lib/workgroup.wgsl does the work with barriers)
//   emulated  subgroups of {{ emulated_size }} in workgroup memory, to test sizes that no available adapter has
// All calls must be in control flow that is uniform over the workgroup, because the emulation has barriers. From
// `look_back_enter` to its end only the look_back_ functions may be called; only subgroup 0 needs their results.
struct Lanes {
  @builtin(local_invocation_index) local: u32,
//$ if subgroups == "native"
  @builtin(subgroup_size) size: u32,
  @builtin(subgroup_invocation_id) lane: u32,
  @builtin(subgroup_id) id: u32,
  @builtin(num_subgroups) count: u32,
//$ endif
}
var<private> local: u32;
//$ if subgroups == "native"
var<private> sg_size: u32;
//$ else
const sg_size: u32 = {{ 1 if subgroups == "none" else emulated_size }}u;
//$ endif
var<private> sg_lane: u32;
var<private> sg_id: u32;
var<private> sg_count: u32;

struct SubgroupScan { exclusive: Acc, inclusive: Acc }

// The first lane of the subgroup that looks back. It need not be invocation 0.
fn is_leader() -> bool { return sg_id == 0u && sg_lane == 0u; }

//$ if subgroups == "native"
fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_size = lanes.size;
  sg_lane = lanes.lane;
  sg_id = lanes.id;
  sg_count = lanes.count;
}
fn sg_last(x: Acc) -> Acc { return subgroupShuffle(x, sg_size - 1u); }
//$ if op.subgroup_exclusive_scan
fn sg_scan(x: Acc) -> SubgroupScan {
  let exclusive = {{ op.subgroup_exclusive_scan }}(x);
  return SubgroupScan(exclusive, combine(exclusive, x));
}
//$ else
fn sg_scan(x: Acc) -> SubgroupScan {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    if (sg_lane >= d) { y = combine(left, y); }
  }
  let left = subgroupShuffleUp(y, 1u);
  return SubgroupScan(select(left, identity(), sg_lane == 0u), y);
}
//$ endif
// Keeps the order of the lanes where the operator needs it.
fn sg_reduce(x: Acc) -> Acc {
//$ if op.subgroup_reduce
  return {{ op.subgroup_reduce }}(x);
//$ else
  return sg_last(sg_scan(x).inclusive);
//$ endif
}
fn look_back_enter() -> bool { return sg_id == 0u; }
fn look_back_max(x: u32) -> u32 { return subgroupMax(x); }
fn look_back_reduce(x: Acc) -> Acc { return sg_reduce(x); }
//$ elif subgroups == "none"
fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_lane = 0u;
  sg_id = lanes.local;
  sg_count = WORKGROUP_SIZE;
}
fn sg_last(x: Acc) -> Acc { return x; }
fn sg_scan(x: Acc) -> SubgroupScan { return SubgroupScan(identity(), x); }
fn sg_reduce(x: Acc) -> Acc { return x; }
fn look_back_enter() -> bool { return local == 0u; }
fn look_back_max(x: u32) -> u32 { return x; }
fn look_back_reduce(x: Acc) -> Acc { return x; }
//$ else
var<workgroup> emulated: array<Acc, WORKGROUP_SIZE>;
var<workgroup> emulated_words: array<u32, WORKGROUP_SIZE>;
fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_lane = lanes.local % sg_size;
  sg_id = lanes.local / sg_size;
  sg_count = WORKGROUP_SIZE / sg_size;
}
fn emulated_share(x: Acc) {
  workgroupBarrier();
  emulated[local] = x;
  workgroupBarrier();
}
fn sg_last(x: Acc) -> Acc {
  emulated_share(x);
  return emulated[local - sg_lane + sg_size - 1u];
}
// In log₂ steps, not lane by lane: lavapipe ends all loops of an invocation after 65,535 iterations in total.
fn sg_scan(x: Acc) -> SubgroupScan {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share(y);
    if (sg_lane >= d) { y = combine(emulated[local - d], y); }
  }
  emulated_share(y);
  var exclusive = identity();
  if (sg_lane > 0u) { exclusive = emulated[local - 1u]; }
  return SubgroupScan(exclusive, y);
}
fn sg_reduce(x: Acc) -> Acc { return sg_last(sg_scan(x).inclusive); }
// All invocations take part and get the results of subgroup 0, so loops stay uniform.
fn look_back_enter() -> bool { return true; }
fn look_back_max(x: u32) -> u32 {
  workgroupBarrier();
  emulated_words[local] = x;
  for (var d = sg_size / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if (local < d) { emulated_words[local] = max(emulated_words[local], emulated_words[local + d]); }
  }
  return workgroupUniformLoad(&emulated_words[0]);
}
fn look_back_reduce(x: Acc) -> Acc {
  let last = sg_last(sg_scan(x).inclusive);
  emulated_share(last);
  return workgroupUniformLoad(&emulated[0]);
}
//$ endif

//$ if ballots is defined
// Votes of the 32 lanes around this lane (of all lanes in a smaller subgroup), and the value of another lane.
//$ if subgroups == "native"
fn sg_ballot(vote: bool) -> u32 {
  let votes = subgroupBallot(vote);
  // Drivers know the size when they compile, so this is free where it is 32.
  if (sg_size > 32u) { return votes[sg_lane >> 5u]; }
  return votes.x;
}
fn sg_shuffle(x: u32, from_lane: u32) -> u32 { return subgroupShuffle(x, from_lane); }
//$ elif subgroups == "emulated"
fn sg_shuffle(x: u32, from_lane: u32) -> u32 {
  workgroupBarrier();
  emulated_words[local] = x;
  workgroupBarrier();
  return emulated_words[local - sg_lane + from_lane];
}
fn sg_ballot(vote: bool) -> u32 {
  workgroupBarrier();
  emulated_words[local] = select(0u, 1u, vote);
  workgroupBarrier();
  var votes = 0u;
  for (var i = 0u; i < min(sg_size, 32u); i++) { votes |= emulated_words[local - (sg_lane & 31u) + i] << i; }
  return votes;
}
//$ endif
//$ endif
