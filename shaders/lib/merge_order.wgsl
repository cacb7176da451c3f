// The order of a merge. Keys are held as their codes; `ranked` of two codes compares as the keys do.
//$ include "lib/key_code.wgsl"
fn ranked(code: Key) -> Key { return key_fixed(code); }
//$ if key_words == 1
fn less(a: Key, b: Key) -> bool { return a < b; }
//$ else
fn less(a: Key, b: Key) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
//$ endif
fn key_a(i: u32) -> Key { return key_encode(load_a(i)); }
fn key_b(i: u32) -> Key { return key_encode(load_b(i)); }

// How many keys each input has: the GPU may know it better than the host.
fn length_a() -> u32 { return min(params.n_a, params.capacity_a); }
fn length_b() -> u32 { return min(params.n_b, params.capacity_b); }
