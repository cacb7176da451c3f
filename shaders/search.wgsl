// output[i] = the place where queries[i] goes into sorted keys: numpy's searchsorted.
// {{ "Before" if side == "left" else "Behind" }} the keys that equal it.
// A search whose upper half works in workgroup memory. Each workgroup copies every 2^span_log2-th key there, and finds for
// each of its queries the span of keys to search further in global memory. The steps have no branches, since all queries
// take equally many, and an invocation has four searches in flight, so that it waits for memory once per step for all
// four. Neighbouring queries are searched by neighbouring invocations: sorted ones read the same memory.
// With samples, a step in global memory reads one vec4 and decides between four parts of a span: of samples that
// search_samples.wgsl has taken, which lie closely, and of the keys in the end. So there are half as many steps.
// Forward progress: no workgroup waits for another. Bindings: params, sorted, queries{{ ", sorter" if sorter }}{{ ", samples" if samples }}, output.
// Params: n (queries of the window); blocks (workgroups that have work); length (keys; at least 1); span_log2;
// table_length (keys in the table); table_step (the largest power of two up to table_length; 0 if that is 0); levels
// (of samples).

//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
const VECS: u32 = {{ vecs }}u;
const QUERIES: u32 = VECS * 4u;

var<workgroup> table: array<Key, {{ table_keys }}>;

fn code_of(item: Key) -> Key { return key_fixed(key_encode(item)); }
//$ if sorter
fn sorted_key(i: u32) -> Key { return code_of(load_sorted(min(load_sorter(i), params.length - 1u))); }
//$ else
fn sorted_key(i: u32) -> Key { return code_of(load_sorted(i)); }
//$ endif

//$ if key_words == 1
fn less(a: Key, b: Key) -> bool { return a < b; }
//$ else
fn less(a: Key, b: Key) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
//$ endif
// Whether a query goes behind a key.
//$ if either
// Of keys that descend those before a query are larger.
var<private> descends: bool;
fn is_before(key: Key, query: Key) -> bool {
  return {{ "less(key, query) != descends" if side == "left" else "less(query, key) == descends" }};
}
//$ elif side == "left"
fn is_before(key: Key, query: Key) -> bool { return less(key, query); }
//$ else
fn is_before(key: Key, query: Key) -> bool { return !less(query, key); }
//$ endif

fn is_table_before(k: u32, query: Key) -> bool {
  return k < params.table_length && is_before(table[k], query);
}
//$ if samples
// Keys i to i + 3, as far as there are any.
fn sorted_keys(i: u32) -> vec4<Key> {
  if (i + 4u <= params.length) {
    let keys = load4_sorted(i);
    return vec4<Key>(code_of(keys.x), code_of(keys.y), code_of(keys.z), code_of(keys.w));
  }
  let last = params.length - 1u;
  return vec4<Key>(sorted_key(min(i, last)), sorted_key(min(i + 1u, last)), sorted_key(min(i + 2u, last)), LAST_CODE);
}
// How many of the keys first to first + 2 of a level with `count` keys come before a query. The next one does not.
fn rank_of(keys: vec4<Key>, first: u32, count: u32, query: Key) -> u32 {
  var rank = select(0u, 1u, first < count && is_before(keys.x, query));
  rank += select(0u, 1u, first + 1u < count && is_before(keys.y, query));
  return rank + select(0u, 1u, first + 2u < count && is_before(keys.z, query));
}
//$ else
fn is_key_before(i: u32, query: Key) -> bool {
  let key = sorted_key(min(i, params.length - 1u));
  return i < params.length && is_before(key, query);
}
//$ endif

//$ if member
// Whether a query equals the key at its place; a NaN equals none.
fn is_member(at: u32, query: Key) -> u32 {
  let key = sorted_key(min(at, params.length - 1u));
  let equal = {{ "key == query" if key_words == 1 else "all(key == query)" }};
//$ if key_kind == "f"
  let is_number = {{ "query != LAST_CODE" if key_words == 1 else "any(query != LAST_CODE)" }};
  return select(0u, 1u, at < params.length && equal && is_number);
//$ else
  return select(0u, 1u, at < params.length && equal);
//$ endif
}
//$ endif

fn run(block: u32, local: u32) {
//$ if either
  let first = sorted_key(0u);
  descends = less(sorted_key(params.length - 1u), first);
//$ if key_kind == "f"
  // No comparison with NaN holds, so that numpy takes several of them as descending.
  descends = descends || (params.length > 1u && {{ "first == LAST_CODE" if key_words == 1 else "all(first == LAST_CODE)" }});
//$ endif
//$ endif
  // The last key of each whole span.
  for (var k = local; k < params.table_length; k += WORKGROUP_SIZE) {
    table[k] = sorted_key(((k + 1u) << params.span_log2) - 1u);
  }
  workgroupBarrier();
  for (var r = 0u; r < QUERIES; r += 4u) {
    let i = (block * QUERIES + r) * WORKGROUP_SIZE + local;
//$ for c in range(4)
    let i_{{ c }} = i + {{ c }}u * WORKGROUP_SIZE;
    let query_{{ c }} = code_of(load_queries(min(i_{{ c }}, params.n - 1u)));
//$ endfor
    // Keys before `at` come before the query; after a step of 2^k, those from at + 2^k - 1 on do not.
    var at = vec4<u32>(0u);
    for (var step = params.table_step; step > 0u; step >>= 1u) {
      let probe = at + step - 1u;
      at += select(vec4<u32>(0u), vec4<u32>(step), vec4<bool>(
        is_table_before(probe.{{ "xyzw"[c] }}, query_{{ c }}),  //$ for c in range(4)
      ));
    }
//$ if samples
    var begin = 0u;
    for (var level = params.levels; level > 0u; level--) {
      let count = params.length >> (2u * level);
      let end = begin + ((count + 3u) & ~3u);
      at <<= vec4<u32>(2u);
      let keys_{{ c }} = load4_samples(min(begin + at.{{ "xyzw"[c] }}, end - 4u));  //$ for c in range(4)
      at += vec4<u32>(
        rank_of(keys_{{ c }}, at.{{ "xyzw"[c] }}, count, query_{{ c }}),  //$ for c in range(4)
      );
      begin = end;
    }
    at <<= vec4<u32>(2u);
    let keys_{{ c }} = sorted_keys(at.{{ "xyzw"[c] }});  //$ for c in range(4)
    at += vec4<u32>(
      rank_of(keys_{{ c }}, at.{{ "xyzw"[c] }}, params.length, query_{{ c }}),  //$ for c in range(4)
    );
//$ else
    at <<= vec4<u32>(params.span_log2);
    for (var step = (1u << params.span_log2) >> 1u; step > 0u; step >>= 1u) {
      let probe = at + step - 1u;
      at += select(vec4<u32>(0u), vec4<u32>(step), vec4<bool>(
        is_key_before(probe.{{ "xyzw"[c] }}, query_{{ c }}),  //$ for c in range(4)
      ));
    }
//$ endif
//$ for c in range(4)
//$ if member
    if (i_{{ c }} < params.n) { store_output(i_{{ c }}, is_member(at.{{ "xyzw"[c] }}, query_{{ c }})); }
//$ else
    if (i_{{ c }} < params.n) { store_output(i_{{ c }}, at.{{ "xyzw"[c] }}); }
//$ endif
//$ endfor
  }
}
