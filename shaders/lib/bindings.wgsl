// Parameters and storage of a kernel, and the only functions that read or write items. Every item is a 32-bit
// word here (or half of one, or two); `lift` and `lower` (lib/operator.wgsl) give it a type. An operand's offset travels
// in the parameters, so a view that starts anywhere in a buffer needs no other text; whether it can be reached as vec4
// does. `read` and `write` say how an element of a binding is reached: by atomics where halves of words are written.
struct Params {
//$ for field in params
  {{ field }}: u32,
//$ endfor
}
@group(0) @binding(0) var<uniform> params: Params;
//$ for buffer in buffers
@group(0) @binding({{ buffer.index }}) var<storage, {{ buffer.access }}> {{ buffer.var }}: {{ buffer.type }};
//$ endfor
//$ for part in segmented

// What is larger than a binding may be, or lies in chunks, is reached by {{ part.segments | length }} variables.
fn {{ part.var }}_read(k: u32) -> {{ part.value }} {
//$ for s in part.segments
//$ set found = s.read | format(s.at)
  {{ "return " ~ found ~ ";" if loop.last else "if (k < " ~ s.end ~ "u) { return " ~ found ~ "; }" }}
//$ endfor
}
//$ for kind in part.writes
fn {{ part.var }}_{{ kind }}(k: u32, value: {{ part.value }}) {
//$ for s in part.segments
//$ set done = s[kind] | format(s.at, "value")
  {{ done ~ ";" if loop.last else "if (k < " ~ s.end ~ "u) { " ~ done ~ "; return; }" }}
//$ endfor
}
//$ endfor
//$ endfor

//$ for operand in operands
// An item: a word, the low half of one, or a low and a high word.
fn load_{{ operand.name }}(i: u32) -> {{ operand.type }} {
  let k = {{ operand.offset }} + i;
  return {{ operand.item }};
}
//$ if by_segment is defined and operand.segments
// The segment in which all items from `first` to `last` lie, or how many there are. With it, a tile chooses only once.
fn segment_of_{{ operand.name }}(first: u32, last: u32) -> u32 {
  let begin = {{ operand.offset }} + first;
  let end = {{ operand.offset }} + last;
//$ for s in operand.segments
  if (begin >= {{ s.begin }}u && end < {{ s.end }}u) { return {{ loop.index0 }}u; }
//$ endfor
  return {{ operand.segments | length }}u;
}
//$ for s in operand.segments
fn load_{{ operand.name }}_segment_{{ loop.index0 }}(i: u32) -> {{ operand.type }} {
  let k = {{ operand.offset }} + i;
  return {{ s.item }};
}
//$ endfor
//$ endif
//$ if operand.item_bytes == 2
fn load_word_{{ operand.name }}(k: u32) -> u32 {
//$ if operand.element == "vec2<u32>"
  return {{ operand.read | format("k >> 1u") }}[k & 1u];
//$ else
  return {{ operand.read | format("k") }};
//$ endif
}
// Items i to i + 3, two to a word; i is a multiple of 4.
fn load4_{{ operand.name }}(i: u32) -> vec2<u32> {
//$ if operand.element == "vec2<u32>"
  return {{ operand.read | format("(" ~ operand.offset ~ " + i) >> 2u") }};
//$ else
  let k = {{ operand.offset }} + i;
  let words = vec2<u32>(load_word_{{ operand.name }}(k >> 1u), load_word_{{ operand.name }}((k >> 1u) + 1u));
  if ((k & 1u) == 0u) { return words; }
  return (words >> vec2<u32>(16u)) | (vec2<u32>(words.y, load_word_{{ operand.name }}((k >> 1u) + 2u)) << vec2<u32>(16u));
//$ endif
}
//$ if operand.writable
// Another invocation, or nobody, has the other half of the word: only the item's own bits change.
fn store_{{ operand.name }}(i: u32, item: u32) {
  let k = {{ operand.offset }} + i;
  let shift = 16u * (k & 1u);
  {{ operand.write_and | format("k >> 1u", "~(0xffffu << shift)") }};
  {{ operand.write_or | format("k >> 1u", "item << shift") }};
}
fn store4_{{ operand.name }}(i: u32, items: vec2<u32>) {
  let k = {{ operand.offset }} + i;
  if ((k & 1u) == 0u) {
    {{ operand.write | format("k >> 1u", "items.x") }};
    {{ operand.write | format("(k >> 1u) + 1u", "items.y") }};
    return;
  }
  store_{{ operand.name }}(i, items.x & 0xffffu);
  store_{{ operand.name }}(i + 1u, items.x >> 16u);
  store_{{ operand.name }}(i + 2u, items.y & 0xffffu);
  store_{{ operand.name }}(i + 3u, items.y >> 16u);
}
//$ endif
//$ elif operand.item_bytes == 8
//$ if operand.writable
fn store_{{ operand.name }}(i: u32, item: vec2<u32>) {
//$ if operand.element == "vec2<u32>"
  {{ operand.write | format(operand.offset ~ " + i", "item") }};
//$ else
  let k = 2u * ({{ operand.offset }} + i);
  {{ operand.write | format("k", "item.x") }};
  {{ operand.write | format("k + 1u", "item.y") }};
//$ endif
}
//$ endif
//$ elif operand.element == "vec4<u32>"
// Items i to i + 3; i is a multiple of 4.
fn load4_{{ operand.name }}(i: u32) -> vec4<u32> {
  return {{ operand.read | format("(" ~ operand.offset ~ " + i) >> 2u") }};
}
//$ if operand.writable
// Writes to components of one vec4 may touch all of it: one invocation must write all items of a vec4.
fn store_{{ operand.name }}(i: u32, word: u32) {
  let k = {{ operand.offset }} + i;
  {{ operand.var }}[k >> 2u][k & 3u] = word;
}
fn store4_{{ operand.name }}(i: u32, words: vec4<u32>) {
  {{ operand.var }}[({{ operand.offset }} + i) >> 2u] = words;
}
//$ endif
//$ else
fn load4_{{ operand.name }}(i: u32) -> vec4<u32> {
  return vec4<u32>(
//$ for j in range(4)
    load_{{ operand.name }}(i + {{ j }}u),
//$ endfor
  );
}
//$ if operand.writable
fn store_{{ operand.name }}(i: u32, word: u32) {
  let k = {{ operand.offset }} + i;
  {{ operand.write | format("k", "word") }};
}
fn store4_{{ operand.name }}(i: u32, words: vec4<u32>) {
//$ for c in "xyzw"
  store_{{ operand.name }}(i + {{ loop.index0 }}u, words.{{ c }});
//$ endfor
}
//$ endif
//$ endif
//$ endfor
