// From subgroups to the workgroup: combines one value per subgroup, in order.
//$ set rank = {"suffix": "_rank", "type": "u32", "combine": "max", "identity": "0u", "subgroup_reduce": "subgroupMax"}
//$ set kinds = [rank] + kinds if sides is defined else kinds
var<workgroup> wg_totals{{ kind.suffix }}: array<{{ kind.type }}, WORKGROUP_SIZE>;  //$ for kind in kinds

//$ include "lib/subgroup.wgsl"

//$ for kind in kinds
//$ set T, of, e = kind.type, kind.suffix, kind.identity
struct WorkgroupScan{{ of }} { before: {{ T }}, total: {{ T }} }

// x is the total of the invocation's subgroup. Returns the total of the subgroups before it, and of all.
//$ if subgroups == "none"
// Hillis and Steele, "Data parallel algorithms" (1986), over all invocations.
fn wg_scan{{ of }}(x: {{ T }}) -> WorkgroupScan{{ of }} {
  workgroupBarrier();
  var y = x;
  wg_totals{{ of }}[local] = y;
  workgroupBarrier();
  for (var d = 1u; d < WORKGROUP_SIZE; d <<= 1u) {
    var left = {{ e }};
    if (local >= d) { left = wg_totals{{ of }}[local - d]; }
    workgroupBarrier();
    y = {{ kind.combine }}(left, y);
    wg_totals{{ of }}[local] = y;
    workgroupBarrier();
  }
  var before = {{ e }};
  if (local > 0u) { before = wg_totals{{ of }}[local - 1u]; }
  return WorkgroupScan{{ of }}(before, wg_totals{{ of }}[WORKGROUP_SIZE - 1u]);
}
//$ else
fn wg_scan{{ of }}(x: {{ T }}) -> WorkgroupScan{{ of }} {
  workgroupBarrier();
//$ if branch_free is defined
  // Without a branch for one lane; other lanes write where nobody reads.
  wg_totals{{ of }}[select(sg_count + local - sg_id - 1u, sg_id, sg_lane == 0u)] = x;
//$ else
  if (sg_lane == 0u) { wg_totals{{ of }}[sg_id] = x; }
//$ endif
  workgroupBarrier();
  var before = {{ e }};
  var total = {{ e }};
  for (var s = 0u; s < sg_count; s++) {
    if (s == sg_id) { before = total; }
    total = {{ kind.combine }}(total, wg_totals{{ of }}[s]);
  }
  return WorkgroupScan{{ of }}(before, total);
}
//$ endif
//$ endfor
