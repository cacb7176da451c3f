// The sum of a workgroup's share: a loop with strides, then a tree in workgroup memory.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@group(0) @binding(2) var<uniform> count: u32;

var<workgroup> part: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32,
  @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
) {
  var sum = 0u;
  for (var i = id.x; i < count; i += groups.x * 256u) { sum += x[i]; }
  part[lane] = sum;
  workgroupBarrier();
  for (var width = 128u; width > 0u; width /= 2u) {
    if (lane < width) { part[lane] += part[lane + width]; }
    workgroupBarrier();
  }
  if (lane == 0u) { sums[group.x] = part[0]; }
}
