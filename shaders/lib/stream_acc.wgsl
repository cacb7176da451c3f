// What the tiles of a stream add up, and what is counted within a tile. Leaves behind the types Acc and Counts:
//   one mark    both are the number of marked items
//   two marks   both are the numbers of items with the first and with the second mark
//   runs        Acc is the number of heads, and the position of the last one, plus 1; Counts is the number of heads
alias Acc = {{ "vec2<u32>" if two or runs else "u32" }};
alias Counts = {{ "vec2<u32>" if two else "u32" }};
fn identity() -> Acc { return Acc(); }
//$ if runs
fn combine(a: Acc, b: Acc) -> Acc { return Acc(a.x + b.x, max(a.y, b.y)); }
fn counts_of(x: Acc) -> Counts { return x.x; }
fn with_counts(before: Acc, more: Counts) -> Acc { return Acc(before.x + more, before.y); }
// Positions in a window count from its first item; this gives those among all items.
fn from_window(x: Acc) -> Acc { return Acc(x.x, select(0u, params.first + x.y, x.y > 0u)); }
//$ else
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
fn counts_of(x: Acc) -> Counts { return x; }
fn with_counts(before: Acc, more: Counts) -> Acc { return before + more; }
fn from_window(x: Acc) -> Acc { return x; }
//$ endif
fn add(a: Counts, b: Counts) -> Counts { return a + b; }
// Items with any mark.
fn sum_of(x: Counts) -> u32 { return {{ "x.x + x.y" if two else "x" }}; }
//$ if words == 1
// As words in memory, see lib/accumulators.wgsl.
fn pack(x: Acc) -> u32 { return x; }
fn unpack(word: u32) -> Acc { return word; }
//$ endif
