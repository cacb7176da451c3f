// Where the keys of each code begin. A workgroup adds up the counts before its own codes, so none waits.
// Forward progress: no workgroup waits for another. Bindings: params, counts, begins.
//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_scan.wgsl"
//$ include "lib/key_code_1.wgsl"
fn count_of(code: u32) -> u32 {
  let key = key_decode(code << 16u);
  return load_counts(key % {{ ranges }}u * {{ 65536 // ranges }}u + key / {{ ranges }}u);
}
fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let own = block * WORKGROUP_SIZE + sg_id * sg_size + sg_lane;
  var before = 0u;
  for (var c = own % WORKGROUP_SIZE; c < own; c += 8u * WORKGROUP_SIZE) {
    before += select(0u, count_of(c + {{ k }}u * WORKGROUP_SIZE), c + {{ k }}u * WORKGROUP_SIZE < own);  //$ for k in range(8)
  }
  let first = wg_exclusive(before).total;
  store_begins(own, first + wg_exclusive(count_of(own)).before);
}
