// The chain before each block, from those of all blocks: one workgroup scans them.
// Source: Blelloch, "Prefix sums and their applications" (1990).
// Forward progress: there is one workgroup. Bindings: params, totals, carries.
struct Params {
  blocks: u32,
//$ include "lib/params_operator.wgsl"
  {{ fields.values() | join("
  ") }}
}
{{ bindings }}
//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(lanes: Lanes) {
  enter(lanes);
  var before = chain_identity();
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    // In the order of subgroups and lanes, which need not be that of the invocations' numbers.
    let block = first + sg_id * sg_size + sg_lane;
    var here = chain_identity();
    if (block < params.blocks) {
      here = Chain(
//$ for k in range(1 + acc.words)
        load_totals({{ 1 + acc.words }}u * block + {{ k }}u),
//$ endfor
      );
    }
    let row = sg_scan_chain(here);
    let sum = wg_scan_chain(sg_last_chain(row.inclusive));
    let mine = chain_combine(chain_combine(before, sum.before), row.exclusive);
    if (block < params.blocks) {
//$ for k in range(1 + acc.words)
      store_carries({{ 1 + acc.words }}u * block + {{ k }}u, mine[{{ k }}]);
//$ endfor
    }
    before = chain_combine(before, sum.total);
  }
}
