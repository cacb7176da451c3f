// A ranked tile in workgroup memory, one part at a time, so that keys of one digit are contiguous.
// Puts the items of a part in the order of their ranks: the PART items from rank part × PART on. They are in registers; with
// several parts those of the other ones stay there.
const PARTS: u32 = {{ parts }}u;
const PART: u32 = TILE / PARTS;
//$ for items_of in moved
fn stage_{{ items_of.name }}(part: u32) {
//$ for k in range(items)
  {{ "if (rank_of(%du) - part * PART < PART) {" % k if parts > 1 }}
    stage_one_{{ items_of.name }}(rank_of({{ k }}u){{ " - part * PART" if parts > 1 }}, {{ items_of.name }}[{{ k }}]);
  {{ "}" if parts > 1 }}
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
