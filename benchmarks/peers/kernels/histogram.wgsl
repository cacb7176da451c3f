// How often each highest byte occurs: atomics in workgroup memory, then one for each bin in the result.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> count: u32;

var<workgroup> own: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32,
  @builtin(num_workgroups) groups: vec3<u32>,
) {
  atomicStore(&own[lane], 0u);
  workgroupBarrier();
  for (var i = id.x; i < count; i += groups.x * 256u) { atomicAdd(&own[x[i] >> 24u], 1u); }
  workgroupBarrier();
  atomicAdd(&bins[lane], atomicLoad(&own[lane]));
}
