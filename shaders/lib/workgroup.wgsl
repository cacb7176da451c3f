// From subgroups to the workgroup: combines one value per subgroup, in order.
override WORKGROUP_SIZE: u32 = 256u;
var<workgroup> wg_totals: array<Acc, WORKGROUP_SIZE>;

//$ include "lib/subgroup.wgsl"

struct WorkgroupScan { before: Acc, total: Acc }

// x is the total of the invocation's subgroup. Returns the total of the subgroups before it, and of all.
//$ if subgroups == "none"
// Hillis and Steele, "Data parallel algorithms" (1986), over all invocations.
fn wg_scan(x: Acc) -> WorkgroupScan {
  workgroupBarrier();
  var y = x;
  wg_totals[local] = y;
  workgroupBarrier();
  for (var d = 1u; d < WORKGROUP_SIZE; d <<= 1u) {
    var left = identity();
    if (local >= d) { left = wg_totals[local - d]; }
    workgroupBarrier();
    y = combine(left, y);
    wg_totals[local] = y;
    workgroupBarrier();
  }
  var before = identity();
  if (local > 0u) { before = wg_totals[local - 1u]; }
  return WorkgroupScan(before, wg_totals[WORKGROUP_SIZE - 1u]);
}
//$ else
fn wg_scan(x: Acc) -> WorkgroupScan {
  workgroupBarrier();
  if (sg_lane == 0u) { wg_totals[sg_id] = x; }
  workgroupBarrier();
  var before = identity();
  var total = identity();
  for (var s = 0u; s < sg_count; s++) {
    if (s == sg_id) { before = total; }
    total = combine(total, wg_totals[s]);
  }
  return WorkgroupScan(before, total);
}
//$ endif
