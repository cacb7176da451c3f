// Keys as the radix sort sees them: as codes, of which it sorts by one digit after another. Digits are those of
// `key_fixed` of a code.
const BINS: u32 = {{ constants.BINS }}u;

// The current digit: its first bit, its mask, and its word in the key.
var<private> digit_shift: u32;
var<private> digit_mask: u32;
//$ if key_words == 2
var<private> digit_high: bool;
//$ endif
fn use_digit(packed: u32) {
  digit_shift = packed & 31u;
  digit_mask = (1u << ((packed >> {{ constants.DIGIT_WIDTH_SHIFT }}u) & 15u)) - 1u;
//$ if key_words == 2
  digit_high = (packed >> {{ constants.DIGIT_WORD_SHIFT }}u) == 1u;
//$ endif
}

// Passes hand codes to one another: only the first one encodes, and only the last one decodes.
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
//$ if key_words == 1
fn key_digit(code: Key) -> u32 { return (code >> digit_shift) & digit_mask; }
//$ else
fn key_digit(code: Key) -> u32 { return (select(code.x, code.y, digit_high) >> digit_shift) & digit_mask; }
//$ endif

// Where a pass reads and writes: 0 for a pass that is skipped, because all keys agree in its digit; otherwise the place of
// its source plus 4 × that of its destination. sort_histogram.wgsl decides it on the GPU.
const INPUT: u32 = 1u;
const OUTPUT: u32 = 2u;
const TEMPORARY: u32 = 3u;
// As a destination: the output of the last pass, which writes keys instead of codes.
const LAST: u32 = 1u;
// Index in the routes: where the bins of each digit begin.
const FIRST_BIN: u32 = {{ constants.ROUTES_FIRST_BIN }}u;
