// Counts how many keys there are of each of 65,536. A workgroup counts those of its block that have the remainder of its range, two
// counters to a word of workgroup memory. It adds a counter to those of all before it can run over.
// Forward progress: no workgroup waits for another. Bindings: params, keys, counts.
// Params: n (keys); block_items; workgroups.
const RANGES: u32 = {{ ranges }}u;
const WORDS: u32 = 32768u / RANGES;
const ROUND: u32 = 49152u;  // keys: a counter of up to 16,383 has room for them
var<workgroup> counters: array<atomic<u32>, WORDS>;

fn put(key: u32, range: u32, amount: u32) {
  if (key % RANGES == range) { atomicAdd(&counters[key / RANGES % WORDS], select(amount, amount << 16u, key >= 0x8000u)); }
}

fn run(number: u32, local: u32) {
  let range = number % RANGES;
  let first = number / RANGES * params.block_items;
  let end = min(first + params.block_items, {{ used.n }});
  // A repeated dispatch adds nothing: who fills takes this mark away.
  let again = atomicLoad(&counts[65536u + number]);
  for (var k = local; k < WORDS; k += WORKGROUP_SIZE) { atomicStore(&counters[k], 0u); }
  for (var begin = first; begin < end; begin += ROUND) {
    workgroupBarrier();
    for (var i = begin + 8u * local; i < min(begin + ROUND, end); i += 8u * WORKGROUP_SIZE) {
      if (i + 8u > end) {
        for (var k = i; k < end; k++) { put(load_keys_input(k), range, 1u); }
        break;
      }
      let row = load_row_keys_input(i);
      if (all(row == vec4<u32>((row.x & 0xffffu) * 0x10001u))) { put(row.x & 0xffffu, range, 8u); continue; }
      put(row.{{ c }} & 0xffffu, range, 1u); put(row.{{ c }} >> 16u, range, 1u);  //$ for c in "xyzw"
    }
    workgroupBarrier();
    for (var k = local; k < WORDS; k += WORKGROUP_SIZE) {
      let both = atomicLoad(&counters[k]);
      if (both == 0u || (begin + ROUND < end && (both & 0xc000c000u) == 0u)) { continue; }
      atomicStore(&counters[k], 0u);
      atomicAdd(&counts[2u * WORDS * range + k], select(both & 0xffffu, 0u, again == 1u));
      atomicAdd(&counts[2u * WORDS * range + WORDS + k], select(both >> 16u, 0u, again == 1u));
    }
  }
  if (local == 0u && first < end) { atomicStore(&counts[65536u + number], 1u); }
}
