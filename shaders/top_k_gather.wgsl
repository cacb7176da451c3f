// The values and indices of the first k items in the order that a sort found.
// Forward progress: no workgroup waits for another. Bindings: params, input{{ ", list" if listed }}, order, values, indices.
// Params: n (items of the input); k; group_log2 (of the size of a listed group).

//$ include "lib/top_k_items.wgsl"

fn run(e: u32) {
//$ if counted
  // Items that do not count are behind all others, or not sorted at all.
  if (e >= {{ used.n }}) {
    store_indices(e, 0xffffffffu);
    store_values(e, Key());
    return;
  }
//$ endif
  let i = {{ "place_of(load_order(e))" if listed else "load_order(e)" }};
  store_indices(e, i);
  store_values(e, load_input(i));
}
