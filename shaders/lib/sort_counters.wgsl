// Counts digits of keys in workgroup memory, in several copies, so that lanes with equal digits collide less often.
const COPIES: u32 = {{ copies }}u;
const DIGITS: u32 = {{ digits }}u;
const CHUNK_ITEMS: u32 = {{ chunk_items }}u;  // keys per invocation that are loaded at once
var<workgroup> counters: array<atomic<u32>, COPIES * DIGITS * BINS>;

var<private> lane: u32;
var<private> totals: array<u32, DIGITS>;

fn count_key(encoded: Key) {
  let code = key_fixed(encoded);
  let copy = (lane & (COPIES - 1u)) * DIGITS * BINS;
//$ for d in range(digits)
  use_digit(params.digit_{{ d }});
  atomicAdd(&counters[copy + {{ d * constants.BINS }}u + key_digit(code)], 1u);
//$ endfor
}

// Adds the counters of this invocation's bin to its totals, and sets them to 0.
fn add_up() {
  workgroupBarrier();
  if (lane < BINS) {
//$ for d in range(digits)
    totals[{{ d }}] += atomicExchange(&counters[{{ (c * digits + d) * constants.BINS }}u + lane], 0u);  //$ for c in range(copies)
//$ endfor
  }
  workgroupBarrier();
}

// Counts the keys from `first` up to but without `end`. `totals` gets the counts of this invocation's bin.
//$ for place in places
//$ set code_of = "key_encode" if place == "input" else "key_read"
fn count_range_{{ place }}(first: u32, end: u32) {
  for (var chunk = first; chunk < end; chunk += WORKGROUP_SIZE * CHUNK_ITEMS) {
//$ if vec4
    let i = chunk + lane * 4u;
    if (chunk + WORKGROUP_SIZE * CHUNK_ITEMS <= end) {
      let keys_{{ v }} = load4_keys_{{ place }}(i + {{ 4 * v }}u * WORKGROUP_SIZE);  //$ for v in range(chunk_items // 4)
//$ for v in range(chunk_items // 4)
      count_key({{ code_of }}(keys_{{ v }}.{{ c }}));  //$ for c in "xyzw"
//$ endfor
    } else {
      for (var k = chunk + lane; k < end; k += WORKGROUP_SIZE) { count_key({{ code_of }}(load_keys_{{ place }}(k))); }
    }
//$ elif in_rows
    // Keys of 8 or 16 bits, 16 bytes at a time.
    if (chunk + WORKGROUP_SIZE * CHUNK_ITEMS <= end) {
//$ set per_row = 16 // key_bytes
//$ for v in range(chunk_items // per_row)
      let row_{{ v }} = load_row_keys_{{ place }}(chunk + ({{ v }}u * WORKGROUP_SIZE + lane) * {{ per_row }}u);
//$ endfor
//$ for v in range(chunk_items // per_row)
//$ for c in "xyzw"
//$ for j in range(4 // key_bytes)
      count_key({{ code_of }}((row_{{ v }}.{{ c }} >> {{ 8 * key_bytes * j }}u) & {{ 2 ** (8 * key_bytes) - 1 }}u));
//$ endfor
//$ endfor
//$ endfor
    } else {
      for (var k = chunk + lane; k < end; k += WORKGROUP_SIZE) { count_key({{ code_of }}(load_keys_{{ place }}(k))); }
    }
//$ else
    let end_of_chunk = min(end, chunk + WORKGROUP_SIZE * CHUNK_ITEMS);
    for (var k = chunk + lane; k < end_of_chunk; k += WORKGROUP_SIZE) { count_key({{ code_of }}(load_keys_{{ place }}(k))); }
//$ endif
  }
  add_up();
}
//$ endfor

fn count_begin(lanes: Lanes) {
  enter(lanes);
  lane = sg_id * sg_size + sg_lane;
  for (var i = lane; i < COPIES * DIGITS * BINS; i += WORKGROUP_SIZE) { atomicStore(&counters[i], 0u); }
  workgroupBarrier();
}
