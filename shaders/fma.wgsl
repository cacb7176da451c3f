// Throughput of multiply-adds: eight independent chains of vec4 per invocation, which hide each other's latency.
// A round is 8 chains × 4 lanes = 32 multiply-adds = 64 operations (a multiplication and an addition each). Factors come
// from memory, so that the compiler can compute nothing in advance. The sum of all chains is used, so that it can remove
// nothing.
// Forward progress: no invocation waits for another. Bindings: state, at least two words of f32, factors first.
@group(0) @binding(0) var<storage, read_write> state: array<f32>;

override ROUNDS: u32 = 256u;

alias T = {{ datatype }};

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  // The state is zeros: x → x / 2 + 1 tends to 2 and stays finite; integers become 1.
  let a = vec4<T>(T(state[0] + 0.5));
  let b = vec4<T>(T(state[1] + 1.0));
  let x = vec4<T>(T(f32(id.x & 1023u)), T(1.0), T(2.0), T(3.0));
  var x0 = x;
  var x{{ k }} = x + vec4<T>(T({{ k }}.0));  //$ for k in range(1, 8)
  for (var i = 0u; i < ROUNDS; i++) {
    x{{ k }} = {{ "x%d * a + b" % k if datatype == "i32" else "fma(x%d, a, b)" % k }};  //$ for k in range(8)
  }
  let sum = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7));
  let total = f32((sum.x + sum.y) + (sum.z + sum.w));
  // No sum is negative, so this never runs; but the compiler must keep it.
  if (total < 0.0) { state[2u + (id.x & 7u)] = f32(sum.x); }
}
