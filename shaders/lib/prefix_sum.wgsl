// Needs local, WORKGROUP_SIZE, `sums` of WORKGROUP_SIZE words of workgroup memory, and `shared_word`.
fn share(word: u32) -> u32 {
  workgroupBarrier();
  if (local == 0u) { shared_word = word; }
  return workgroupUniformLoad(&shared_word);
}
// Adds up a number of each invocation before this one. Hillis and Steele (1986).
fn prefix_sum(x: u32) -> u32 {
  var y = x;
  workgroupBarrier();
  sums[local] = y;
  for (var d = 1u; d < WORKGROUP_SIZE; d <<= 1u) {
    workgroupBarrier();
    var left = 0u;
    if (local >= d) { left = sums[local - d]; }
    workgroupBarrier();
    y += left;
    sums[local] = y;
  }
  workgroupBarrier();
  return y - x;
}
