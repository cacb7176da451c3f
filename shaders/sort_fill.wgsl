// Writes sorted keys of 8 or 16 bits by their counts alone: keys of one code are one key, so nothing needs to move. Other kernels
// have found where the keys of each code begin. An invocation writes 16 bytes at a time.
// Source: counting sort, by Seward (1954); see Knuth, "The art of computer programming", volume 3, 5.2.
// Forward progress: no workgroup waits for another. Bindings: params, begins, keys{{ ", counts" if cleared }}.
// Params: n (keys).
//$ include "lib/key_code_1.wgsl"
const ROWS: u32 = {{ rows }}u;
const ROW: u32 = {{ 16 // key_bytes }}u;  // keys
const IN_WORD: u32 = {{ 4 // key_bytes }}u;
const BITS: u32 = {{ 8 * key_bytes }}u;
//$ set steps = [256, 1] if key_bytes == 2 else [1]
// The codes of the first and of the last key of the workgroup: 0, their upper bytes alone, all of them.
var<workgroup> ends: array<atomic<u32>, 6>;

// The code of the key at a place, from `least` to `most`: of those that begin up to it, the last one.
fn code_at(place: u32, least: u32, most: u32) -> u32 {
  var low = least;
  var high = most;
  while (low < high) {
    let middle = (low + high + 1u) / 2u;
    if (load_begins(middle) <= place) { low = middle; } else { high = middle - 1u; }
  }
  return low;
}
fn key_of(code: u32) -> u32 { return key_decode(code << (32u - BITS)); }

fn run(number: u32, local: u32) {
  let first = number * ROWS * WORKGROUP_SIZE * ROW;
  if (first >= {{ used.n }}) { return; }
  let end = min(first + ROWS * WORKGROUP_SIZE * ROW, {{ used.n }});
//$ if cleared
  // The counts of the next sort begin at 0.
  for (var k = number * WORKGROUP_SIZE + local; k < {{ cleared }}u; k += (({{ used.n }} - 1u) / (ROWS * WORKGROUP_SIZE * ROW) + 1u) * WORKGROUP_SIZE) { store_counts(k, 0u); }
//$ endif
  if (local < 6u) { atomicStore(&ends[local], 0u); }
//$ for step in steps
  workgroupBarrier();
  for (var e = {{ 2 * loop.index0 }}u; e < {{ 2 * loop.index }}u; e++) {
    let code = atomicLoad(&ends[e]) + {{ step }}u * local;
    if (load_begins(code) <= select(first, end - 1u, (e & 1u) == 1u)) { atomicMax(&ends[e + 2u], code); }
  }
//$ endfor
  workgroupBarrier();
  let least = atomicLoad(&ends[{{ 2 * steps | length }}]);
  let most = atomicLoad(&ends[{{ 2 * steps | length + 1 }}]);
  for (var r = 0u; r < ROWS; r++) {
    let i = first + (r * WORKGROUP_SIZE + local) * ROW;
    if (i >= {{ used.n }}) { return; }
    let last = min(i + ROW, {{ used.n }}) - 1u;
    var code = code_at(i, least, most);
    var row = vec4<u32>(key_of(code) * {{ "0x10001u" if key_bytes == 2 else "0x1010101u" }});
    // Most rows have one code.
    if (code < most && load_begins(code + 1u) <= last) {
      for (var w = 0u; w < 4u; w++) {
        var word = 0u;
        for (var j = 0u; j < IN_WORD; j++) {
          let place = min(i + IN_WORD * w + j, last);
          if (code < most && load_begins(code + 1u) <= place) { code = code_at(place, code + 1u, most); }
          word |= key_of(code) << (BITS * j);
        }
        row[w] = word;
      }
    }
    if (i + ROW <= {{ used.n }}) {
      store_row_keys_output(i, row);
    } else {
      for (var j = 0u; j <= last - i; j++) {
        store_keys_output(i + j, (row[j / IN_WORD] >> (BITS * (j % IN_WORD))) & ((1u << BITS) - 1u));
      }
    }
  }
}
