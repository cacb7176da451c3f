// Writes a ranked tile to the runs of its bins, in the output or in the temporary copy.
// By bin, the offset from the position of a key in the tile to its position in the output; before that, counts of an
// unpublished tile.
var<workgroup> run_offsets: array<atomic<u32>, BINS>;
//$ set pairs = moved | length > 1
{{ "var<private> destinations: array<u32, ITEMS / PARTS>;" if pairs }}
//$ for place in places[1:]
//$ set decodes = encodes and place == "output"
//$ set stored = "key_decode(key)" if not encodes else "key_written(key)" if not decodes else "select(key_written(key), key_decode(key), last)"
//$ if pairs
//$ for part in range(parts)
//$ for fixed in fixes
//$ include "lib/sort_write_pairs.wgsl"
//$ endfor
//$ include "lib/sort_write_values.wgsl"
//$ endfor
//$ else
//$ for fixed in fixes
//$ include "lib/sort_write_keys.wgsl"
//$ endfor
//$ endif
//$ endfor

// Writes a tile whose keys are ranked and whose first part is staged.
fn tile_write(tile: u32, route: u32) {
//$ set last = ", (route >> 2u) == LAST" if encodes else ""
//$ set to_output = "(route >> 2u) " ~ ("!= TEMPORARY" if encodes else "== OUTPUT")
//$ if pairs
  // Values are staged for both places alike: text that is there once compiles sooner.
  let to_output = {{ to_output }};
  let valid = min(TILE, {{ used.n }} - tile * TILE);
{{ "  let is_fixed = load_routes(UNFIXED) == 0u;" if fixes | length > 1 }}
//$ for part in range(parts)
//$ if part > 0
  workgroupBarrier();
  stage_keys({{ part }}u);
//$ endif
//$ for fixed in fixes
  if ({{ ("!is_fixed && " if fixed else "is_fixed && ") if fixes | length > 1 }}to_output) { write_keys_output{{ fixed }}_{{ part }}(valid{{ last }}); }
  if ({{ ("!is_fixed && " if fixed else "is_fixed && ") if fixes | length > 1 }}!to_output) { write_keys_temporary{{ fixed }}_{{ part }}(valid); }
//$ endfor
  workgroupBarrier();
  stage_values({{ part }}u, tile, route & 3u);
  if (to_output) { write_values_output_{{ part }}(valid); } else { write_values_temporary_{{ part }}(valid); }
//$ endfor
//$ else
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) {
    if ({{ to_output }}) { write_output_fixed(tile{{ last }}); } else { write_temporary_fixed(tile); }
    return;
  }
//$ endif
  if ({{ to_output }}) { write_output(tile{{ last }}); } else { write_temporary(tile); }
//$ endif
}
