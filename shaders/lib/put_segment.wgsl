// Writes the result of a segment.
fn put_segment(s: u32, x: Acc) {
//$ if items_are == "raw"
  store_output({{ acc.words }}u * s + {{ k }}u, x{{ "[%d]" % k if acc.words > 1 }});  //$ for k in range(acc.words)
//$ else
  store_output(s, lower(x));
//$ endif
}
