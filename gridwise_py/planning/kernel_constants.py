"""Numbers that a plan and its shader text must agree on. Both read them here.

A shader file writes ``{{ constants.NAME }}``. Numbers that only one side needs stay there.
"""

from __future__ import annotations

#: Bits of ``params.flags``: input or output are accumulators, not items; a carry comes before the first tile; another
#: window follows.
RAW_INPUT = 1
RAW_OUTPUT = 2
HAS_CARRY = 4
MORE_FOLLOWS = 8

#: Values of a digit of a radix sort.
BINS = 256
#: A digit, packed: its first bit, from these bits on its width, and the word of the key that has it.
DIGIT_WIDTH_SHIFT = 5
DIGIT_WORD_SHIFT = 9
#: Words that several workgroups count in (lib/control.wgsl); sums of a histogram and states of a sort lie behind them.
CONTROL_WORDS = 4
#: From the state of a tile to that of the next one, where states are spread: 32 bytes.
SPREAD_WORDS = 8
#: The routes of a sort have a word per pass, at most 8; then where the bins of each digit begin.
ROUTES_FIRST_BIN = 8

#: All of them by name, for templates.
KERNEL_CONSTANTS = {name: value for name, value in globals().items() if name.isupper()}
