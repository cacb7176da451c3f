// Segmented scans of a row, one value per lane, in the three forms of lib/subgroup.wgsl. Heads are shared as bits, so a step
// of the scan moves the value alone.

// Lanes with a head, counted from 1: the nearest one up to this lane, the nearest one before it, and the last one of the
// subgroup; 0 where there is none.
struct LaneHeads { nearest: u32, before: u32, last: u32 }
struct SegmentedScan { exclusive: Acc, inclusive: Acc }
struct Ranks { before: u32, all: u32 }

//$ if subgroups == "native"
fn sg_heads(has_head: bool) -> LaneHeads {
  let votes = subgroupBallot(has_head);
  let here = vec4<u32>(sg_lane >> 5u);
  let word = vec4<u32>(0u, 1u, 2u, 3u);
  let lower = vec4<u32>((1u << (sg_lane & 31u)) - 1u);
  let before = last_lane(votes & select(select(vec4<u32>(0u), lower, here == word), vec4<u32>(0xffffffffu), here > word));
  return LaneHeads(select(before, sg_lane + 1u, has_head), before, last_lane(votes));
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
// Of words that each lane has: the sum of those of lower lanes, and of all. By shuffles: with subgroupAdd of the heads that
// lanes count, these kernels gave wrong totals on an NVIDIA GPU (docs/contribute/algorithms.md, "Rules of all kernels").
fn sg_ranks(x: u32) -> Ranks {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) { y += select(0u, subgroupShuffleUp(y, d), sg_lane >= d); }
  return Ranks(y - x, subgroupShuffle(y, sg_size - 1u));
}
//$ elif subgroups == "none"
fn sg_heads(has_head: bool) -> LaneHeads {
  let here = select(0u, 1u, has_head);
  return LaneHeads(here, 0u, here);
}
fn sg_segmented_scan(x: Acc, heads: LaneHeads) -> SegmentedScan { return SegmentedScan(identity(), x); }
fn sg_ranks(x: u32) -> Ranks { return Ranks(0u, x); }
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
fn sg_ranks(x: u32) -> Ranks {
  var y = x;
  for (var d = 1u; d < sg_size; d <<= 1u) {
    emulated_share_word(y);
    if (sg_lane >= d) { y += emulated_words[local - d]; }
  }
  emulated_share_word(y);
  return Ranks(y - x, emulated_words[local - sg_lane + sg_size - 1u]);
}
//$ endif
