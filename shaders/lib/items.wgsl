// Items of the input as accumulators, and accumulators as items of the output; each may also be accumulators in memory.
//$ set raw = ["input"] if source.kind == "raw" else []
//$ set raw_written = ["output"] if sink.kind == "raw" else []
//$ include "lib/accumulators.wgsl"
//$ if source.kind == "raw"
fn item(i: u32) -> Acc { return load_acc_input(i); }
fn item4(i: u32) -> Quad { return Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u)); }
//$ else
fn item(i: u32) -> Acc { return lift(load_input(i)); }
fn item4(i: u32) -> Quad { return lift4(load4_input(i)); }
//$ endif
//$ if sink.kind == "raw"
fn put(i: u32, x: Acc) { store_acc_output(i, x); }
fn put4(i: u32, x: Quad) {
  put(i, x.x);
  put(i + 1u, x.y);
  put(i + 2u, x.z);
  put(i + 3u, x.w);
}
//$ else
fn put(i: u32, x: Acc) { store_output(i, lower(x)); }
fn put4(i: u32, x: Quad) { store4_output(i, lower4(x)); }
//$ endif
