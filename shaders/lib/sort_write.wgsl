// Writes a ranked tile to the runs of its bins, in the output or in the temporary copy.
// By bin, the offset from the position of a key in the tile to its position in the output; before that, counts of an
// unpublished tile.
var<workgroup> run_offsets: array<atomic<u32>, BINS>;
//$ if moved | length > 1
var<private> destinations: array<u32, ITEMS / PARTS>;
//$ endif

//$ for place in places[1:]
//$ set decodes = encodes and place == "output"
//$ for fixed in fixes
fn write_{{ place }}{{ fixed }}(tile: u32{{ ", source: u32" if moved | length > 1 }}{{ ", last: bool" if decodes }}) {
  let valid = min(TILE, {{ used.n }} - tile * TILE);
//$ for part in range(parts)
//$ if part > 0
  workgroupBarrier();
  stage_keys({{ part }}u);
//$ endif
//$ for k in range(items // parts)
//$ set K = part * (items // parts) + k
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ k }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[key_digit({{ "key_fixed(key)" if fixed else "key" }})]) + {{ K }}u * WORKGROUP_SIZE + lane;
//$ set stored = "key_written(key)" if encodes else "key_decode(key)"
    store_keys_{{ place }}(to, {{ "select(key_written(key), key_decode(key), last)" if decodes else stored }});
//$ if moved | length > 1
    destinations[{{ k }}] = to;
//$ endif
  }
//$ endfor
//$ if moved | length > 1
  workgroupBarrier();
  stage_values({{ part }}u, tile, source);
//$ for k in range(items // parts)
//$ set K = part * (items // parts) + k
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}(destinations[{{ k }}], staged_values({{ k }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
//$ endif
//$ endfor
}
//$ endfor
//$ endfor

// Writes a tile whose keys are ranked and whose first part is staged.
fn tile_write(tile: u32, route: u32) {
//$ set from = ", route & 3u" if moved | length > 1 else ""
//$ set last = ", (route >> 2u) == LAST" if encodes else ""
//$ set to_output = "(route >> 2u) " ~ ("!= TEMPORARY" if encodes else "== OUTPUT")
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) {
    if ({{ to_output }}) { write_output_fixed(tile{{ from }}{{ last }}); } else { write_temporary_fixed(tile{{ from }}); }
    return;
  }
//$ endif
  if ({{ to_output }}) { write_output(tile{{ from }}{{ last }}); } else { write_temporary(tile{{ from }}); }
}
