// The sums of numbers of all invocations: what comes before this one, and the total.
fn wg_exclusive(x: u32) -> WorkgroupScan {
  let within = sg_scan(x);
  let before = wg_scan(sg_last(within.inclusive));
  return WorkgroupScan(before.before + within.exclusive, before.total);
}
