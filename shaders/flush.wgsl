// Reads and writes every vec4 of a buffer, so that the last-level cache holds only this buffer.
// Each invocation strides over the buffer by the whole grid, so that neighbours touch neighbouring memory.
// Forward progress: no invocation waits for another. Bindings: buffer.
@group(0) @binding(0) var<storage, read_write> buffer: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>) {
  let count = arrayLength(&buffer);
  for (var i = id.x; i < count; i += grid.x * 256u) {
    buffer[i] = buffer[i] + vec4<u32>(1u, 3u, 5u, 7u);
  }
}
