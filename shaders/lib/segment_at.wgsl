// Needs end_of(s), which never falls.
// The first of the segments from `least` on that ends behind place i; at most `most`.
fn segment_at(i: u32, least: u32, most: u32) -> u32 {
  var low = least;
  var high = most;
  while (low < high) {
    let middle = (low + high) >> 1u;
    if (end_of(middle) <= i) { low = middle + 1u; } else { high = middle; }
  }
  return low;
}
