// Throughput of atomic additions: neighbouring invocations add to neighbouring words, each round to others.
// Forward progress: no invocation waits for another. Bindings: state, a power of two of words.
alias T = {{ datatype }};
@group(0) @binding(0) var<storage, read_write> state: array<atomic<T>>;

override ROUNDS: u32 = 64u;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let last = arrayLength(&state) - 1u;
  for (var i = 0u; i < ROUNDS; i++) {
    // 4,160 is no multiple of a power of two that matters: rounds of one invocation meet all parts of the cache.
    atomicAdd(&state[(id.x + i * 4160u) & last], T(1));
  }
}
