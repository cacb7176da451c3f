// places[i] = the bin of item i, or NO_BIN; so that items can be sorted by bins; and their values, if asked for.
// Forward progress: no workgroup waits for another. Bindings: params, {{ operand_names | join(", ") }}.
// Params: n (items of the window); blocks (workgroups that have work).

const VECS: u32 = {{ vecs }}u;
//$ include "lib/bins.wgsl"

fn run(block: u32, local: u32) {
  bins_begin(local);
  workgroupBarrier();
  for (var r = 0u; r < 4u * VECS; r++) {
    let i = (block * 4u * VECS + r) * WORKGROUP_SIZE + local;
    if (i >= {{ "params.capacity" if counted else "params.n" }}) { break; }
    var bin = bin_at(i);
    if (i >= {{ used.n }}) { bin = NO_BIN; }
    store_places(i, bin);
//$ if copies_values
    store_values(i, load_{{ copies_values }}(i));
//$ endif
  }
}
