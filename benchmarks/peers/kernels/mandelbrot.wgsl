// After how many turns a point leaves the circle of radius 2; `turns` for those that stay.
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<uniform> side: u32;
@group(0) @binding(2) var<uniform> turns: u32;
@group(0) @binding(3) var<uniform> spacing: f32;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= side || id.y >= side) { return; }
  let cx = -2.0 + spacing * f32(id.x);
  let cy = -1.25 + spacing * f32(id.y);
  var x = 0.0;
  var y = 0.0;
  var k = 0u;
  while (k < turns && x * x + y * y <= 4.0) {
    let next = x * x - y * y + cx;
    y = 2.0 * x * y + cy;
    x = next;
    k++;
  }
  counts[id.y * side + id.x] = k;
}
