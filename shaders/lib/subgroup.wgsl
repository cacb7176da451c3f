// Subgroup building blocks in three forms with one meaning:
//   native    the hardware's subgroups, of any size that divides the workgroup
//   none      no subgroups: every invocation is a subgroup of one (lib/workgroup.wgsl does the work with barriers)
//   emulated  subgroups of {{ emulated_size }} in workgroup memory, to test sizes that no available adapter has
// All calls must be in control flow that is uniform over the workgroup, because the emulation has barriers. From
// `look_back_enter` to its end only the look_back_ functions may be called; only subgroup 0 needs their results.
//$ set Chain = chain.type if chain is defined else "Acc"
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

struct SubgroupScan{{ kind.suffix }} { exclusive: {{ kind.type }}, inclusive: {{ kind.type }} }  //$ for kind in kinds

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
//$ for kind in kinds
//$ set T, of, e = kind.type, kind.suffix, kind.identity
fn sg_last{{ of }}(x: {{ T }}) -> {{ T }} { return subgroupShuffle(x, sg_size - 1u); }
//$ if kind.get("subgroup_exclusive_scan")
fn sg_scan{{ of }}(x: {{ T }}) -> SubgroupScan{{ of }} {
  let exclusive = {{ kind.subgroup_exclusive_scan }}(x);
  return SubgroupScan{{ of }}(exclusive, {{ kind.combine }}(exclusive, x));
}
//$ else
fn sg_scan{{ of }}(x: {{ T }}) -> SubgroupScan{{ of }} {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    if (sg_lane >= d) { y = {{ kind.combine }}(left, y); }
  }
  let left = subgroupShuffleUp(y, 1u);
  return SubgroupScan{{ of }}(select(left, {{ e }}, sg_lane == 0u), y);
}
//$ endif
// Keeps the order of the lanes where the operator needs it.
fn sg_reduce{{ of }}(x: {{ T }}) -> {{ T }} {
//$ if kind.subgroup_reduce
  return {{ kind.subgroup_reduce }}(x);
//$ elif kind.butterfly is defined
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) { y = {{ kind.combine }}(y, subgroupShuffleXor(y, d)); }
  return y;
//$ else
  return sg_last{{ of }}(sg_scan{{ of }}(x).inclusive);
//$ endif
}
//$ endfor
fn look_back_enter() -> bool { return sg_id == 0u; }
// The last of the bits, counted from 1; of 32 and of all lanes. Without branches, which are between subgroup operations here;
// drivers know the words that are always 0.
fn last_bit(bits: u32) -> u32 { return 32u - countLeadingZeros(bits); }
fn last_lane(votes: vec4<u32>) -> u32 {
  var last = last_bit(votes.x);
  last = select(last, 32u + last_bit(votes.y), votes.y != 0u);
  last = select(last, 64u + last_bit(votes.z), votes.z != 0u);
  return select(last, 96u + last_bit(votes.w), votes.w != 0u);
}
// The last lane with a vote, counted from 1; 0 if there is none.
fn look_back_last(vote: bool) -> u32 { return last_lane(subgroupBallot(vote)); }
fn look_back_reduce(x: {{ Chain }}) -> {{ Chain }} { return sg_reduce{{ kinds[-1].suffix }}(x); }
//$ elif subgroups == "none"
fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_lane = 0u;
  sg_id = lanes.local;
  sg_count = WORKGROUP_SIZE;
}
//$ for kind in kinds
//$ set T, of, e = kind.type, kind.suffix, kind.identity
fn sg_last{{ of }}(x: {{ T }}) -> {{ T }} { return x; }
fn sg_scan{{ of }}(x: {{ T }}) -> SubgroupScan{{ of }} { return SubgroupScan{{ of }}({{ e }}, x); }
fn sg_reduce{{ of }}(x: {{ T }}) -> {{ T }} { return x; }
//$ endfor
fn look_back_enter() -> bool { return local == 0u; }
fn look_back_last(vote: bool) -> u32 { return select(0u, 1u, vote); }
fn look_back_reduce(x: {{ Chain }}) -> {{ Chain }} { return x; }
//$ else
var<workgroup> emulated{{ kind.suffix }}: array<{{ kind.type }}, WORKGROUP_SIZE>;  //$ for kind in kinds
var<workgroup> emulated_words: array<u32, WORKGROUP_SIZE>;
fn enter(lanes: Lanes) {
  local = lanes.local;
  sg_lane = lanes.local % sg_size;
  sg_id = lanes.local / sg_size;
  sg_count = WORKGROUP_SIZE / sg_size;
}
//$ for kind in kinds
//$ set T, of, e = kind.type, kind.suffix, kind.identity
fn emulated_share{{ of }}(x: {{ T }}) {
  workgroupBarrier();
  emulated{{ of }}[local] = x;
  workgroupBarrier();
}
fn sg_last{{ of }}(x: {{ T }}) -> {{ T }} {
  emulated_share{{ of }}(x);
  return emulated{{ of }}[local - sg_lane + sg_size - 1u];
}
// In log₂ steps, not lane by lane: lavapipe ends all loops of an invocation after 65,535 iterations in total.
fn sg_scan{{ of }}(x: {{ T }}) -> SubgroupScan{{ of }} {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share{{ of }}(y);
    if (sg_lane >= d) { y = {{ kind.combine }}(emulated{{ of }}[local - d], y); }
  }
  emulated_share{{ of }}(y);
  var exclusive = {{ e }};
  if (sg_lane > 0u) { exclusive = emulated{{ of }}[local - 1u]; }
  return SubgroupScan{{ of }}(exclusive, y);
}
fn sg_reduce{{ of }}(x: {{ T }}) -> {{ T }} { return sg_last{{ of }}(sg_scan{{ of }}(x).inclusive); }
//$ endfor
// All invocations take part and get the results of subgroup 0, so loops stay uniform.
fn look_back_enter() -> bool { return true; }
fn look_back_last(vote: bool) -> u32 {
  workgroupBarrier();
  emulated_words[local] = select(0u, sg_lane + 1u, vote);
  for (var d = sg_size / 2u; d > 0u; d >>= 1u) {
    workgroupBarrier();
    if (local < d) { emulated_words[local] = max(emulated_words[local], emulated_words[local + d]); }
  }
  return workgroupUniformLoad(&emulated_words[0]);
}
fn look_back_reduce(x: {{ Chain }}) -> {{ Chain }} {
//$ set of = kinds[-1].suffix
  let last = sg_last{{ of }}(sg_scan{{ of }}(x).inclusive);
  emulated_share{{ of }}(last);
  return workgroupUniformLoad(&emulated{{ of }}[0]);
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
