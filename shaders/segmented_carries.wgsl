// The chain before each block, from those of all blocks: one workgroup scans them.
// Source: Blelloch, "Prefix sums and their applications" (1990).
// Forward progress: there is one workgroup. Bindings: params, totals, carries.
// Params: blocks.

//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"

fn run(lanes: Lanes) {
  enter(lanes);
  var before = chain_identity();
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    // In the order of subgroups and lanes, which need not be that of the invocations' numbers.
    let block = first + sg_id * sg_size + sg_lane;
    var here = chain_identity();
    if (block < params.blocks) {
      here = Chain(
        load_totals({{ 1 + acc.words }}u * block + {{ k }}u),  //$ for k in range(1 + acc.words)
      );
    }
    let row = sg_scan_chain(here);
    let sum = wg_scan_chain(sg_last_chain(row.inclusive));
    let mine = chain_combine(chain_combine(before, sum.before), row.exclusive);
    if (block < params.blocks) {
      store_carries({{ 1 + acc.words }}u * block + {{ k }}u, mine[{{ k }}]);  //$ for k in range(1 + acc.words)
    }
    before = chain_combine(before, sum.total);
  }
}
