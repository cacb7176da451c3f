// The acceleration of each body by all others, by tiles of 256 in workgroup memory; `count` is a multiple of 256.
@group(0) @binding(0) var<storage, read> bodies: array<vec4<f32>>;  // place and mass
@group(0) @binding(1) var<storage, read_write> accelerations: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> count: u32;

var<workgroup> tile: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = bodies[id.x].xyz;
  var sum = vec3<f32>();
  for (var first = 0u; first < count; first += 256u) {
    tile[lane] = bodies[first + lane];
    workgroupBarrier();
    for (var j = 0u; j < 256u; j++) {
      let other = tile[j];
      let d = other.xyz - place;
      let r = inverseSqrt(dot(d, d) + 0.001);
      sum += d * (other.w * r * r * r);
    }
    workgroupBarrier();
  }
  accelerations[id.x] = vec4(sum, 0.0);
}
