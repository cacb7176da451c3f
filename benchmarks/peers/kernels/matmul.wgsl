// The product of two square matrices, by tiles of 16 × 16 in workgroup memory; `count` is a multiple of 16.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@group(0) @binding(3) var<uniform> count: u32;

var<workgroup> tile_a: array<array<f32, 16>, 16>;
var<workgroup> tile_b: array<array<f32, 16>, 16>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  var sum = 0.0;
  for (var k = 0u; k < count; k += 16u) {
    tile_a[local.y][local.x] = a[id.y * count + k + local.x];
    tile_b[local.y][local.x] = b[(k + local.y) * count + id.x];
    workgroupBarrier();
    for (var j = 0u; j < 16u; j++) { sum += tile_a[local.y][j] * tile_b[j][local.x]; }
    workgroupBarrier();
  }
  c[id.y * count + id.x] = sum;
}
