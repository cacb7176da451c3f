// The parameters of the kernels of a stream.
struct Params {
  n: u32,         // items of all windows; those behind the last window do not count
  first: u32,     // the window's first item
  capacity: u32,  // items of the window
  room: u32,      // items of an output
  tiles: u32,
//$ if ahead
  ahead: u32,     // tiles between the one that a workgroup counts and the earlier one that it writes
//$ endif
//$ if blocks
  tiles_per_block: u32,
  blocks: u32,    // workgroups that have work
//$ endif
  flags: u32,     // HAS_CARRY or 0
  {{ fields.values() | join("
  ") }}
}
