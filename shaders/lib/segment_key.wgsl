// What a sort of segments ranks: the code of a key{{ ", and a tag: the number of its segment in the tile (upper half) and its first position there" if tagged }}.
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
const BINS: u32 = {{ constants.BINS }}u;
//$ set words = key_words + (1 if tagged else 0)
alias Ranked = {{ "u32" if words == 1 else "vec%d<u32>" % words }};
//$ set code = "item" if not tagged else "item.x" if key_words == 1 else "item.xy"

// The current digit: its first bit, its mask, and its word.
var<private> digit_shift: u32;
var<private> digit_mask: u32;
//$ if words > 1
var<private> digit_word: u32;
//$ endif
fn use_digit(packed: u32) {
  digit_shift = packed & 31u;
  digit_mask = (1u << ((packed >> {{ constants.DIGIT_WIDTH_SHIFT }}u) & 15u)) - 1u;
//$ if words > 1
  digit_word = packed >> {{ constants.DIGIT_WORD_SHIFT }}u;
//$ endif
}
fn ranked_digit(item: Ranked) -> u32 {
  let code = key_fixed({{ code }});
  let word = {{
    "code" if words == 1 else "select(code, item.y, digit_word == 1u)" if words == 2 and tagged
    else "select(code.x, code.y, digit_word == 1u)" if words == 2
    else "select(select(code.x, code.y, digit_word == 1u), item.z, digit_word == 2u)"
  }};
  return (word >> digit_shift) & digit_mask;
}
