// Parameters and storage of a kernel, and the only functions that read or write items. Every item is a 32-bit
// word here; `lift` and `lower` (lib/operator.wgsl) give it a type. An operand's offset travels in the parameters,
// so a view that starts anywhere in a buffer needs no other text; whether it can be reached as vec4 does.
struct Params {
//$ for field in params
  {{ field }}: u32,
//$ endfor
}
@group(0) @binding(0) var<uniform> params: Params;
//$ for buffer in buffers
@group(0) @binding({{ buffer.index }}) var<storage, {{ buffer.access }}> {{ buffer.var }}: {{ buffer.type }};
//$ endfor

//$ for operand in operands
//$ if operand.words == 2
// An item of 8 bytes, as its low and its high word.
fn load_{{ operand.name }}(i: u32) -> vec2<u32> {
//$ if operand.element == "vec2<u32>"
  return {{ operand.var }}[{{ operand.offset }} + i];
//$ else
  let k = 2u * ({{ operand.offset }} + i);
  return vec2<u32>({{ operand.var }}[k], {{ operand.var }}[k + 1u]);
//$ endif
}
//$ if operand.writable
fn store_{{ operand.name }}(i: u32, item: vec2<u32>) {
//$ if operand.element == "vec2<u32>"
  {{ operand.var }}[{{ operand.offset }} + i] = item;
//$ else
  let k = 2u * ({{ operand.offset }} + i);
  {{ operand.var }}[k] = item.x;
  {{ operand.var }}[k + 1u] = item.y;
//$ endif
}
//$ endif
//$ elif operand.element == "vec4<u32>"
fn load_{{ operand.name }}(i: u32) -> u32 {
  let k = {{ operand.offset }} + i;
  return {{ operand.var }}[k >> 2u][k & 3u];
}
// Items i to i + 3; i is a multiple of 4.
fn load4_{{ operand.name }}(i: u32) -> vec4<u32> {
  return {{ operand.var }}[({{ operand.offset }} + i) >> 2u];
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
fn load_{{ operand.name }}(i: u32) -> u32 {
  return {{ operand.var }}[{{ operand.offset }} + i];
}
fn load4_{{ operand.name }}(i: u32) -> vec4<u32> {
  let k = {{ operand.offset }} + i;
  return vec4<u32>({{ operand.var }}[k], {{ operand.var }}[k + 1u], {{ operand.var }}[k + 2u], {{ operand.var }}[k + 3u]);
}
//$ if operand.writable
fn store_{{ operand.name }}(i: u32, word: u32) {
  {{ operand.var }}[{{ operand.offset }} + i] = word;
}
fn store4_{{ operand.name }}(i: u32, words: vec4<u32>) {
  let k = {{ operand.offset }} + i;
  {{ operand.var }}[k] = words.x;
  {{ operand.var }}[k + 1u] = words.y;
  {{ operand.var }}[k + 2u] = words.z;
  {{ operand.var }}[k + 3u] = words.w;
}
//$ endif
//$ endif
//$ endfor
