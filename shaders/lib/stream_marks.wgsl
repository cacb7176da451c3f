// The marks of a stream's items, four of a row as bits: an item has a mark or none{{ ", from one of two kinds" if marks | length > 1 }}. A mark is
// {{ "that the item differs from the one before it" if heads else "that a flag is not 0, or that a predicate holds" }}.
// A tile consists of rows of one vec4 per lane (see lib/tile.wgsl).
//$ from "lib/stream_quad.wgsl" import guarded_quad

// First item of this invocation in row r.
fn tile_item(tile: u32, r: u32) -> u32 { return tile * tile_size() + (sg_id * VECS * sg_size + r * sg_size + sg_lane) * 4u; }

//$ if heads
{{ guarded_quad(marks[0]) }}
//$ endif
//$ for m in marks
//$ set k = loop.index0
//$ if m.kind == "heads"
//$ if m.of == "f"
// Equal items have equal codes: −0 is +0, and {{ "all NaN are one" if m.equal_nan else "a NaN equals nothing" }}.
//$ endif
fn same(a: {{ m.item }}, b: {{ m.item }}) -> bool {
//$ if m.of == "b"
  return (a != 0u) == (b != 0u);
//$ elif m.of != "f"
  return {{ "all(a == b)" if m.bytes == 8 else "a == b" }};
//$ elif m.bytes == 8
  let nan_a = (a.y & 0x7fffffffu) > 0x7ff00000u || ((a.y & 0x7fffffffu) == 0x7ff00000u && a.x != 0u);
  let nan_b = (b.y & 0x7fffffffu) > 0x7ff00000u || ((b.y & 0x7fffffffu) == 0x7ff00000u && b.x != 0u);
  let zeros = ((a.y | b.y) & 0x7fffffffu) == 0u && (a.x | b.x) == 0u;
//$ else
//$ set infinity, magnitude = ("0x7f800000u", "0x7fffffffu") if m.bytes == 4 else ("0x7c00u", "0x7fffu")
  let nan_a = (a & {{ magnitude }}) > {{ infinity }};
  let nan_b = (b & {{ magnitude }}) > {{ infinity }};
  let zeros = ((a | b) & {{ magnitude }}) == 0u;
//$ endif
//$ if m.of == "f"
//$ set equal = "all(a == b)" if m.bytes == 8 else "a == b"
//$ if m.equal_nan
  return {{ equal }} || zeros || (nan_a && nan_b);
//$ else
  return ({{ equal }} || zeros) && !(nan_a || nan_b);
//$ endif
//$ endif
}
// The item before item i; one more load, so that a tile that is recounted needs nothing of its neighbours.
//$ if carried
fn previous_item(i: u32) -> {{ m.item }} {
  if (i > 0u) { return load_{{ m.name }}(i - 1u); }
  return carried_item();
}
fn has_previous(i: u32) -> bool { return i > 0u || has_carry(); }
//$ else
fn previous_item(i: u32) -> {{ m.item }} { return load_{{ m.name }}(max(i, 1u) - 1u); }
fn has_previous(i: u32) -> bool { return i > 0u; }
//$ endif
// Bit k is set where item i + k differs from the one before it.
fn mark4_{{ k }}(i: u32, items: {{ m.quad }}) -> u32 {
  let x = {{ m.picks[0] % "items" }};
  let y = {{ m.picks[1] % "items" }};
  let z = {{ m.picks[2] % "items" }};
  let w = {{ m.picks[3] % "items" }};
  return select(1u, 0u, same(previous_item(i), x) && has_previous(i)) | select(2u, 0u, same(x, y)) | select(4u, 0u, same(y, z))
    | select(8u, 0u, same(z, w));
}
fn row_marks_{{ k }}(i: u32) -> u32 { return mark4_{{ k }}(i, load4_{{ m.name }}(i)); }
fn row_marks_{{ k }}_guarded(i: u32, n: u32) -> u32 {
  if (i >= n) { return 0u; }
  return mark4_{{ k }}(i, quad_{{ m.name }}_guarded(i, n)) & within(i, n);
}
//$ else
//$ set whole = m.of != "f"
//$ set magnitude = {2: "0x7fffu", 4: "0x7fffffffu", 8: "0x7fffffffu"}[m.bytes] if not whole else ""
// Whether an item counts as true; −0 is 0.
fn is_true_{{ k }}(item: {{ m.item }}) -> bool {
//$ if m.bytes == 8
  return (item.x | {{ "item.y" if whole else "(item.y & %s)" % magnitude }}) != 0u;
//$ else
  return {{ "item" if whole else "(item & %s)" % magnitude }} != 0u;
//$ endif
}
fn row_marks_{{ k }}(i: u32) -> u32 {
//$ if m.bytes == 1
  // The lowest bit of every byte that is not 0, brought together by a product.
  var bits = load4_{{ m.name }}(i);
  bits |= bits >> 4u;
  bits |= bits >> 2u;
  bits |= bits >> 1u;
  return ((bits & 0x01010101u) * 0x10204080u) >> 28u;
//$ elif m.bytes == 4 and whole
  let bits = select(vec4<u32>(0u), vec4<u32>(1u, 2u, 4u, 8u), load4_{{ m.name }}(i) != vec4<u32>(0u));
  return bits.x | bits.y | bits.z | bits.w;
//$ else
  let items = load4_{{ m.name }}(i);
  return select(0u, 1u, is_true_{{ k }}({{ m.picks[0] % "items" }})) | select(0u, 2u, is_true_{{ k }}({{ m.picks[1] % "items" }}))
    | select(0u, 4u, is_true_{{ k }}({{ m.picks[2] % "items" }})) | select(0u, 8u, is_true_{{ k }}({{ m.picks[3] % "items" }}));
//$ endif
}
fn row_marks_{{ k }}_guarded(i: u32, n: u32) -> u32 {
  if (i + 4u <= n) { return row_marks_{{ k }}(i); }
  var bits = 0u;
  if (i < n) { bits |= select(0u, 1u, is_true_{{ k }}(load_{{ m.name }}(i))); }
  if (i + 1u < n) { bits |= select(0u, 2u, is_true_{{ k }}(load_{{ m.name }}(i + 1u))); }
  if (i + 2u < n) { bits |= select(0u, 4u, is_true_{{ k }}(load_{{ m.name }}(i + 2u))); }
  return bits;
}
//$ endif
//$ endfor
// The bits of the items among i to i + 3 that lie before item n.
fn within(i: u32, n: u32) -> u32 { return (1u << min(4u, max(n, i) - i)) - 1u; }

// The total of another tile, counted from the inputs; the same for every invocation.
fn tile_total(tile: u32) -> Acc {
  let n = item_count();
  var lane = identity();
  for (var r = 0u; r < VECS; r++) {
    let i = tile_item(tile, r);
//$ if runs
    let bits = row_marks_0_guarded(i, n);
    lane.x += countOneBits(bits);
    if (bits != 0u) { lane.y = i + firstLeadingBit(bits) + 1u; }
//$ elif words == 1
    lane += countOneBits(row_marks_0_guarded(i, n));
//$ else
    let bits = row_marks_0_guarded(i, n);
    lane += Acc(countOneBits(bits), countOneBits(row_marks_1_guarded(i, n) & ~bits));
//$ endif
  }
//$ if words == 1
  return wg_scan(sg_reduce(lane)).total;
//$ elif runs
  return wg_scan_acc(sg_reduce_acc(lane)).total;
//$ else
  return wg_scan_acc(Acc(sg_reduce(lane.x), sg_reduce(lane.y))).total;
//$ endif
}

