// Items of the input as accumulators, and accumulators as items of the output; each may also be accumulators in memory.
//$ set raw = ["input"] if source.kind == "raw" else []
//$ set raw_written = ["output"] if sink.kind == "raw" else []
//$ include "lib/accumulators.wgsl"
//$ if acc.fields
//$ include "lib/accumulator_quads.wgsl"
//$ endif
fn item(i: u32) -> Acc { return {{ "load_acc_input(i)" if raw else "lift(load_input(i))" }}; }
fn item4(i: u32) -> Quad {
  return {{
    "lift4(load4_input(i))" if not raw else "load4_acc_input(i)" if acc.fields
    else "Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u))"
  }};
}
//$ set settles = raw_written and acc.fields and fixed_order
//$ if settles
// All NaNs become one, because adapters make different ones.
fn settled_words(x: Acc) -> Acc {
  return Acc(
//$ for name, type in acc.fields
//$ set word = "x[%d]" % loop.index0 if acc.words > 1 else "x"
    {{ "settled(bitcast<f32>(%s))" % word if type == "f32" else word }},
//$ endfor
  );
}
fn put(i: u32, x: Acc) { store_acc_output(i, settled_words(x)); }
fn put4(i: u32, x: Quad) {
  store4_acc_output(i, Quad(settled_words(x.x), settled_words(x.y), settled_words(x.z), settled_words(x.w)));
}
//$ else
fn put(i: u32, x: Acc) { {{ "store_acc_output(i, x)" if raw_written else "store_output(i, lower(x))" }}; }
fn put4(i: u32, x: Quad) {
  {{
    "store4_output(i, lower4(x))" if not raw_written else "store4_acc_output(i, x)" if acc.fields
    else "put(i, x.x); put(i + 1u, x.y); put(i + 2u, x.z); put(i + 3u, x.w)"
  }};
}
//$ endif
