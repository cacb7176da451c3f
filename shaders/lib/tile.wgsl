// A tile in registers: tile_load leaves behind its items as accumulators, with the identity for those past the end.
// The template writes out every row: a driver that does not unroll a loop over them keeps the items in slow memory
// instead of registers (half the speed with 8 rows on an H200).
//$ set quads = quads if quads is defined else 1
//$ set rows = vecs // quads
//$ include "lib/tile_layout.wgsl"
//$ set A, AQuad, join = ("Local", "LocalQuad", "local_combine") if local else ("Acc", "Quad", "combine")
var<private> tile_items: array<{{ AQuad }}, VECS>;

//$ if source is defined
//$ include "lib/items.wgsl"
//$ else
// The input holds items, or accumulators packed by an earlier kernel.
const RAW_INPUT: u32 = {{ constants.RAW_INPUT }}u;
const RAW_OUTPUT: u32 = {{ constants.RAW_OUTPUT }}u;
//$ if acc.key
fn item(i: u32) -> Acc {
  let word = load_input(i);
  if ((params.flags & RAW_INPUT) != 0u) { return unpack(word); }
  return lift(word);
}
fn item4(i: u32) -> vec4<Acc> {
  let words = load4_input(i);
  if ((params.flags & RAW_INPUT) != 0u) { return bitcast<vec4<Acc>>(words); }
  return lift4(words);
}
fn result(x: Acc) -> u32 {
  if ((params.flags & RAW_OUTPUT) != 0u) { return pack(x); }
  return lower(x);
}
fn result4(x: vec4<Acc>) -> vec4<u32> {
  if ((params.flags & RAW_OUTPUT) != 0u) { return bitcast<vec4<u32>>(x); }
  return lower4(x);
}
//$ else
fn item(i: u32) -> Acc { return lift(load_input(i)); }
fn item4(i: u32) -> vec4<Acc> { return lift4(load4_input(i)); }
fn result(x: Acc) -> u32 { return lower(x); }
fn result4(x: vec4<Acc>) -> vec4<u32> { return lower4(x); }
//$ endif
fn put(i: u32, x: Acc) { store_output(i, result(x)); }
fn put4(i: u32, x: Quad) { store4_output(i, result4(x)); }
//$ endif

//$ if local
fn local_item(i: u32) -> Local { return number(load_input(i)); }
fn local_item4(i: u32) -> LocalQuad { return number4(load4_input(i)); }
//$ endif
//$ set one, four = ("local_item", "local_item4") if local else ("item", "item4")
// Items i to i + 3 as accumulators, with the identity for those past the end.
fn lifted4_guarded(i: u32) -> {{ AQuad }} {
  if (i + 4u <= {{ used.n }}) { return {{ four }}(i); }
  var v = {{ "LocalQuad()" if local else "quad_of(padding())" if pads is defined else "quad_of(identity())" }};
  if (i < {{ used.n }}) { v.x = {{ one }}(i); }
  if (i + 1u < {{ used.n }}) { v.y = {{ one }}(i + 1u); }
  if (i + 2u < {{ used.n }}) { v.z = {{ one }}(i + 2u); }
  return v;
}

fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * tile_size() <= {{ used.n }}; }

fn tile_load(tile: u32) {
  if (tile_is_full(tile)) {
//$ for r in range(rows)
//$ if quads == 1
    tile_items[{{ r }}] = {{ four }}(tile_item(tile, {{ r }}u));
//$ elif 4 * quads * source.bytes < 16
    let first_{{ r }} = tile_item(tile, {{ r }}u);
    tile_items[{{ r * quads + q }}] = {{ four }}(first_{{ r }}{{ " + %du" % (4 * q) if q }});  //$ for q in range(quads)
//$ else
    let first_{{ r }} = tile_item(tile, {{ r }}u);
//$ set row_items = 16 // source.bytes
    let row_{{ r }}_{{ k }} = load_row_input(first_{{ r }} + {{ k * row_items }}u);  //$ for k in range(4 * quads // row_items)
//$ for q in range(quads)
//$ if source.bytes == 8
    tile_items[{{ r * quads + q }}] = {{ "number4" if local else "lift4" }}(array<vec4<u32>, 2>(row_{{ r }}_{{ 2 * q }}, row_{{ r }}_{{ 2 * q + 1 }}));
//$ else
//$ set at = q % (row_items // 4)
//$ set words = {1: ".%s" % "xyzw"[at], 2: ".%s" % ("xy", "zw")[at % 2], 4: ""}[source.bytes]
    tile_items[{{ r * quads + q }}] = {{ "number4" if local else "lift4" }}(row_{{ r }}_{{ q * 4 // row_items }}{{ words }});
//$ endif
//$ endfor
//$ endif
//$ endfor
  } else {
//$ for r in range(rows)
//$ for q in range(quads)
    tile_items[{{ r * quads + q }}] = lifted4_guarded(tile_item(tile, {{ r }}u){{ " + %du" % (4 * q) if q }});
//$ endfor
//$ endfor
  }
}

// The tile's total, in the order of the items; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  var total = {{ "Local()" if local else "identity()" }};
  for (var r = 0u; r < ROWS; r++) {
    let v = lifted4_guarded(tile_item(tile, r));
//$ if quads == 1
    total = {{ join }}(total, sg_reduce({{ join }}({{ join }}(v.x, v.y), {{ join }}(v.z, v.w))));
//$ else
    var row = {{ join }}({{ join }}(v.x, v.y), {{ join }}(v.z, v.w));
    for (var q = 1u; q < QUADS; q++) {
      let next = lifted4_guarded(tile_item(tile, r) + 4u * q);
      row = {{ join }}(row, {{ join }}({{ join }}(next.x, next.y), {{ join }}(next.z, next.w)));
    }
    total = {{ join }}(total, sg_reduce(row));
//$ endif
  }
  return {{ "global_of(wg_scan(total).total)" if local else "wg_scan(total).total" }};
}
