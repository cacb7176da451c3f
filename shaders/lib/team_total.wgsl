// Teams of invocations, each of which combines its values to one.
//$ set of = kinds[-1].suffix
var<private> me: u32;  // the invocations of a subgroup have consecutive numbers
// Combines the values of a team of so many invocations, a power of two, in their order; the first one gets the total.
fn team_total(x: Acc, team: u32) -> Acc {
//$ if team_is_workgroup and subgroups != "none"
  return wg_scan{{ of }}(sg_reduce{{ of }}(x)).total;
//$ elif subgroups == "native"
  var y = x;
  if ({{ d }}u < min(team, sg_size)) { y = combine(y, subgroupShuffleDown(y, {{ d }}u)); }  //$ for d in (1, 2, 4, 8, 16, 32, 64)
//$ if team_in_memory
  workgroupBarrier();
  if (sg_lane == 0u) { wg_totals{{ of }}[sg_id] = y; }
  workgroupBarrier();
  if (team > sg_size) {
    // Some subgroups for each lane, and then by shuffles again.
    let of_subgroup = countTrailingZeros(sg_size);
    let subgroups = team >> of_subgroup;
    let first = (me & ~(team - 1u)) >> of_subgroup;
    let each = (subgroups + sg_size - 1u) >> of_subgroup;
    y = identity();
    for (var s = sg_lane * each; s < min(sg_lane * each + each, subgroups); s++) { y = combine(y, wg_totals{{ of }}[first + s]); }
    for (var d = 1u; d < sg_size; d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }
  }
//$ endif
  return y;
//$ else
  var y = x;
  for (var d = 1u; d < team; d <<= 1u) {
    workgroupBarrier();
    wg_totals{{ of }}[me] = y;
    workgroupBarrier();
    if (me % (2u * d) == 0u) { y = combine(y, wg_totals{{ of }}[me + d]); }
  }
  return y;
//$ endif
}
