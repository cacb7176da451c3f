// The chained state of a pass: a word per tile and bin, {epoch: 1 bit, inclusive: 1 bit, keys: 30 bits}. One bit of epoch
// is enough, because every dispatch publishes every tile: a word of another epoch is of the previous one. The words lie
// behind the four of lib/control.wgsl in one buffer, so that a pass needs at most eight buffers.
//$ include "lib/control.wgsl"
const COUNT: u32 = 0u;       // the keys of this tile
const INCLUSIVE: u32 = 1u;   // plus the start of the bin and the keys of all earlier tiles

fn digit_publish(tile: u32, bin: u32, flag: u32, value: u32) {
  // The first epoch is 0, and unwritten words are 0, too: so the bit is the inverse.
  let fresh = select(epoch ^ 1u, epoch, stalls(tile));
  atomicStore(&states[{{ constants.CONTROL_WORDS }}u + tile * BINS + bin], (fresh << 31u) | (flag << 30u) | value);
}
fn digit_poll(tile: u32, bin: u32) -> u32 {
//$ if read_by_rmw
  return atomicOr(&states[{{ constants.CONTROL_WORDS }}u + tile * BINS + bin], 0u);
//$ else
  return atomicLoad(&states[{{ constants.CONTROL_WORDS }}u + tile * BINS + bin]);
//$ endif
}
fn digit_is_published(word: u32) -> bool { return (word >> 31u) == (epoch ^ 1u); }
fn digit_inclusive(word: u32) -> bool { return (word & 0x40000000u) != 0u; }
fn digit_value(word: u32) -> u32 { return word & 0x3fffffffu; }
