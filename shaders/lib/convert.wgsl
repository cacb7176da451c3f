// From items ({{ source.name }}) to accumulators, and from accumulators to results ({{ sink.name }}).
//$ if source.bytes == 1
alias SourceQuad = u32;
//$ elif source.bytes == 2
alias SourceQuad = vec2<u32>;
//$ elif source.bytes == 4
alias SourceQuad = vec4<u32>;
//$ else
// Four items are an array, which has no name: naga takes a named one for another type than that of the loads.
//$ endif
//$ set word = "vec2<u32>" if source.bytes == 8 else "u32"

//$ if acc.words == 2 and acc.key
// Ordered codes: their unsigned order equals the order of the numbers. A NaN gets the code that wins.
fn coded(x: Acc) -> Acc {
//$ if acc.order == "f"
  if ((x.y & 0x7fffffffu) > 0x7ff00000u || ((x.y & 0x7fffffffu) == 0x7ff00000u && x.x != 0u)) {
    return Acc({{ "0u" if acc.key == "min" else "0xffffffffu" }});
  }
  let sign = bitcast<u32>(bitcast<i32>(x.y) >> 31u);
  return x ^ Acc(sign, sign | 0x80000000u);
//$ elif acc.order == "i"
  return x ^ Acc(0u, 0x80000000u);
//$ else
  return x;
//$ endif
}
fn decoded(x: Acc) -> Acc {
//$ if acc.order == "f"
  if (all(x == Acc({{ "0u" if acc.key == "min" else "0xffffffffu" }}))) { return Acc(0u, 0x7ff80000u); }
  let sign = bitcast<u32>(bitcast<i32>(~x.y) >> 31u);
  return x ^ Acc(sign, sign | 0x80000000u);
//$ else
  return coded(x);
//$ endif
}
//$ endif

//$ if source.kind != "raw"
// ---- the number that an item is
//$ if source.bytes == 8
alias Number = vec2<u32>;
fn number(word: Number) -> Number { return word; }
//$ elif source.kind == "f"
alias Number = f32;
fn number(word: u32) -> Number { return {{ "unpack2x16float(word).x" if source.bytes == 2 else "bitcast<f32>(word)" }}; }
fn number4(words: SourceQuad) -> vec4<Number> {
  return {{ "vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y))" if source.bytes == 2 else "bitcast<vec4<f32>>(words)" }};
}
//$ else
alias Number = {{ "i32" if source.kind == "i" else "u32" }};
//$ set unused = 32 - 8 * source.bytes
//$ if source.bytes == 4
fn number(word: u32) -> Number { return bitcast<Number>(word); }
fn number4(words: SourceQuad) -> vec4<Number> { return bitcast<vec4<Number>>(words); }
//$ elif source.kind == "b"
fn number(word: u32) -> Number { return select(0u, 1u, word != 0u); }
fn number4(words: SourceQuad) -> vec4<Number> {
  let bytes = vec4<u32>(words, words >> 8u, words >> 16u, words >> 24u) & vec4<u32>(0xffu);
  return select(vec4<u32>(0u), vec4<u32>(1u), bytes != vec4<u32>(0u));
}
//$ else
//$ if source.bytes == 1
//$ set shifted = "vec4<u32>(words << 24u, words << 16u, words << 8u, words)"
//$ else
//$ set shifted = "vec4<u32>(words.x << 16u, words.x, words.y << 16u, words.y)"
//$ endif
fn number(word: u32) -> Number { return bitcast<Number>(word << {{ unused }}u) >> {{ unused }}u; }
fn number4(words: SourceQuad) -> vec4<Number> {
  return bitcast<vec4<Number>>({{ shifted }}) >> vec4<u32>({{ unused }}u);
}
//$ endif
//$ endif

// ---- the accumulator of a number
//$ if acc.words == 2
fn widened(x: Number) -> Acc {
//$ if acc.number == "f64"
//$ if source.kind == "f" and source.bytes == 8
  return x;
//$ elif source.bytes == 8
  let bits = (u64(x.y) << 32u) | u64(x.x);
  return words_of(f64({{ "bitcast<i64>(bits)" if source.kind == "i" else "bits" }}));
//$ else
  return words_of(f64(x));
//$ endif
//$ elif source.bytes == 8
  return x;
//$ elif source.kind == "i"
  return Acc(bitcast<u32>(x), bitcast<u32>(x >> 31u));
//$ else
  return Acc(x, 0u);
//$ endif
}
//$ if acc.key
fn lift(word: {{ word }}) -> Acc { return coded(widened(number(word))); }
//$ else
fn lift(word: {{ word }}) -> Acc { return widened(number(word)); }
//$ endif
//$ if source.bytes == 8
fn lift4(rows: array<vec4<u32>, 2>) -> Quad {
  return Quad(lift(rows[0].xy), lift(rows[0].zw), lift(rows[1].xy), lift(rows[1].zw));
}
//$ else
fn lift4(words: SourceQuad) -> Quad {
  let x = number4(words);
//$ set code = "coded(widened(x.%s))" if acc.key else "widened(x.%s)"
  return Quad({{ code % "x" }}, {{ code % "y" }}, {{ code % "z" }}, {{ code % "w" }});
}
//$ endif
//$ elif acc.key
// Ordered keys: their unsigned order equals the order of the floats, −0 below +0. A NaN gets the key that wins.
fn key(x: f32) -> Acc {
  let word = bitcast<u32>(x);
  let key = word ^ select(0x80000000u, 0xffffffffu, (word >> 31u) == 1u);
  return select(key, {{ "0u" if acc.key == "min" else "0xffffffffu" }}, (word & 0x7fffffffu) > 0x7f800000u);
}
fn lift(word: u32) -> Acc { return key(f32(number(word))); }
fn lift4(words: SourceQuad) -> Quad {
  let x = vec4<f32>(number4(words));
  return Quad(key(x.x), key(x.y), key(x.z), key(x.w));
}
//$ else
// As in numpy an item has the datatype of the results before it is combined: small ones wrap.
//$ set wraps = source.bytes > acc.bytes or (source.kind, acc.order) == ("i", "u") or (source.bytes == acc.bytes and (source.kind, acc.order) == ("u", "i"))
//$ set cut = 8 * (4 - acc.bytes) if acc.bytes < 4 and wraps else 0
//$ set wrap = "(%%s << %du) >> %du" % (cut, cut) if cut and acc.order != "f" else "%s"
//$ set wrap4 = "(%%s << vec4<u32>(%du)) >> vec4<u32>(%du)" % (cut, cut) if wrap != "%s" else "%s"
//$ if source.bytes == 8
fn lift(word: vec2<u32>) -> Acc { return {{ wrap % "bitcast<Acc>(word.x)" }}; }
fn lift4(rows: array<vec4<u32>, 2>) -> Quad {
  return {{ wrap4 % "bitcast<Quad>(vec4<u32>(rows[0].x, rows[0].z, rows[1].x, rows[1].z))" }};
}
//$ else
fn lift(word: u32) -> Acc { return {{ wrap % "Acc(number(word))" }}; }
fn lift4(words: SourceQuad) -> Quad { return {{ wrap4 % "Quad(number4(words))" }}; }
//$ endif
//$ endif
//$ endif

//$ if sink.kind != "raw"
// ---- the bits of a result
//$ if sink.bytes == 8
fn lower(x: Acc) -> vec2<u32> { return {{ "decoded(x)" if acc.key else "x" }}; }
fn lower4(x: Quad) -> array<vec4<u32>, 2> {
  return array<vec4<u32>, 2>(vec4<u32>(lower(x.x), lower(x.y)), vec4<u32>(lower(x.z), lower(x.w)));
}
//$ else
//$ if acc.key
fn plain(x: Acc) -> f32 {
  let word = x ^ select(0xffffffffu, 0x80000000u, (x >> 31u) == 1u);
  return bitcast<f32>(select(word, 0x7fc00000u, x == {{ "0u" if acc.key == "min" else "0xffffffffu" }}));
}
//$ elif fixed_order
fn plain(x: Acc) -> f32 { return bitcast<f32>(settled(x)); }
//$ else
fn plain(x: Acc) -> Acc { return x; }
//$ endif
//$ if sink.kind == "f" and sink.bytes == 2
//$ include "lib/half.wgsl"
fn lower(x: Acc) -> u32 { return half(plain(x)); }
//$ elif sink.bytes == 4
fn lower(x: Acc) -> u32 { return bitcast<u32>(plain(x)); }
//$ elif sink.kind == "b"
fn lower(x: Acc) -> u32 { return select(0u, 1u, bitcast<u32>(plain(x)) != 0u); }
//$ else
fn lower(x: Acc) -> u32 { return bitcast<u32>(plain(x)) & {{ "0xffu" if sink.bytes == 1 else "0xffffu" }}; }
//$ endif
//$ if sink.bytes == 4
fn lower4(x: Quad) -> vec4<u32> { return vec4<u32>(lower(x.x), lower(x.y), lower(x.z), lower(x.w)); }
//$ elif sink.bytes == 2
fn lower4(x: Quad) -> vec2<u32> {
  return vec2<u32>(lower(x.x) | (lower(x.y) << 16u), lower(x.z) | (lower(x.w) << 16u));
}
//$ else
fn lower4(x: Quad) -> u32 { return lower(x.x) | (lower(x.y) << 8u) | (lower(x.z) << 16u) | (lower(x.w) << 24u); }
//$ endif
//$ endif
//$ endif
