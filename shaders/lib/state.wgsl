// The chained state of a single-pass scan: one word per tile that holds {epoch, flag, value}, read and written
// whole, since WGSL's atomics are relaxed and promise no order between two words. Two forms:
//   u64     one 64-bit atomic: value in the low half, epoch and flag in the high half
//   u32x2   two 32-bit atomics, each with 16 bits of the value, the epoch and the flag; a pair whose tags differ is
//           being written, and counts as not ready
// The epoch tells this dispatch's words from those of the one before. It lives in the buffer and is moved on by the last
// workgroup to finish, so nothing needs clearing between dispatches. It may wrap: every dispatch posts every tile, so
// a word that is not of this epoch is of the one before, never older.
const EMPTY: u32 = 0u;      // nothing posted in this epoch
const TOTAL: u32 = 1u;      // the tile's own total
const INCLUSIVE: u32 = 2u;  // the total of all tiles up to this one

override EPOCH_BITS: u32 = {{ "30u" if state == "u64" else "14u" }};
// For tests: every so many tiles, one never posts (0: none).
override STALL_EVERY: u32 = 0u;

struct Posted { flag: u32, value: Acc }

var<private> epoch: u32;

fn state_tag(flag: u32) -> u32 { return (epoch << 2u) | flag; }

//$ if state == "u64"
fn state_post(tile: u32, flag: u32, value: Acc) {
  if (STALL_EVERY != 0u && (tile + 1u) % max(STALL_EVERY, 1u) == 0u) { return; }
  atomicStore(&states[tile], (u64(state_tag(flag)) << 32u) | u64(pack(value)));
}
fn state_peek(tile: u32) -> Posted {
//$ if read_by_rmw
  let word = atomicOr(&states[tile], 0lu);
//$ else
  let word = atomicLoad(&states[tile]);
//$ endif
  let tag = u32(word >> 32u);
  return Posted(select(EMPTY, tag & 3u, (tag >> 2u) == epoch), unpack(u32(word & 0xfffffffflu)));
}
//$ else
fn state_post(tile: u32, flag: u32, value: Acc) {
  if (STALL_EVERY != 0u && (tile + 1u) % max(STALL_EVERY, 1u) == 0u) { return; }
  let bits = pack(value);
  atomicStore(&states[2u * tile], (state_tag(flag) << 16u) | (bits & 0xffffu));
  atomicStore(&states[2u * tile + 1u], (state_tag(flag) << 16u) | (bits >> 16u));
}
fn state_peek(tile: u32) -> Posted {
//$ if read_by_rmw
  let low = atomicOr(&states[2u * tile], 0u);
  let high = atomicOr(&states[2u * tile + 1u], 0u);
//$ else
  let low = atomicLoad(&states[2u * tile]);
  let high = atomicLoad(&states[2u * tile + 1u]);
//$ endif
  let tag = low >> 16u;
  let ready = tag == (high >> 16u) && (tag >> 2u) == epoch;
  return Posted(select(EMPTY, tag & 3u, ready), unpack((low & 0xffffu) | (high << 16u)));
}
//$ endif

// control: [0] the next ticket, [1] workgroups that finished, [2] the epoch.
//$ if tickets
var<workgroup> state_ticket: u32;

// Gives this workgroup a tile. Tickets are handed out in the order in which workgroups start, so every earlier
// tile belongs to a workgroup that has started.
fn state_enter(workgroup: u32) -> u32 {
  if (local == 0u) { state_ticket = atomicAdd(&control[0], 1u); }
  return workgroupUniformLoad(&state_ticket);
}
//$ else
// The tile of this workgroup is its number: a trip to memory less than a ticket, but nothing says that earlier tiles
// belong to workgroups that have started. Where they have not, the fallback does their work.
fn state_enter(workgroup: u32) -> u32 { return workgroup; }
//$ endif

// Reads the epoch; called by the invocations that post or peek, before they do.
fn state_begin() { epoch = atomicLoad(&control[2]); }

// Counts the calling workgroup as finished, when none of it will post again; true for the last one of `workgroups`. One
// invocation calls it.
fn state_count_finished(workgroups: u32) -> bool { return atomicAdd(&control[1], 1u) == workgroups - 1u; }

// Prepares the next dispatch: first ticket, next epoch. Called by one invocation of the last workgroup, when nobody will
// look at the state again.
fn state_next_epoch() {
  atomicStore(&control[0], 0u);
  atomicStore(&control[1], 0u);
  atomicStore(&control[2], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
}
