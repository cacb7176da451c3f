// Totals of blocks of FAN items, or of FAN totals of smaller blocks. What does not fill a block has none.
// Forward progress: no workgroup waits for another. Bindings: params, input or below, totals (below and totals are one buffer).
// Params: n (blocks); source, place (where the smaller totals begin, and these).

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ include "lib/rolling_state.wgsl"

fn run(block: u32) {
  var state = State();
  for (var i = block * FAN; i < block * FAN + FAN; i++) {
    state = combine(state, {{ "total(params.source + i)" if totals else "of_item(load_input(i))" }});
  }
  let at = (params.place + block) * FIELDS;
  store_totals(at, {{ "Item(state.count, 0u)" if wide else "state.count" }});
  store_totals(at + {{ loop.index }}u, {{ to_words }}(state.{{ field }}));  //$ for field in fields
}
