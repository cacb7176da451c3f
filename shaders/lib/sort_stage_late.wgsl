// Values are read from their buffer only now: kept in registers they would cost the second workgroup on a
// multiprocessor. All loads come first, so that they are in flight together. Loads for items of other parts all read
// the same item.
//$ for place in places
fn stage_{{ items_of.name }}_{{ place }}(part: u32, tile: u32) {
  let first = tile * TILE;
//$ set load = "u32" if items_of.generated and place == "input" else "load_" ~ items_of.name ~ "_" ~ place
//$ for k in range(items)
  let to_{{ k }} = rank_of({{ k }}u) - part * PART;
  let from_{{ k }} = first + tile_position({{ k }}u);
  let moves_{{ k }} = to_{{ k }} < PART && from_{{ k }} < {{ used.n }};
  let item_{{ k }} = {{ load }}(select(first, from_{{ k }}, moves_{{ k }}));
//$ endfor
  if (moves_{{ k }}) { stage_one_{{ items_of.name }}(to_{{ k }}, item_{{ k }}); }  //$ for k in range(items)
}
//$ endfor
fn stage_{{ items_of.name }}(part: u32, tile: u32, place: u32) {
//$ for place in places
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) { stage_{{ items_of.name }}_{{ place }}(part, tile); }
//$ endfor
  workgroupBarrier();
}
