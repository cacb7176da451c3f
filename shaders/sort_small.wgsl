// Sorts at most one tile in one workgroup: all passes run in workgroup memory, and each item is read and written once.
// Forward progress: no workgroup waits for another. Bindings: params, keys (and values), in and out.
// Params: n (keys); digit_0, … (shift, width and word: see lib/sort_key.wgsl).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/sort_key.wgsl"
//$ include "lib/sort_rank.wgsl"
//$ include "lib/sort_items.wgsl"

const PASSES: u32 = {{ passes }}u;

fn run(lanes: Lanes) {
  rank_enter(lanes);
  read_codes(0u, INPUT);
//$ if moved | length > 1
  read_values(0u, INPUT);
//$ endif
  for (var p = 0u; p < PASSES; p++) {
    if (p == {{ p }}u) { use_digit(params.digit_{{ p }}); }  //$ for p in range(passes)
    tile_rank(wg_exclusive(tile_count()).before);
//$ for items_of in moved
//$ if parts == 1
    stage_{{ items_of.name }}(0u);
    {{ items_of.name }}[{{ k }}] = staged_{{ items_of.name }}(tile_position({{ k }}u));  //$ for k in range(items)
    workgroupBarrier();
//$ else
    var new_{{ items_of.name }}: array<{{ "u32" if items_of.words == 1 else "vec2<u32>" }}, ITEMS>;
//$ for part in range(parts)
    stage_{{ items_of.name }}({{ part }}u);
//$ for k in range(items)
    if (tile_position({{ k }}u) - {{ part }}u * PART < PART) {
      new_{{ items_of.name }}[{{ k }}] = staged_{{ items_of.name }}(tile_position({{ k }}u) - {{ part }}u * PART);
    }
//$ endfor
    workgroupBarrier();
//$ endfor
    {{ items_of.name }} = new_{{ items_of.name }};
//$ endif
//$ endfor
  }
//$ for items_of in moved if items_of.name in stored
//$ for k in range(items)
  if (tile_position({{ k }}u) < {{ used.n }}) {
    store_{{ items_of.name }}_output(tile_position({{ k }}u), {{ "key_decode" if items_of.name == "keys" }}({{ items_of.name }}[{{ k }}]));
  }
//$ endfor
//$ endfor
}
