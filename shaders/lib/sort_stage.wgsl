// A ranked tile in workgroup memory, a part at a time: runs of keys of one digit lie together there.
// Puts a part of the tile's items in the order of their ranks: those whose rank is from part × PART on.
const PARTS: u32 = {{ parts }}u;
const PART: u32 = TILE / PARTS;
//$ for items_of in moved
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
