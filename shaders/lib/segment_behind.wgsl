// A search: the segment lies between these two. Each step cuts what is left into one part more than there are invocations.
var<workgroup> search_left: vec2<u32>;
// Finds the first segment that ends behind item `begin`; at most `last`. All invocations of the workgroup take part.
fn segment_behind(begin: u32, last: u32) -> u32 {
  var left = vec2<u32>(0u, last);
  while (left.x < left.y) {
    let chunk = (left.y - left.x + WORKGROUP_SIZE) / (WORKGROUP_SIZE + 1u);
    let s = left.x + (local + 1u) * chunk - 1u;
    let is_before = s < left.y && end_of(min(s, last - 1u)) <= begin;
    let next = select(s + chunk, left.y, local == WORKGROUP_SIZE - 1u);
    let is_next_before = next < left.y && end_of(min(next, last - 1u)) <= begin;
    // One invocation is between the two.
    if (is_before && !is_next_before) { search_left = vec2<u32>(s + 1u, min(next, left.y)); }
    if (local == 0u && !is_before) { search_left = vec2<u32>(left.x, s); }
    left = workgroupUniformLoad(&search_left);
  }
  return left.x;
}
