// The items among which a top-k looks, as codes of which the smallest win: all items of a window, or those of listed groups.
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
//$ if key_words == 1
const NO_CODE: Key = 0xffffffffu;
fn less(a: Key, b: Key) -> bool { return a < b; }
fn same(a: Key, b: Key) -> bool { return a == b; }
fn least(a: Key, b: Key) -> Key { return min(a, b); }
//$ else
const NO_CODE: Key = vec2<u32>(0xffffffffu);
fn less(a: Key, b: Key) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn same(a: Key, b: Key) -> bool { return all(a == b); }
fn least(a: Key, b: Key) -> Key { return select(b, a, less(a, b)); }
//$ endif
fn code_of(item: Key) -> Key { return key_fixed(key_encode(item)); }
//$ if listed
// Item j of the listed groups is this item of the input. Groups have 2^group_log2 items.
fn place_of(j: u32) -> u32 {
  return (load_list(j >> params.group_log2) << params.group_log2) | (j & ((1u << params.group_log2) - 1u));
}
//$ endif
