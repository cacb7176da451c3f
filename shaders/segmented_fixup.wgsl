// The second kernel of a segmented reduction: combines what blocks have of segments that began before them. One workgroup scans
// the chains of all blocks, and completes the one segment of each block that ends there and began earlier.
// Forward progress: there is one workgroup, which waits for no other. Bindings: params, totals, and the output.
// Params: blocks.

//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"

const NO_SEGMENT: u32 = 0xffffffffu;
//$ include "lib/put_segment.wgsl"
// What block b has from entry `first` of its row on, as a chain.
//$ set row = 2 + 2 * acc.words
fn chain_in(block: u32, first: u32, heads: u32) -> Chain {
  return Chain(
    heads,
    load_totals({{ row }}u * block + first + {{ k }}u),  //$ for k in range(acc.words)
  );
}

fn run(lanes: Lanes) {
  enter(lanes);
  var before = chain_identity();
  for (var first = 0u; first < params.blocks; first += WORKGROUP_SIZE) {
    // In the order of subgroups and lanes, which need not be that of the invocations' numbers.
    let block = first + sg_id * sg_size + sg_lane;
    var here = chain_identity();
    var segment = NO_SEGMENT;
    if (block < params.blocks) {
      here = chain_in(block, 1u, load_totals({{ row }}u * block));
      segment = load_totals({{ row }}u * block + {{ 1 + acc.words }}u);
    }
    let lanes_here = sg_scan_chain(here);
    let sum = wg_scan_chain(sg_last_chain(lanes_here.inclusive));
    let mine = chain_combine(chain_combine(before, sum.before), lanes_here.exclusive);
    if (segment != NO_SEGMENT) {
      put_segment(segment, chain_value(chain_combine(mine, chain_in(block, {{ 2 + acc.words }}u, 0u))));
    }
    before = chain_combine(before, sum.total);
  }
}
