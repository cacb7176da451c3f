// The sums of the distances of a tile's items from one number, and of the squares of these, in float64. An item is two words of
// itself and two of that number, the same for all. It is read once for a block: then nothing needs those of the others.
//$ set Out = "f64" if distances_of == "f64" else "u64" if distances_of in ("i64", "u64") else distances_of
var<private> origin: vec2<u32>;

fn begin_block() { origin = item(0u).zw; }
fn padding() -> Acc { return Acc(origin, origin); }

fn number(x: vec2<u32>) -> {{ Out }} {
  return {{ {"f64": "f64_of(x)", "u64": "(u64(x.y) << 32u) | u64(x.x)"}.get(Out) or "bitcast<%s>(x.x)" % Out }};
}
fn distance(x: Acc) -> f64 {
//$ if Out == "u64"
  // Exact before it is a float.
  let item = number(x.xy);
  let from_it = number(origin);
  let is_above = {{ "bitcast<i64>(item) >= bitcast<i64>(from_it)" if distances_of == "i64" else "item >= from_it" }};
  return select(-f64(from_it - item), f64(item - from_it), is_above);
//$ else
  return f64(number(x.xy)) - f64(number(origin));
//$ endif
}

fn with_tile(sum: Acc, tile: u32, is_first: bool) -> Acc {
  var total = f64(0);
  var squares = f64(0);
//$ for x in components("tile_items", vecs)
  let distance_{{ loop.index }} = distance({{ x }});
  total = rounded64(total + distance_{{ loop.index }});
  squares = rounded64(squares + rounded64(distance_{{ loop.index }} * distance_{{ loop.index }}));
//$ endfor
  return combine(sum, Acc(words_of_f64(total), words_of_f64(squares)));
}
