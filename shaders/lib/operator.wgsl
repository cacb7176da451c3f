// The operator on accumulators (Acc), and the conversion between items and accumulators.
{{ "alias T = %s;" % datatype if not acc.struct }}
alias Acc = {{ acc.wgsl }};

//$ if acc.words == 1
alias Quad = vec4<Acc>;
fn quad_of(x: Acc) -> Quad { return vec4<Acc>(x); }
// From the parameters, because a constant infinity is an error in Tint.
fn identity() -> Acc { return bitcast<Acc>(params.identity_bits); }

// An accumulator as bits, for scratch memory.
fn pack(x: Acc) -> u32 { return bitcast<u32>(x); }
fn unpack(word: u32) -> Acc { return bitcast<Acc>(word); }
//$ else
// The words of an accumulator are a vector, so that they are shuffled and selected as one value.
struct Quad { x: Acc, y: Acc, z: Acc, w: Acc }
fn quad_of(x: Acc) -> Quad { return Quad(x, x, x, x); }
fn identity() -> Acc {
  return Acc(
    params.identity_bits,
    params.identity_bits_{{ k }},  //$ for k in range(1, acc.words)
  );
}
//$ if not acc.fields
//$ include "lib/wide.wgsl"
//$ endif
//$ endif
//$ if fixed_order
//$ include "lib/seal.wgsl"
//$ endif
// rounded: a product by itself, which a compiler must not contract with an addition where the order is fixed.
{{ "fn rounded(x: f32) -> f32 { return %s; }" % ("seal(x)" if fixed_order else "x") if op.rounded }}
//$ if op.doubles
//$ include "lib/float64.wgsl"
fn rounded64(x: f64) -> f64 { return {{ "f64_of(words_of_f64(x) ^ vec2<u32>(params.zero))" if fixed_order else "x" }}; }
//$ endif
//$ if acc.fields
//$ include "lib/fields.wgsl"
//$ elif op.expression
fn combine(a: Acc, b: Acc) -> Acc { return {{ "seal(%s)" % op.expression if fixed_order and acc.words == 1 else op.expression }}; }
//$ else
// ---- the user's text
{{ op.wgsl }}
// ---- end of the user's text
//$ endif
//$ if op.expression and acc.words == 1 and not acc.fields
fn combine4(a: Quad, b: Quad) -> Quad { return {{ "seal4(%s)" % op.expression if fixed_order else op.expression }}; }
//$ else
fn combine4(a: Quad, b: Quad) -> Quad {
  return Quad(combine(a.x, b.x), combine(a.y, b.y), combine(a.z, b.z), combine(a.w, b.w));
}
//$ endif

//$ include "lib/convert" ~ ("" if source is defined else "_words") ~ ".wgsl"
//$ if local
// Within a tile small integers are added in 32 bits, which hold the sum of 2¹⁶ items.
alias Local = Number;
alias LocalQuad = vec4<Local>;
fn local_combine(a: Local, b: Local) -> Local { return a + b; }
fn local_combine4(a: LocalQuad, b: LocalQuad) -> LocalQuad { return a + b; }
fn global_of(x: Local) -> Acc { return widened(x); }
fn global4_of(x: LocalQuad) -> Quad { return Quad(widened(x.x), widened(x.y), widened(x.z), widened(x.w)); }
//$ endif
