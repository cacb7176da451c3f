// A fixed chain of dependent integer operations, whose time depends only on the clock of the GPU: tens of microseconds.
// Each round is a multiplication and a shifted exclusive or, which no compiler folds into fewer rounds. There is one
// workgroup, and one store at the end, so it never waits for memory.
// Forward progress: no invocation waits for another. Bindings: state, 64 words.
@group(0) @binding(0) var<storage, read_write> state: array<u32>;

override ROUNDS: u32 = 512u;  // eight steps each; lavapipe ends all loops of an invocation after 65,535 iterations

fn round_of(x: u32) -> u32 {
  let y = x * 747796405u;
  return y ^ (y >> 15u);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
  var x = local + 1u;
  for (var i = 0u; i < ROUNDS; i++) {
    x = round_of(round_of(round_of(round_of(x))));
    x = round_of(round_of(round_of(round_of(x))));
  }
  state[local] = x;
}
