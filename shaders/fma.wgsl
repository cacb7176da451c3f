// Throughput of f32 multiply-adds: eight independent chains of vec4 per invocation, which hide each other's latency.
// A round is 8 chains × 4 lanes = 32 fma = 64 flops (a multiplication and an addition each). Factors come from memory, so
// that the compiler can compute nothing in advance. The sum of all chains is used, so that it can remove nothing.
// Forward progress: no invocation waits for another. Bindings: state, at least two words of f32, factors first.
@group(0) @binding(0) var<storage, read_write> state: array<f32>;

override ROUNDS: u32 = 256u;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let a = vec4<f32>(state[0] + 0.5);  // the state is zeros: x → x / 2 + 1 tends to 2 and stays finite
  let b = vec4<f32>(state[1] + 1.0);
  let x = vec4<f32>(f32(id.x), 1.0, 2.0, 3.0);
  var x0 = x;
  var x1 = x + 1.0;
  var x2 = x + 2.0;
  var x3 = x + 3.0;
  var x4 = x + 4.0;
  var x5 = x + 5.0;
  var x6 = x + 6.0;
  var x7 = x + 7.0;
  for (var i = 0u; i < ROUNDS; i++) {
    x0 = fma(x0, a, b);
    x1 = fma(x1, a, b);
    x2 = fma(x2, a, b);
    x3 = fma(x3, a, b);
    x4 = fma(x4, a, b);
    x5 = fma(x5, a, b);
    x6 = fma(x6, a, b);
    x7 = fma(x7, a, b);
  }
  let sum = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7));
  // No sum is negative, so this never runs; but the compiler must keep it.
  if (dot(sum, vec4<f32>(1.0)) < 0.0) { state[2u + (id.x & 7u)] = sum.x; }
}
