// The bin of an item; one that no range of bins has, NO_BIN, where it is in none.
const NO_BIN: u32 = 0xffffffffu;
//$ if bin_kind == "shift"
// All bins have 2^shift integers; the last one also has `low + span`, where that is the upper end. A word below `low` is
// further than `span` above it, modulo 2^32.
fn bin_of(word: u32) -> u32 {
  let distance = word - params.low;
  return select(NO_BIN, min(distance >> params.shift, params.bins - 1u), distance <= params.span);
}
fn bins_of(words: vec4<u32>) -> vec4<u32> {
  let distance = words - vec4<u32>(params.low);
  let bins = min(distance >> vec4<u32>(params.shift), vec4<u32>(params.bins - 1u));
  return select(vec4<u32>(NO_BIN), bins, distance <= vec4<u32>(params.span));
}
//$ endif
