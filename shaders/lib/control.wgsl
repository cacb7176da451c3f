// Counters that the workgroups of a dispatch share: tickets, finished workgroups, and the epoch, which tells this dispatch's
// state from that of the previous one.
override EPOCH_BITS: u32 = 30u;
// Testing only: every STALL_EVERY-th tile never publishes (0: all publish).
override STALL_EVERY: u32 = 0u;

var<private> epoch: u32;

fn stalls(tile: u32) -> bool { return STALL_EVERY != 0u && (tile + 1u) % max(STALL_EVERY, 1u) == 0u; }

// {{ control }}: [0] the next ticket, [1] finished workgroups, [2] the epoch.
//$ if tickets
var<workgroup> state_ticket: u32;

// Gives this workgroup a tile. Tickets are handed out in the order in which workgroups start, so every earlier
// tile belongs to a workgroup that has started.
fn state_enter(workgroup: u32) -> u32 {
  if (local == 0u) { state_ticket = atomicAdd(&{{ control }}[0], 1u); }
  return workgroupUniformLoad(&state_ticket);
}
//$ else
// The tile of this workgroup is its number. That saves a ticket's trip to memory, but nothing promises that the workgroups
// of earlier tiles have started. If they have not, the fallback does their work.
fn state_enter(workgroup: u32) -> u32 { return workgroup; }
//$ endif

// Reads the epoch. Invocations call it before they publish or poll.
fn state_begin() { epoch = atomicLoad(&{{ control }}[2]); }

// Counts the calling workgroup as finished; true for the last one of `workgroups`. One invocation calls it, after all
// invocations of the workgroup have published.
fn state_count_finished(workgroups: u32) -> bool { return atomicAdd(&{{ control }}[1], 1u) == workgroups - 1u; }

// Prepares the next dispatch: first ticket, next epoch. One invocation of the last workgroup calls it, when no workgroup
// will read the state again.
fn state_next_epoch() {
  atomicStore(&{{ control }}[0], 0u);
  atomicStore(&{{ control }}[1], 0u);
  atomicStore(&{{ control }}[2], (epoch + 1u) & ((1u << EPOCH_BITS) - 1u));
}
