// Items that are in registers; with several parts those whose ranks lie in the one that is staged.
fn stage_{{ items_of.name }}(part: u32) {
//$ for k in range(items)
  {{ "if (rank_of(%du) - part * PART < PART) {" % k if parts > 1 }}
    stage_one_{{ items_of.name }}(rank_of({{ k }}u){{ " - part * PART" if parts > 1 }}, {{ items_of.name }}[{{ k }}]);
  {{ "}" if parts > 1 }}
//$ endfor
  workgroupBarrier();
}
