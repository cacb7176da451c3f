// The prefix sum of each workgroup's 256 items, in workgroup memory, by doubled distances; `count` is a multiple of 256.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32,
  @builtin(num_workgroups) groups: vec3<u32>,
) {
  let i = id.y * groups.x * 256u + id.x;
  sums[lane] = x[i];
  workgroupBarrier();
  for (var distance = 1u; distance < 256u; distance *= 2u) {
    var sum = sums[lane];
    if (lane >= distance) { sum += sums[lane - distance]; }
    workgroupBarrier();
    sums[lane] = sum;
    workgroupBarrier();
  }
  y[i] = sums[lane];
}
