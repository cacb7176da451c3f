// The chained state of a kernel that counts: for each tile a word per counter, {epoch: 1 bit, inclusive: 1 bit, value: 30 bits}.
// One bit of epoch is enough, because every dispatch publishes every tile, idle ones too: a word of another epoch is of the
// previous dispatch. A tile publishes one value for each flag, so words with equal tags belong together. The words lie
// behind the four of lib/control.wgsl in one buffer; those of many tiles are `spread`, see lib/state.wgsl.
//$ set apart = constants.SPREAD_WORDS if spread else words
//$ include "lib/control.wgsl"
const EMPTY: u32 = 0u;      // nothing published in this epoch
const TOTAL: u32 = 1u;      // the tile's own total
const INCLUSIVE: u32 = 2u;  // the total of all tiles up to this one

struct Published { flag: u32, value: Acc }

// Testing only: the value that a tile writes which never publishes; even then every dispatch must write every word.
const NOTHING: u32 = 0x3fffffffu;
fn is_nothing(word: u32) -> bool { return STALL_EVERY > 0u && (word & NOTHING) == NOTHING; }

fn state_publish(tile: u32, flag: u32, value: Acc) {
  // The first epoch is 0, and unwritten words are 0, too: so the bit is the inverse.
  let tag = ((epoch ^ 1u) << 31u) | ((flag - TOTAL) << 30u) | select(0u, NOTHING, stalls(tile));
//$ for k in range(words)
  atomicStore(&states[{{ constants.CONTROL_WORDS + k }}u + {{ apart }}u * tile], tag | value{{ "[%d]" % k if words > 1 }});
//$ endfor
}
fn state_poll(tile: u32) -> Published {
//$ for k in range(words)
//$ set place = "&states[%du + %du * tile]" % (constants.CONTROL_WORDS + k, apart)
  let word_{{ k }} = {{ "atomicOr(%s, 0u)" % place if read_by_rmw else "atomicLoad(%s)" % place }};
//$ endfor
  let is_of_epoch = (word_0 >> 31u) == (epoch ^ 1u);
//$ if words == 1
  let ready = is_of_epoch && !is_nothing(word_0);
  let value = word_0 & NOTHING;
//$ else
  let ready = is_of_epoch && (word_0 >> 30u) == (word_1 >> 30u) && !(is_nothing(word_0) || is_nothing(word_1));
  let value = Acc(word_0 & NOTHING, word_1 & NOTHING);
//$ endif
  return Published(select(EMPTY, TOTAL + ((word_0 >> 30u) & 1u), ready), value);
}
