// Where the path of a merge crosses the diagonals that begin and end a part, for any order. A function of the user's may be no
// order at all, as `a < b` is none of NaN: paths that were searched apart may then cross, and keys would be lost or come twice.
// So a split counts only as far as it agrees with those of a tree: that of the middle lies between both ends, that of a quarter
// between the end and the middle, and so on. Splits of a real order are as they were found. The text is that of
// {{ bounds.name }}: parts of {{ bounds.width }} keys, the split of part k is {{ bounds.split }}.
// Takes the part, the keys of both runs and of the first; returns how many of the first come before the part, and before its end.
fn {{ bounds.name }}(first: u32, part: u32, count: u32, count_a: u32) -> vec2<u32> {
  // Corners of the path: a diagonal, and the keys of the first run before it.
  var low = vec2<u32>(0u);
  var high = vec2<u32>(count, count_a);
  let last = (max(count, 1u) - 1u) / {{ bounds.width }};
  var at = 0u;
  for (var step = select(0u, 1u << (firstLeadingBit(last) & 31u), last > 0u); step > 0u; step >>= 1u) {
    let k = at + step;
    if (k > last) { continue; }
    let diagonal = k * {{ bounds.width }};
    let rest = high.x - diagonal;
    let split = clamp({{ bounds.split }}, max(low.y + rest, high.y) - rest, min(high.y, low.y + diagonal - low.x));
    if (k <= part) {
      at = k;
      low = vec2<u32>(diagonal, split);
    } else {
      high = vec2<u32>(diagonal, split);
    }
  }
  return vec2<u32>(low.y, high.y);
}
