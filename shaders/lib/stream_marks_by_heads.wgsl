// A mark is that an item differs from the one before it. The item before the first one is one more load, so that a tile that is
// recounted needs nothing of its neighbours.
//$ set Item, item = "Item%d" % mark.bytes, "item%d" % mark.bytes
//$ set f = mark
//$ include "lib/stream_load_guarded.wgsl"

//$ if mark.of == "f"
// Equal items have equal codes: −0 is +0, and {{ "all NaN are one" if mark.equal_nan else "a NaN equals nothing" }}.
//$ endif
fn same(a: {{ Item }}, b: {{ Item }}) -> bool {
//$ if mark.of == "b"
  return (a != 0u) == (b != 0u);
//$ elif mark.of != "f"
  return all(a == b);
//$ else
//$ if mark.bytes == 8
  let nan_a = (a.y & 0x7fffffffu) > 0x7ff00000u || ((a.y & 0x7fffffffu) == 0x7ff00000u && a.x != 0u);
  let nan_b = (b.y & 0x7fffffffu) > 0x7ff00000u || ((b.y & 0x7fffffffu) == 0x7ff00000u && b.x != 0u);
  let zeros = ((a.y | b.y) & 0x7fffffffu) == 0u && (a.x | b.x) == 0u;
//$ else
//$ set infinity, magnitude = ("0x7f800000u", "0x7fffffffu") if mark.bytes == 4 else ("0x7c00u", "0x7fffu")
  let nan_a = (a & {{ magnitude }}) > {{ infinity }};
  let nan_b = (b & {{ magnitude }}) > {{ infinity }};
  let zeros = ((a | b) & {{ magnitude }}) == 0u;
//$ endif
  return {{ "all(a == b) || zeros || (nan_a && nan_b)" if mark.equal_nan else "(all(a == b) || zeros) && !(nan_a || nan_b)" }};
//$ endif
}

//$ if carried
fn has_previous(i: u32) -> bool { return i > 0u || has_carry(); }
fn previous_item(i: u32) -> {{ Item }} {
  if (i > 0u) { return load_{{ mark.name }}(i - 1u); }
  return carried_item();
}
//$ else
fn has_previous(i: u32) -> bool { return i > 0u; }
fn previous_item(i: u32) -> {{ Item }} { return load_{{ mark.name }}(max(i, 1u) - 1u); }
//$ endif

// The marks of items i to i + 3, which are given.
fn marks_of_items(i: u32, items: {{ mark.quad }}) -> u32 {
  let x = {{ item }}(items, 0u);
  let y = {{ item }}(items, 1u);
  let z = {{ item }}(items, 2u);
  let w = {{ item }}(items, 3u);
  return select(1u, 0u, same(previous_item(i), x) && has_previous(i)) | select(2u, 0u, same(x, y)) | select(4u, 0u, same(y, z))
    | select(8u, 0u, same(z, w));
}
fn marks_0(i: u32) -> u32 { return marks_of_items(i, load4_{{ mark.name }}(i)); }
fn marks_0_guarded(i: u32, n: u32) -> u32 {
  if (i >= n) { return 0u; }
  return marks_of_items(i, load4_{{ mark.name }}_guarded(i, n)) & within(i, n);
}
