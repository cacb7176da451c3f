// Items that are several numbers. Kernels hold their words, and the operator combines items (T) with the same bits.
//$ if acc.struct
struct T {
  {{ name }}: {{ type }},  //$ for name, type in acc.fields
}
//$ endif
fn item_of(words: Acc) -> T {
  return T(
    bitcast<{{ type }}>(words{{ "[%d]" % loop.index0 if acc.words > 1 }}),  //$ for name, type in acc.fields
  );
}
fn words_of(x: T) -> Acc {
  let words = Acc(
    bitcast<u32>(x.{{ name }}),  //$ for name, type in acc.fields
  );
//$ if fixed_order
  return words ^ Acc(params.zero);  // as in lib/seal.wgsl: the floats are rounded here
//$ else
  return words;
//$ endif
}
//$ if op.expression
fn combine_items(a: T, b: T) -> T { return {{ op.expression }}; }
//$ else
// ---- the user's text
{{ op.wgsl }}
// ---- end of the user's text
//$ endif
fn combine(a: Acc, b: Acc) -> Acc { return words_of(combine_items(item_of(a), item_of(b))); }
