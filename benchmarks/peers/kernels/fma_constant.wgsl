// fma.wgsl with the number of turns in the text.
const turns = 60000u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> count: u32;
@group(0) @binding(3) var<uniform> factor: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= count) { return; }
  var s = x[id.x];
  for (var k = 0u; k < turns; k++) { s = fma(s, factor, 0.5); }
  y[id.x] = s;
}
