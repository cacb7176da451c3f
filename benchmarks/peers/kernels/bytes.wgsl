// How often some bytes occur in a text of `count` bytes, and where first; four bytes of the text are a word.
@group(0) @binding(0) var<storage, read> text: array<u32>;
@group(0) @binding(1) var<storage, read> sought: array<u32>;  // a byte in each
@group(0) @binding(2) var<storage, read_write> found: array<atomic<u32>>;  // their number, and the first place
@group(0) @binding(3) var<uniform> count: u32;
@group(0) @binding(4) var<uniform> length: u32;

fn byte_at(place: u32) -> u32 {
  return (text[place / 4u] >> (8u * (place % 4u))) & 255u;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i + length <= count; i += groups.x * 256u) {
    var k = 0u;
    while (k < length && byte_at(i + k) == sought[k]) { k++; }
    if (k == length) {
      atomicAdd(&found[0], 1u);
      atomicMin(&found[1], i);
    }
  }
}
