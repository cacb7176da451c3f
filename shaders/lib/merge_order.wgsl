// The order of a merge, is_before(a, b), and keys in memory: key_NAME(i) of each input, store_key(i, key) of the output.
//$ include "lib/merge_order_by_" ~ ("function" if less else "codes") ~ ".wgsl"
// As expressions give their items.
alias Acc = Key;
struct Quad { x: Acc, y: Acc, z: Acc, w: Acc }
