// Writes a ranked tile to the runs of its bins, in the output or in the temporary copy.
// By bin, the offset from the position of a key in the tile to its position in the output; before that, counts of an
// unpublished tile.
var<workgroup> run_offsets: array<atomic<u32>, BINS>;
{{ "var<private> destinations: array<u32, ITEMS>;" if moved | length > 1 }}
//$ for place in places[1:]
//$ set decodes = encodes and place == "output"
//$ set stored = "key_decode(key)" if not encodes else "key_written(key)" if not decodes else "select(key_written(key), key_decode(key), last)"
//$ include "lib/sort_write_keys.wgsl"
//$ endfor

// Writes a tile whose keys are ranked and whose first part is staged.
fn tile_write(tile: u32, route: u32) {
//$ set from = ", route & 3u" if moved | length > 1 else ""
//$ set last = ", (route >> 2u) == LAST" if encodes else ""
//$ set to_output = "(route >> 2u) " ~ ("!= TEMPORARY" if encodes else "== OUTPUT")
  if ({{ to_output }}) { write_output(tile{{ from }}{{ last }}); } else { write_temporary(tile{{ from }}); }
}
