// The chained state of a single-pass scan: one word {epoch, flag, value} per tile. It is read and written as a whole,
// because WGSL's atomics are relaxed and promise no order between two words. Two forms:
//   u64     one 64-bit atomic: value in the low half, epoch and flag in the high half
//   u32x2   two 32-bit atomics, each with 16 bits of the value, the epoch and the flag; a pair whose tags differ is
//           being written and counts as unpublished
// The epoch tells this dispatch's words from those of the previous one. It lives in the buffer, and the last workgroup to
// finish increments it, so nothing needs clearing between dispatches. It may wrap: every dispatch publishes every tile, so
// a word of another epoch is of the previous one, never older.
// States of many tiles are `spread`: while some tiles publish, others poll their neighbours.
const EMPTY: u32 = 0u;      // nothing published in this epoch
const TOTAL: u32 = 1u;      // the tile's own total
const INCLUSIVE: u32 = 2u;  // the total of all tiles up to this one

//$ include "lib/control.wgsl"

//$ set posted = chain if chain is defined else none
//$ set words = posted.words if posted else acc.words if acc is defined else 1
//$ set Value = posted.type if posted else "Acc"
//$ set read = ("atomicOr(%s, 0lu)" if state == "u64" else "atomicOr(%s, 0u)") if read_by_rmw else "atomicLoad(%s)"
//$ if words > 1
// An accumulator of several words has such a word, or pair, for each. All have the tag; while tags differ, the accumulator is
// being written and counts as unpublished. A tile publishes one value for each tag, so equal tags mean one value.
//$ endif
struct Published { flag: u32, value: {{ Value }} }

fn state_tag(flag: u32) -> u32 { return (epoch << 2u) | flag; }

//$ set parts = words if state == "u64" else 2 * words
//$ set apart = [parts, constants.SPREAD_WORDS // (2 if state == "u64" else 1) if spread is defined and spread else 0] | max
//$ set place = "&states[%du * tile + %%du]" % apart
fn state_publish(tile: u32, flag: u32, value: {{ Value }}) {
  if (stalls(tile)) { return; }
//$ for k in range(words)
//$ set bits = "value[%d]" % k if words > 1 else "pack(value)"
//$ if state == "u64"
  atomicStore({{ place % k }}, (u64(state_tag(flag)) << 32u) | u64({{ bits }}));
//$ else
  atomicStore({{ place % (2 * k) }}, (state_tag(flag) << 16u) | ({{ bits }} & 0xffffu));
  atomicStore({{ place % (2 * k + 1) }}, (state_tag(flag) << 16u) | ({{ bits }} >> 16u));
//$ endif
//$ endfor
}
fn state_poll(tile: u32) -> Published {
//$ for k in range(parts)
  let word_{{ k }} = {{ read % (place % k) }};
  let tag_{{ k }} = {{ "u32(word_%d >> 32u)" % k if state == "u64" else "word_%d >> 16u" % k }};
//$ endfor
  let ready = (tag_0 >> 2u) == epoch
    && tag_{{ k }} == tag_0  //$ for k in range(1, parts)
  ;
  return Published(select(EMPTY, tag_0 & 3u, ready), {{ Value if words > 1 else "unpack" }}(
//$ for k in range(words)
//$ if state == "u64"
    u32(word_{{ k }} & 0xfffffffflu),
//$ else
    (word_{{ 2 * k }} & 0xffffu) | (word_{{ 2 * k + 1 }} << 16u),
//$ endif
//$ endfor
  ));
}
