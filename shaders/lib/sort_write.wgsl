// Writes a ranked tile to the runs of its bins, in the output or in the temporary copy.
// By bin, the offset from the position of a key in the tile to its position in the output; before that, counts of an
// unpublished tile.
var<workgroup> run_offsets: array<atomic<u32>, BINS>;
//$ set with_values, rounds = moved | length > 1, items // parts
{{ "var<private> destinations: array<u32, ITEMS>;" if with_values }}
// Pairs whose keys are not encoded, or are bytes, choose the place for each store; for others two texts are faster.
//$ set together = with_values and (not encodes or key_bytes == 1)
//$ for items_of in moved if together
fn store_{{ items_of.name }}_either(to_output: bool, to: u32, item: {{ "u32" if items_of.words == 1 else "vec2<u32>" }}) {
  if (to_output) { store_{{ items_of.name }}_output(to, item); } else { store_{{ items_of.name }}_temporary(to, item); }
}
//$ endfor
//$ for place in (["either"] if together else places[1:])
//$ set decodes, chosen = encodes and place != "temporary", "to_output, " if together else ""
//$ set stored = "key_decode(key)" if not encodes else "key_written(key)" if not decodes else "select(key_written(key), key_decode(key), last)"
//$ include "lib/sort_write_keys.wgsl"
//$ endfor

// Writes a tile whose keys are ranked and whose first part is staged.
fn tile_write(tile: u32, route: u32) {
  let to_output = (route >> 2u) != TEMPORARY;
//$ if together
  write_either(tile, route, to_output);
//$ else
  if (to_output) { write_output(tile, route); } else { write_temporary(tile, route); }
//$ endif
}
