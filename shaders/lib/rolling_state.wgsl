// What is known of a stretch of items: how many are valid, and their sum, least, greatest, or mean and squared distances from it
// (form). NaN is not valid, nor, unless they are counted, are infinities: as in pandas. Totals lie in memory, field by field.
//$ if wide
//$ include "lib/float64.wgsl"
//$ endif
struct State {
  count: u32,
  {{ field }}: {{ F }},  //$ for field in fields
}
const FAN: u32 = {{ fan }}u;
const FIELDS: u32 = {{ 1 + (fields | length) }}u;

fn combine(a: State, b: State) -> State {
//$ if form == "count"
  return State(a.count + b.count);
//$ elif form == "sum"
  return State(a.count + b.count, a.value + b.value);
//$ else
  if (a.count == 0u) { return b; }
  if (b.count == 0u) { return a; }
  let count = a.count + b.count;
//$ if form == "moments"
  let distance = b.value - a.value;
  let share = distance * ({{ F }}(b.count) / {{ F }}(count));
  return State(count, a.value + share, a.squares + b.squares + distance * share * {{ F }}(a.count));
//$ else
  return State(count, select(b.value, a.value, a.value {{ "<" if form == "min" else ">" }} b.value));
//$ endif
//$ endif
}

fn of_item(item: Item) -> State {
  let high = {{ "item.y" if wide else "item" }} & 0x7fffffffu;
  let infinity = {{ "0x7ff00000u" if wide else "0x7f800000u" }};
//$ if form == "count"
  return State(select(1u, 0u, high > infinity{{ " || (high == infinity && item.x != 0u)" if wide }}));
//$ else
  if (high >= infinity) { return State(); }
  return State(1u, {{ of_words }}(item){{ ", " ~ F ~ "(0)" if form == "moments" }});
//$ endif
}

//$ if totals
fn total(i: u32) -> State {
  var state = State();
  state.count = load_{{ totals }}(i * FIELDS){{ ".x" if wide }};
  state.{{ field }} = {{ of_words }}(load_{{ totals }}(i * FIELDS + {{ loop.index }}u));  //$ for field in fields
  return state;
}
//$ endif
