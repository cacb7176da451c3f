// The codes of all items of the listed groups.
// Forward progress: no workgroup waits for another. Bindings: params, input, list, codes.
// Params: n (items of the input); length (items of all listed groups); group_log2 (of the size of a group).

//$ include "lib/top_k_items.wgsl"

fn run(j: u32) {
  let i = place_of(j);
  if (i < {{ used.n }}) { store_codes(j, code_of(load_input(i))); } else { store_codes(j, NO_CODE); }
}
