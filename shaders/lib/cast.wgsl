// cast_{{ name }}: an item of {{ source.name }} as one of {{ sink.name }}, as numpy's astype converts it.
//$ set In = "vec2<u32>" if source.bytes == 8 else "u32"
//$ set Out = "vec2<u32>" if sink.bytes == 8 else "u32"
//$ set unused = 32 - 8 * source.bytes
//$ if source.name == sink.name
fn cast_{{ name }}(item: {{ In }}) -> {{ Out }} { return item; }
//$ elif source.kind != "f" and sink.kind in "iu" and source.bytes <= 4 and sink.bytes <= 4
fn cast_{{ name }}(item: u32) -> u32 {
//$ if source.kind == "i" and source.bytes < 4
  let word = bitcast<u32>(bitcast<i32>(item << {{ unused }}u) >> {{ unused }}u);
//$ elif source.kind == "b"
  let word = select(0u, 1u, item != 0u);
//$ else
  let word = item;
//$ endif
  return {{ "word" if sink.bytes == 4 else "word & 0xffu" if sink.bytes == 1 else "word & 0xffffu" }};
}
//$ else
fn number_{{ name }}(item: {{ In }}) -> Number {
//$ if source.kind == "b"
  return Number(vec2<u32>(select(0u, 1u, item != 0u), 0u), 0, false, FINITE);
//$ elif source.kind == "u"
  return Number({{ "item" if source.bytes == 8 else "vec2<u32>(item, 0u)" }}, 0, false, FINITE);
//$ elif source.kind == "i" and source.bytes == 8
  let negative = (item.y >> 31u) == 1u;
  return Number(select(item, negate64(item), negative), 0, negative, FINITE);
//$ elif source.kind == "i"
  let x = bitcast<i32>(item << {{ unused }}u) >> {{ unused }}u;
  return Number(vec2<u32>(bitcast<u32>(select(x, -x, x < 0)), 0u), 0, x < 0, FINITE);
//$ else
//$ set digits, most = {2: (11, 31), 4: (24, 255), 8: (53, 2047)}[source.bytes]
//$ if source.bytes == 8
  let exponent = (item.y >> 20u) & 0x7ffu;
  let fraction = vec2<u32>(item.x, item.y & 0xfffffu);
  let leading = vec2<u32>(0u, select(0u, 0x100000u, exponent != 0u));
  let negative = (item.y >> 31u) == 1u;
//$ else
  let exponent = (item >> {{ digits - 1 }}u) & {{ most }}u;
  let fraction = vec2<u32>(item & {{ 2 ** (digits - 1) - 1 }}u, 0u);
  let leading = vec2<u32>(select(0u, {{ 2 ** (digits - 1) }}u, exponent != 0u), 0u);
  let negative = (item >> {{ 8 * source.bytes - 1 }}u) == 1u;
//$ endif
  let special = select(INFINITE, NAN, any(fraction != vec2<u32>(0u)));
  let e = max(i32(exponent), 1) - {{ most // 2 + digits - 1 }};
  return Number(fraction | leading, e, negative, select(FINITE, special, exponent == {{ most }}u));
//$ endif
}
fn cast_{{ name }}(item: {{ In }}) -> {{ Out }} {
  let x = number_{{ name }}(item);
//$ if sink.kind == "b"
  return select(0u, 1u, x.kind != FINITE || any(x.m != vec2<u32>(0u)));
//$ elif sink.kind != "f"
  let whole = integer_of(x);
  return {{ {1: "whole.x & 0xffu", 2: "whole.x & 0xffffu", 4: "whole.x", 8: "whole"}[sink.bytes] }};
//$ elif sink.bytes == 8
  return float_bits(x, 53u, 1023) | vec2<u32>(0u, select(0u, 0x80000000u, x.negative));
//$ else
//$ set digits, bias = {2: (11, 15), 4: (24, 127)}[sink.bytes]
  return float_bits(x, {{ digits }}u, {{ bias }}).x | select(0u, {{ 2 ** (8 * sink.bytes - 1) }}u, x.negative);
//$ endif
}
//$ endif
