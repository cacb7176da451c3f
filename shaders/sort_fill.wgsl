// Writes sorted keys of 8 bits by their counts alone: keys of one code are one key, so nothing needs to move. The histogram has
// found where the keys of each code begin. An invocation writes 16 keys at a time.
// Source: counting sort, by Seward (1954); see Knuth, "The art of computer programming", volume 3, 5.2.
// Forward progress: no workgroup waits for another. Bindings: params, begins, keys.
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
const CODES: u32 = 256u;
const ROWS: u32 = {{ rows }}u;
const ROW: u32 = 16u;  // keys
// The codes of the first and of the last key of the workgroup.
// Params: n (keys).

var<workgroup> ends: array<u32, 2>;

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
fn key_of(code: u32) -> u32 { return key_decode(code << 24u); }

fn run(number: u32, local: u32) {
  let first = number * ROWS * WORKGROUP_SIZE * ROW;
  if (first >= {{ used.n }}) { return; }
  let end = min(first + ROWS * WORKGROUP_SIZE * ROW, {{ used.n }});
  if (local < 2u) { ends[local] = code_at(select(first, end - 1u, local == 1u), 0u, CODES - 1u); }
  workgroupBarrier();
  let least = ends[0];
  let most = ends[1];
  for (var r = 0u; r < ROWS; r++) {
    let i = first + (r * WORKGROUP_SIZE + local) * ROW;
    if (i >= {{ used.n }}) { return; }
    let last = min(i + ROW, {{ used.n }}) - 1u;
    var code = code_at(i, least, most);
    var row = vec4<u32>(key_of(code) * 0x01010101u);
    // Most rows have one code.
    if (code < most && load_begins(code + 1u) <= last) {
      for (var w = 0u; w < 4u; w++) {
        var word = 0u;
        for (var j = 0u; j < 4u; j++) {
          let place = min(i + 4u * w + j, last);
          if (code < most && load_begins(code + 1u) <= place) { code = code_at(place, code + 1u, most); }
          word |= key_of(code) << (8u * j);
        }
        row[w] = word;
      }
    }
    if (i + ROW <= {{ used.n }}) {
      store_row_keys_output(i, row);
    } else {
      for (var j = 0u; j <= last - i; j++) {
        store_keys_output(i + j, (row[j / 4u] >> (8u * (j % 4u))) & 255u);
      }
    }
  }
}
