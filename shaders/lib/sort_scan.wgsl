// Scans a number of each invocation: the sum before this invocation, and the total.
fn wg_exclusive(x: u32) -> WorkgroupScan {
  let within = sg_scan(x);
  let before = wg_scan(sg_last(within.inclusive));
  return WorkgroupScan(before.before + within.exclusive, before.total);
}
