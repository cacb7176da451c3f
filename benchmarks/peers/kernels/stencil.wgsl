// The mean of a cell's four neighbours; cells of the border stay.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> width: u32;
@group(0) @binding(3) var<uniform> height: u32;

@compute @workgroup_size(32, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= width || id.y >= height) { return; }
  let i = id.y * width + id.x;
  if (id.x == 0u || id.y == 0u || id.x == width - 1u || id.y == height - 1u) {
    y[i] = x[i];
  } else {
    y[i] = 0.25 * (x[i - 1u] + x[i + 1u] + x[i - width] + x[i + width]);
  }
}
