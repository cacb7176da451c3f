// Group-by of keys with few bits: combines rows in a table of workgroup memory, which has a place for each key of a bucket.
// Rows come in order of the upper bits of their keys, so that each workgroup's part of them lies in few buckets: those keys whose
// upper bits are equal. Behind each bucket the workgroup adds what it has to a table in memory, and marks the keys that it had.
// There are two tables in memory, and the number of runs says which of them a run fills. It clears the other one, and the last
// workgroup to finish counts the run. So a run may follow another at once, and the kernel that reads looks at the number, too.
// All operators have 0 as identity: minima are maxima of words whose bits are flipped, and `masks` flips them.
// Forward progress: no workgroup waits for another. Bindings: params, the inputs, tables, and control.
// Params: n; blocks (workgroups); key_mask.

const VECS: u32 = {{ vecs }}u;
const TABLE_BITS: u32 = {{ table_bits }}u;
const TABLE_KEYS: u32 = 1u << TABLE_BITS;
// Keys of a table in memory, which has a word for each as a mark, and then those of the rows.
const KEYS: u32 = {{ 2 ** key_bits }}u;
const TABLE_WORDS: u32 = {{ 1 + words | length }}u * KEYS;
const RUNS: u32 = 0u;  // in control
const FINISHED: u32 = 1u;
var<workgroup> table_{{ loop.index0 }}: array<atomic<u32>, TABLE_KEYS>;  //$ for word in words
// A bit for each key that occurred.
var<workgroup> occurred: array<atomic<u32>, {{ 2 ** table_bits // 32 }}>;
//$ if key_bits > table_bits
var<workgroup> bucket_end: u32;
//$ endif
var<workgroup> runs: u32;

fn key_at(i: u32) -> u32 { return load_keys(i) & params.key_mask; }

fn add_row(key: u32, {{ parameters }}) {
  let place = key & (TABLE_KEYS - 1u);
  {{ word.atomic }}(&table_{{ loop.index0 }}[place], word_{{ loop.index0 }} ^ {{ word.mask }}u);  //$ for word in words
  let mark = 1u << (place & 31u);
  // Read first: most marks are there already.
  if ((atomicLoad(&occurred[place >> 5u]) & mark) == 0u) { atomicOr(&occurred[place >> 5u], mark); }
}
fn add_one(i: u32) { add_row(key_at(i), {{ loads }}); }

fn run(block: u32, local: u32) {
  // Whole quads, so that they are loaded at once.
  let rows = {{ used.n }};
  let part = ((rows + 3u) / 4u + params.blocks - 1u) / params.blocks * 4u;
  let end = min((block + 1u) * part, rows);
  var at = min(block * part, rows);
  if (local == 0u) { runs = atomicLoad(&control[RUNS]); }
  let table = (workgroupUniformLoad(&runs) & 1u) * TABLE_WORDS;
  for (var k = block * WORKGROUP_SIZE + local; k < TABLE_WORDS; k += params.blocks * WORKGROUP_SIZE) {
    atomicStore(&tables[TABLE_WORDS - table + k], 0u);
  }
  for (var k = local; k < TABLE_KEYS; k += WORKGROUP_SIZE) {
    atomicStore(&table_{{ loop.index0 }}[k], 0u);  //$ for word in words
    if (k < TABLE_KEYS / 32u) { atomicStore(&occurred[k], 0u); }
  }
  while (at < end) {
//$ if key_bits > table_bits
    let bucket = key_at(at) >> TABLE_BITS;
    if (local == 0u) {
      var low = at + 1u;
      var high = end;
      while (low < high) {
        let middle = low + (high - low) / 2u;
        if ((key_at(middle) >> TABLE_BITS) == bucket) { low = middle + 1u; } else { high = middle; }
      }
      bucket_end = low;
    }
    let stop = workgroupUniformLoad(&bucket_end);
//$ else
    let bucket = 0u;
    let stop = end;
    workgroupBarrier();
//$ endif
    // Rows before the first whole quad, and behind the last one.
    let first = (at + 3u) / 4u;
    let last = max(stop / 4u, first);
    if (local < 4u) {
      if (at + local < min(4u * first, stop)) { add_one(at + local); }
      if (4u * last + local < stop) { add_one(4u * last + local); }
    }
    for (var q = first + local; q < last; q += VECS * WORKGROUP_SIZE) {
//$ for v in range(vecs)
      let q_{{ v }} = min(q{{ " + %du * WORKGROUP_SIZE" % v if v }}, last - 1u);
      let keys_{{ v }} = load4_keys(4u * q_{{ v }}) & vec4<u32>(params.key_mask);
      let word_{{ loop.index0 }}_{{ v }} = load4_word_{{ loop.index0 }}(4u * q_{{ v }});  //$ for word in words
//$ endfor
//$ for v in range(vecs)
      if (q{{ " + %du * WORKGROUP_SIZE" % v if v }} < last) {
        add_row(keys_{{ v }}.{{ c }}, {{ parts | replace("@", v ~ "." ~ c) }});  //$ for c in "xyzw"
      }
//$ endfor
    }
    workgroupBarrier();
    for (var k = local; k < TABLE_KEYS; k += WORKGROUP_SIZE) {
      if ((atomicLoad(&occurred[k >> 5u]) & (1u << (k & 31u))) != 0u) {
        let place = table + bucket * TABLE_KEYS + k;
        atomicStore(&tables[place], 1u);
//$ for word in words
        {{ word.atomic }}(&tables[{{ loop.index }}u * KEYS + place], atomicLoad(&table_{{ loop.index0 }}[k]));
        atomicStore(&table_{{ loop.index0 }}[k], 0u);
//$ endfor
      }
    }
    workgroupBarrier();
    for (var k = local; k < TABLE_KEYS / 32u; k += WORKGROUP_SIZE) { atomicStore(&occurred[k], 0u); }
    workgroupBarrier();
    at = stop;
  }
  if (local == 0u && atomicAdd(&control[FINISHED], 1u) == params.blocks - 1u) {
    atomicStore(&control[FINISHED], 0u);
    atomicAdd(&control[RUNS], 1u);
  }
}
