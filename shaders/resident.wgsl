// How many workgroups are at work at once: each reads words one after another, each read waiting for the one before, and
// holds its workgroup memory and its invocations meanwhile. Workgroups that are at
// work together end together; the first one too many takes as long again.
// Forward progress: no workgroup waits for another. Bindings: state, a power of two of zeros.
@group(0) @binding(0) var<storage, read_write> state: array<atomic<u32>>;

override WORKGROUP_SIZE: u32 = 64u;
override ROOM_WORDS: u32 = 64u;  // of workgroup memory
override ROUNDS: u32 = 256u;

var<workgroup> room: array<u32, ROOM_WORDS>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let last = arrayLength(&state) - 1u;
  if (local == 0u) {
    // Atomic loads, as those of a look-back: a cache of one multiprocessor does not answer them. All words are 0.
    var at = group.x * 67u;
    for (var i = 0u; i < ROUNDS; i++) { at = at + 4160u + atomicLoad(&state[at & last]); }
    room[at % ROOM_WORDS] = at;
  }
  workgroupBarrier();
  // The words are never this large, but the compiler must keep the room.
  if (room[(local + group.x) % ROOM_WORDS] == 0xffffffffu) { atomicAdd(&state[0], 1u); }
}
