// The smallest code of what a lane reads of a group in a step.
const ROWS: u32 = {{ rows }}u;  // vec4 of a lane in a step
fn code_or_none(i: u32) -> Key {
  if (i >= {{ used.n }}) { return NO_CODE; }
  return code_of(load_input(i));
}
//$ if vec4
fn least_of_4(i: u32) -> Key {
  let items = load4_input(i);
  return least(least(code_of(items.x), code_of(items.y)), least(code_of(items.z), code_of(items.w)));
}
//$ else
fn least_of_4(i: u32) -> Key {
  return least(
    least(code_of(load_input(i)), code_of(load_input(i + 1u))), least(code_of(load_input(i + 2u)), code_of(load_input(i + 3u)))
  );
}
//$ endif
fn least_of_some(i: u32) -> Key {
  return least(
    least(code_or_none(i), code_or_none(i + 1u)), least(code_or_none(i + 2u), code_or_none(i + 3u))
  );
}
// The minimum of a lane's items of a step. Rows are written out, so that all loads are in flight together.
fn step_minimum(first: u32, row_items: u32) -> Key {
  if (first + (ROWS - 1u) * row_items + 4u <= {{ used.n }}) {
    let row_{{ r }} = least_of_4(first + {{ r }}u * row_items);  //$ for r in range(rows)
    var found = row_0;
    found = least(found, row_{{ r }});  //$ for r in range(1, rows)
    return found;
  }
  var found = NO_CODE;
  for (var r = 0u; r < ROWS; r++) { found = least(found, least_of_some(first + r * row_items)); }
  return found;
}
