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
//$ include "lib/sort_exchange_" ~ ("whole" if parts == 1 else "parts") ~ ".wgsl"
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
