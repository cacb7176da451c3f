// The operator on accumulators (Acc), and the conversion between items and accumulators.
//$ if acc.struct
struct T {
  {{ name }}: {{ type }},  //$ for name, type in acc.fields
}
//$ else
alias T = {{ datatype }};
//$ endif
alias Acc = {{ acc.wgsl }};

//$ if acc.words == 1
alias Quad = vec4<Acc>;
fn quad_of(x: Acc) -> Quad { return vec4<Acc>(x); }
//$ else
// The words of an accumulator are a vector, so that they are shuffled and selected as one value.
struct Quad { x: Acc, y: Acc, z: Acc, w: Acc }
fn quad_of(x: Acc) -> Quad { return Quad(x, x, x, x); }
//$ if not acc.fields
//$ include "lib/wide.wgsl"
//$ endif
//$ endif
//$ if fixed_order
//$ include "lib/seal.wgsl"
//$ endif
//$ if op.rounded
// A product by itself, which a compiler must not contract with an addition where the order is fixed.
fn rounded(x: f32) -> f32 { return {{ "seal(x)" if fixed_order else "x" }}; }
//$ endif
//$ if acc.fields
//$ include "lib/fields.wgsl"
//$ elif op.expression and fixed_order and acc.words == 1
fn combine(a: Acc, b: Acc) -> Acc { return seal({{ op.expression }}); }
fn combine4(a: vec4<Acc>, b: vec4<Acc>) -> vec4<Acc> { return seal4({{ op.expression }}); }
//$ elif op.expression
fn combine(a: Acc, b: Acc) -> Acc { return {{ op.expression }}; }
//$ if acc.words == 1
fn combine4(a: Quad, b: Quad) -> Quad { return {{ op.expression }}; }
//$ endif
//$ else
// ---- the user's text
{{ op.wgsl }}
// ---- end of the user's text
//$ endif
//$ if not op.expression or acc.words > 1 or acc.fields
fn combine4(a: Quad, b: Quad) -> Quad {
  return Quad(combine(a.x, b.x), combine(a.y, b.y), combine(a.z, b.z), combine(a.w, b.w));
}
//$ endif

//$ if acc.words == 1
// From the parameters, because a constant infinity is an error in Tint.
fn identity() -> Acc { return bitcast<Acc>(params.identity_bits); }

// An accumulator as bits, for scratch memory.
fn pack(x: Acc) -> u32 { return bitcast<u32>(x); }
fn unpack(word: u32) -> Acc { return bitcast<Acc>(word); }
//$ else
fn identity() -> Acc {
  return Acc(
    params.identity_bits,
    params.identity_bits_{{ k }},  //$ for k in range(1, acc.words)
  );
}
//$ endif

//$ if source is defined
//$ include "lib/convert.wgsl"
//$ elif acc.key
// Ordered keys: their unsigned order equals the order of the floats, −0 below +0. A NaN gets the key that wins.
fn lift(word: u32) -> Acc {
  let key = word ^ select(0x80000000u, 0xffffffffu, (word >> 31u) == 1u);
  return select(key, {{ "0u" if acc.key == "min" else "0xffffffffu" }}, (word & 0x7fffffffu) > 0x7f800000u);
}
fn lower(x: Acc) -> u32 {
  let word = x ^ select(0xffffffffu, 0x80000000u, (x >> 31u) == 1u);
  return select(word, 0x7fc00000u, x == {{ "0u" if acc.key == "min" else "0xffffffffu" }});
}
fn lift4(words: vec4<u32>) -> vec4<Acc> {
  return vec4<Acc>(lift(words.x), lift(words.y), lift(words.z), lift(words.w));
}
fn lower4(x: vec4<Acc>) -> vec4<u32> { return vec4<u32>(lower(x.x), lower(x.y), lower(x.z), lower(x.w)); }
//$ else
fn lift(word: u32) -> Acc { return bitcast<Acc>(word); }
fn lift4(words: vec4<u32>) -> vec4<Acc> { return bitcast<vec4<Acc>>(words); }
//$ if fixed_order
fn lower(x: Acc) -> u32 { return settled(x); }
fn lower4(x: vec4<Acc>) -> vec4<u32> { return vec4<u32>(settled(x.x), settled(x.y), settled(x.z), settled(x.w)); }
//$ else
fn lower(x: Acc) -> u32 { return bitcast<u32>(x); }
fn lower4(x: vec4<Acc>) -> vec4<u32> { return bitcast<vec4<u32>>(x); }
//$ endif
//$ endif
//$ if local
// Within a tile small integers are added in 32 bits, which hold the sum of 2¹⁶ items.
alias Local = Number;
alias LocalQuad = vec4<Local>;
fn local_combine(a: Local, b: Local) -> Local { return a + b; }
fn local_combine4(a: LocalQuad, b: LocalQuad) -> LocalQuad { return a + b; }
fn global_of(x: Local) -> Acc { return widened(x); }
fn global4_of(x: LocalQuad) -> Quad { return Quad(widened(x.x), widened(x.y), widened(x.z), widened(x.w)); }
//$ endif
