// Float64, item by item, of items in memory (form): their numbers, which of integers may be the distances from an origin;
// the squares of their distances from it; or quotients of sums: means and variances.
// Forward progress: no workgroup waits for another. Bindings: params, items, output; origin, mask, limit and counts where there are.
// Params: n (items of the window); blocks (workgroups that have work); first (first item of the window); length, step
// (an item's place in the origin is that in a row of `step` results, each of them of `length` / `step` items).
//$ if form in ("quotients", "moments")
// And number (how many items a sum is of, without counts); correction; least (the divisor where it is not positive).
//$ endif

//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ if sink.bytes == 8
//$ include "lib/float64.wgsl"
//$ endif
//$ set Out, kept = ("f64", "words_of_f64") if sink.bytes == 8 else ("f32", "bitcast<u32>")
fn place(i: u32) -> u32 {
  let at = i + params.first;
  return at / params.length * params.step + at % params.step;
}
fn is_nan(x: vec2<u32>) -> bool { return (x.y << 1u) + select(0u, 1u, x.x != 0u) > 0xffe00000u; }
//$ if form == "numbers"
fn number(i: u32) -> {{ Out }} {
//$ if source.bytes == 8 and source.kind != "f"
  var item = load_items(i);
//$ if "origin" in more
  let origin = load_origin(place(i));
  item = vec2<u32>(item.x - origin.x, item.y - origin.y - select(0u, 1u, item.x < origin.x));
//$ elif source.kind == "i"
  if ((item.y >> 31u) == 1u) {
    item = ~item;
    return -1 - ({{ Out }}(item.y) * 4294967296 + {{ Out }}(item.x));
  }
//$ endif
  return {{ Out }}(item.y) * 4294967296 + {{ Out }}(item.x);
//$ elif source.bytes == 8
  return f64_of(load_items(i));
//$ else
  return {{ Out }}(bitcast<{{ source.kind ~ "32" }}>(load_items(i)));
//$ endif
}
//$ elif form == "distances"
fn number(i: u32) -> f64 {
  let distance = f64_of(load_items(i)) - f64_of(load_origin(place(i)));
  return distance * distance;
}
//$ else
fn number(i: u32) -> f64 {
  let count = {{ "f64(load_counts(place(i)))" if "counts" in more else "f64_of(vec2<u32>(params.number_low, params.number_high))" }};
  let left = count - f64_of(vec2<u32>(params.correction_low, params.correction_high));
  let divisor = select(f64_of(vec2<u32>(params.least_low, params.least_high)), left, left > 0);
//$ if form == "quotients"
  return f64_of(load_items(i)) / divisor;
//$ else
  // Of the sums of distances from some number, and of their squares.
  let total = f64_of(load_items(2u * i));
  let squares = f64_of(load_items(2u * i + 1u));
  let is_too_large = (words_of_f64(squares).y & 0x7fffffffu) == 0x7ff00000u && (words_of_f64(total).y & 0x7ff00000u) != 0x7ff00000u;
  let around_mean = squares - total * (total / count);
  return select(select(around_mean, f64(0), around_mean < 0), squares, is_too_large) / divisor;
//$ endif
}
//$ endif
fn item_at(i: u32) -> Item {
  {{ "if (is_nan(load_items(i))) { return Item(); }" if skips_nan }}
  {{ "if (load_mask(i) == 0u) { return Item(); }" if "mask" in more }}
  {{ "if (i + params.first >= load_limit(0u)) { return Item(); }" if "limit" in more }}
  let x = number(i);
  return {{ kept }}({{ "sqrt(x)" if takes_root else "x" }});
}

//$ include "lib/quads.wgsl"
