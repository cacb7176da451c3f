// Workgroup memory for STAGE_ITEMS items of one or two words; the second words lie behind all first ones.
var<workgroup> stage: array<u32, {{ stage_words }}u * STAGE_ITEMS>;
fn stage1(at: u32, item: u32) { stage[at] = item; }
fn staged1(at: u32) -> u32 { return stage[at]; }
//$ if stage_words == 2
fn stage2(at: u32, item: vec2<u32>) {
  stage[at] = item.x;
  stage[STAGE_ITEMS + at] = item.y;
}
fn staged2(at: u32) -> vec2<u32> { return vec2<u32>(stage[at], stage[STAGE_ITEMS + at]); }
//$ endif
//$ if runs
// Position of the last head before those that are staged, plus 1: where the open run begins.
var<private> run_start: u32;
//$ endif
