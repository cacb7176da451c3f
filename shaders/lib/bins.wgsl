// The bin of an item, for each of the arguments that say it; NO_BIN where it is in none.
const NO_BIN: u32 = 0xffffffffu;
//$ if searches
//$ include "lib/key_code_" ~ key_words ~ ".wgsl"
fn code_of(item: Key) -> Key { return key_fixed(key_encode(item)); }
fn less(a: Key, b: Key) -> bool { return {{ "a < b" if key_words == 1 else "a.y < b.y || (a.y == b.y && a.x < b.x)" }}; }
//$ elif key_words == 2
alias Key = vec2<u32>;
//$ endif

//$ for axis in axes
//$ set name = axis.name
//$ if axis.kind == "index" and key_words == 2
fn bin_of_{{ name }}(item: Key) -> u32 { return select(NO_BIN, item.x, item.y == 0u && item.x < params.{{ name }}_bins); }
//$ elif axis.kind == "index"
fn bin_of_{{ name }}(word: u32) -> u32 { return select(NO_BIN, word, word < params.{{ name }}_bins); }
fn bins_of_{{ name }}(words: vec4<u32>) -> vec4<u32> {
  return select(vec4<u32>(NO_BIN), words, words < vec4<u32>(params.{{ name }}_bins));
}
//$ elif axis.kind == "shift"
// All bins have 2^shift integers; the last one also has `low + span`, where that is the upper end. A word below `low` is
// further than `span` above it, modulo 2^32.
fn bin_of_{{ name }}(word: u32) -> u32 {
  let distance = word - params.{{ name }}_low;
  let bin = min(distance >> params.{{ name }}_shift, params.{{ name }}_bins - 1u);
  return select(NO_BIN, bin, distance <= params.{{ name }}_span);
}
fn bins_of_{{ name }}(words: vec4<u32>) -> vec4<u32> {
  let distance = words - vec4<u32>(params.{{ name }}_low);
  let bins = min(distance >> vec4<u32>(params.{{ name }}_shift), vec4<u32>(params.{{ name }}_bins - 1u));
  return select(vec4<u32>(NO_BIN), bins, distance <= vec4<u32>(params.{{ name }}_span));
}
//$ else
// Bin k has what is not below edge k, but below edge k + 1; the last one also has what equals the last edge.
//$ if axis.table_keys
var<workgroup> table_{{ name }}: array<Key, {{ axis.table_keys }}>;
fn edge_{{ name }}(k: u32) -> Key { return table_{{ name }}[k]; }
//$ else
fn edge_{{ name }}(k: u32) -> Key { return code_of(load_{{ name }}_edges(k)); }
//$ endif
fn bin_of_{{ name }}(item: Key) -> u32 {
  let code = code_of(item);
  if (less(code, edge_{{ name }}(0u)) || less(edge_{{ name }}(params.{{ name }}_used), code)) { return NO_BIN; }
  let last = params.{{ name }}_used - 1u;
//$ if axis.guess
  // Even bins: a guess in floats, which the edges correct. It rounds, so it is off by few, if at all.
//$ set low = "params.%s_low" % name
  let distance = {{ "bitcast<f32>(item) - bitcast<f32>(%s)" % low if axis.guess == "f32" else "f32(item - %s)" % low }};
  var k = min(u32(clamp(distance * bitcast<f32>(params.{{ name }}_scale), 0.0, 16777216.0)), last);
  while (k > 0u && less(code, edge_{{ name }}(k))) { k--; }
  while (k < last && !less(code, edge_{{ name }}(k + 1u))) { k++; }
//$ else
  var k = 0u;
  for (var step = params.{{ name }}_step; step > 0u; step >>= 1u) {
    let probe = min(k + step, last);
    if (!less(code, edge_{{ name }}(probe))) { k = probe; }
  }
//$ endif
  return k;
}
//$ if key_words == 1
fn bins_of_{{ name }}(words: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(
    bin_of_{{ name }}(words.x), bin_of_{{ name }}(words.y), bin_of_{{ name }}(words.z), bin_of_{{ name }}(words.w),
  );
}
//$ endif
//$ endif
//$ endfor

// Copies edges to workgroup memory.
fn bins_begin(local: u32) {
//$ for axis in axes
//$ if axis.table_keys
  for (var k = local; k <= params.{{ axis.name }}_used; k += WORKGROUP_SIZE) {
    table_{{ axis.name }}[k] = code_of(load_{{ axis.name }}_edges(k));
  }
//$ endif
//$ endfor
}

// The bin of item i: of several arguments a combination of theirs, and each channel has its own bins.
fn bin_at(i: u32) -> u32 {
//$ set first = axes[0].name
  var bin = bin_of_{{ first }}(load_{{ first }}(i));
//$ for axis in axes[1:]
  let bin_{{ axis.name }} = bin_of_{{ axis.name }}(load_{{ axis.name }}(i));
  bin = select(bin * params.{{ axis.name }}_bins + bin_{{ axis.name }}, NO_BIN, bin == NO_BIN || bin_{{ axis.name }} == NO_BIN);
//$ endfor
//$ if channels > 1
  bin = select(bin + (i + params.first_channel) % {{ channels }}u * params.{{ first }}_bins, NO_BIN, bin == NO_BIN);
//$ endif
  return bin;
}
//$ if key_words == 1
//$ set names = axes | map(attribute="name") | list
// The bins of items i to i + 3; the words are those of the arguments.
fn bins_at(i: u32, {{ names | join(": vec4<u32>, ") }}: vec4<u32>) -> vec4<u32> {
  let none = vec4<u32>(NO_BIN);
  var bins = bins_of_{{ first }}({{ first }});
//$ for axis in axes[1:]
  let bins_{{ axis.name }} = bins_of_{{ axis.name }}({{ axis.name }});
  let both = (bins != none) & (bins_{{ axis.name }} != none);
  bins = select(none, bins * params.{{ axis.name }}_bins + bins_{{ axis.name }}, both);
//$ endfor
//$ if channels > 1
  let channels = (vec4<u32>(i + params.first_channel) + vec4<u32>(0u, 1u, 2u, 3u)) % vec4<u32>({{ channels }}u);
  bins = select(bins + channels * params.{{ first }}_bins, none, bins == none);
//$ endif
  return bins;
}
//$ endif
