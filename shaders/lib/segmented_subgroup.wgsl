// Segmented scans of a row, one value per lane, in the three forms of lib/subgroup.wgsl. Heads are shared as bits, so a step
// of the scan moves the value alone.

// Lanes with a head, counted from 1: the nearest one up to this lane, the nearest one before it, and the last one of the
// subgroup; 0 where there is none.
struct LaneHeads { nearest: u32, before: u32, last: u32 }
struct SegmentedScan { exclusive: Acc, inclusive: Acc }

//$ if subgroups == "native"
// The last of the bits, counted from 1.
fn last_bit(bits: u32) -> u32 { return 32u - countLeadingZeros(bits); }
fn sg_heads(has_head: bool) -> LaneHeads {
  let votes = subgroupBallot(has_head);
  // Drivers know the size when they compile, so this is free where it is 32.
  if (sg_size <= 32u) {
    let before = votes.x & ((1u << sg_lane) - 1u);
    return LaneHeads(select(last_bit(before), sg_lane + 1u, has_head), last_bit(before), last_bit(votes.x));
  }
  var found = LaneHeads(0u, 0u, 0u);
  for (var first = 0u; first < sg_size; first += 32u) {
    let bits = votes[first >> 5u];
    if (bits != 0u) { found.last = first + last_bit(bits); }
    if (sg_lane >= first) {
      let before = select(bits & ((1u << (sg_lane & 31u)) - 1u), bits, sg_lane >= first + 32u);
      if (before != 0u) { found.before = first + last_bit(before); }
    }
  }
  found.nearest = select(found.before, sg_lane + 1u, has_head);
  return found;
}
// `heads` are those of the lanes: each lane combines from the nearest lane with a head on.
fn sg_segmented_scan(x: Acc, heads: LaneHeads) -> SegmentedScan {
  var y = x;
  let first = max(heads.nearest, 1u);
  for (var d = 1u; d < sg_size; d <<= 1u) {
    let left = subgroupShuffleUp(y, d);
    y = select(y, combine(left, y), sg_lane + 1u >= first + d);
  }
  let left = subgroupShuffleUp(y, 1u);
  return SegmentedScan(select(left, identity(), sg_lane == 0u), y);
}
fn sg_add(x: u32) -> u32 { return subgroupAdd(x); }
fn sg_exclusive_add(x: u32) -> u32 { return subgroupExclusiveAdd(x); }
//$ elif subgroups == "none"
fn sg_heads(has_head: bool) -> LaneHeads {
  let here = select(0u, 1u, has_head);
  return LaneHeads(here, 0u, here);
}
fn sg_segmented_scan(x: Acc, heads: LaneHeads) -> SegmentedScan { return SegmentedScan(identity(), x); }
fn sg_add(x: u32) -> u32 { return x; }
fn sg_exclusive_add(x: u32) -> u32 { return 0u; }
//$ else
fn emulated_share_word(x: u32) {
  workgroupBarrier();
  emulated_words[local] = x;
  workgroupBarrier();
}
fn sg_heads(has_head: bool) -> LaneHeads {
  var nearest = select(0u, sg_lane + 1u, has_head);
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share_word(nearest);
    if (sg_lane >= d) { nearest = max(nearest, emulated_words[local - d]); }
  }
  emulated_share_word(nearest);
  var before = 0u;
  if (sg_lane > 0u) { before = emulated_words[local - 1u]; }
  return LaneHeads(nearest, before, emulated_words[local - sg_lane + sg_size - 1u]);
}
fn sg_segmented_scan(x: Acc, heads: LaneHeads) -> SegmentedScan {
  var y = x;
  let first = max(heads.nearest, 1u);
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share(y);
    if (sg_lane + 1u >= first + d) { y = combine(emulated[local - d], y); }
  }
  emulated_share(y);
  var exclusive = identity();
  if (sg_lane > 0u) { exclusive = emulated[local - 1u]; }
  return SegmentedScan(exclusive, y);
}
fn sg_exclusive_add(x: u32) -> u32 {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share_word(y);
    if (sg_lane >= d) { y += emulated_words[local - d]; }
  }
  return y - x;
}
fn sg_add(x: u32) -> u32 {
  emulated_share_word(sg_exclusive_add(x) + x);
  return emulated_words[local - sg_lane + sg_size - 1u];
}
//$ endif
