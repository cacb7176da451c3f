// output = what the items of the window that ends at each item make (result). A window is a few items at its ends, and whole
// blocks between them, whose totals are known: nothing is ever subtracted, so that a NaN or a large number leaves no trace
// behind. An invocation combines what four neighbouring windows share once.
// Forward progress: no workgroup waits for another. Bindings: params, input, output; totals and starts where there are.
// Params: n (items of the window of the output); blocks (workgroups that have work); first (first item of it); length (of
// a row); window; least (valid items that a result needs); correction (of the divisor); level_1, … (where totals begin).

//$ set own_quads = true
//$ include "lib/quad_" ~ sink.bytes ~ ".wgsl"
//$ include "lib/rolling_state.wgsl"

//$ for level in range(levels + 1)
fn with_{{ level }}(before: State, first: u32, end: u32) -> State {
  var state = before;
  for (var i = first; i < end; i++) {
    state = combine(state, {{ "total(params.level_" ~ level ~ " + i)" if level else "of_item(load_input(i))" }});
  }
  return state;
}
//$ endfor
fn of_stretch(first: u32, end: u32) -> State {
  var state = State();
  var a = first;
  var b = end;
//$ for level in range(levels)
  if (b - a < 2u * FAN) { return with_{{ level }}(state, a, b); }
  state = with_{{ level }}(state, a, (a + FAN - 1u) / FAN * FAN);
  state = with_{{ level }}(state, b / FAN * FAN, b);
  a = (a + FAN - 1u) / FAN;
  b = b / FAN;
//$ endfor
  return with_{{ levels }}(state, a, b);
}

// The first item of a window.
fn start_of(i: u32) -> u32 {
  let start = {{ "load_starts(i)" if segmented else "i - i % params.length" if rows else "0u" }};
  return i + 1u - min(params.window, i + 1u - start);
}

// Counts need so many items, valid or not, as in pandas.
fn result(state: State, i: u32) -> Item {
  if ({{ "i + 1u - start_of(i)" if form == "count" else "state.count" }} < params.least) { return {{ nan }}; }
  return {{ to_words }}({{ value }});
}

fn item_at(i: u32) -> Item {
  let at = i + params.first;
  return result(of_stretch(start_of(at), at + 1u), at);
}
fn quad_at(i: u32) -> Quad {
  let at = i + params.first;
  let last = start_of(at + 3u);
  if (last > at) { return quad_of(item_at(i), item_at(i + 1u), item_at(i + 2u), item_at(i + 3u)); }
  let middle = of_stretch(last, at + 1u);
  var items: array<Item, 4>;
  for (var k = 0u; k < 4u; k++) {
    items[k] = result(with_0(with_0(middle, start_of(at + k), last), at + 1u, at + k + 1u), at + k);
  }
  return quad_of(items[0], items[1], items[2], items[3]);
}

//$ include "lib/quads.wgsl"
