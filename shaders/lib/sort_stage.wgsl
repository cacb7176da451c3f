// A ranked tile in workgroup memory, one part at a time, so that keys of one digit are contiguous.
// Puts the items of a part in the order of their ranks: the PART items from rank part × PART on.
const PARTS: u32 = {{ parts }}u;
const PART: u32 = TILE / PARTS;
//$ for items_of in moved
//$ if items_of not in held
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
//$ else
fn stage_{{ items_of.name }}(part: u32) {
//$ for k in range(items)
//$ if parts == 1
  stage_one_{{ items_of.name }}(rank_of({{ k }}u), {{ items_of.name }}[{{ k }}]);
//$ else
  if (rank_of({{ k }}u) - part * PART < PART) {
    stage_one_{{ items_of.name }}(rank_of({{ k }}u) - part * PART, {{ items_of.name }}[{{ k }}]);
  }
//$ endif
//$ endfor
  workgroupBarrier();
}
//$ endif
//$ if items_of.words == 1
fn stage_one_{{ items_of.name }}(i: u32, word: u32) { atomicStore(&stage[i], word); }
fn staged_{{ items_of.name }}(i: u32) -> u32 { return atomicLoad(&stage[i]); }
//$ else
fn stage_one_{{ items_of.name }}(i: u32, item: vec2<u32>) {
  atomicStore(&stage[i], item.x);
  atomicStore(&stage[PART + i], item.y);
}
fn staged_{{ items_of.name }}(i: u32) -> vec2<u32> {
  return vec2<u32>(atomicLoad(&stage[i]), atomicLoad(&stage[PART + i]));
}
//$ endif
//$ endfor
