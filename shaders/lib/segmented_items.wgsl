// The items of segments as accumulators.
//$ if items_are == "raw"
//$ set raw, raw_written = ["items"], []
//$ include "lib/accumulators.wgsl"
fn item(i: u32) -> Acc { return load_acc_items(i); }
fn item4(i: u32) -> Quad { return Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u)); }
//$ elif items_are == "pairs"
fn item(i: u32) -> Acc { return lift(load_items(i)); }
fn item4(i: u32) -> Quad { return Quad(item(i), item(i + 1u), item(i + 2u), item(i + 3u)); }
//$ else
fn item(i: u32) -> Acc { return lift(load_items(i)); }
fn item4(i: u32) -> Quad { return lift4(load4_items(i)); }
//$ endif
