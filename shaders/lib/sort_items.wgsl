// Moves items of a tile between the buffers and the registers of the invocations. A pass reads one of three buffers and
// writes another. The GPU chooses them, once for the whole dispatch (see the routes in lib/sort_key.wgsl).
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * TILE <= {{ used.n }}; }

//$ for items_of in moved
//$ for place in places
//$ set load = "u32" if items_of.generated and place == "input" else "load_" ~ items_of.name ~ "_" ~ place
fn read_{{ items_of.name }}_{{ place }}(tile: u32) {
  let first = tile * TILE + tile_position(0u);
  if (tile_is_full(tile)) {
//$ set operand = items_of.name ~ "_" ~ place
//$ set count = segments.get(operand, 0)
//$ if count
    let segment = segment_of_{{ operand }}(tile * TILE, tile * TILE + TILE - 1u);
//$ for number in range(count)
    if (segment == {{ number }}u) {
      {{ items_of.name }}[{{ k }}] = {{ load }}_segment_{{ number }}(first + {{ 32 * k }}u);  //$ for k in range(items)
      return;
    }
//$ endfor
//$ endif
    {{ items_of.name }}[{{ k }}] = {{ load }}(first + {{ 32 * k }}u);  //$ for k in range(items)
  } else {
//$ for k in range(items)
    if (first + {{ 32 * k }}u < {{ used.n }}) { {{ items_of.name }}[{{ k }}] = {{ load }}(first + {{ 32 * k }}u); }
//$ endfor
  }
}
//$ endfor
fn read_{{ items_of.name }}(tile: u32, place: u32) {
//$ for place in places
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) { read_{{ items_of.name }}_{{ place }}(tile); }
//$ endfor
}
//$ endfor

// Keys past the end rank behind all others: they have the last digit and the last places in the tile.
// Keys that are their own codes (not `encodes`) need a separate text. With the common one, NVIDIA's compiler uses one
// register too many for pairs, which costs a third (docs/contribute/performance.md, Sorts).
fn read_codes(tile: u32, place: u32) {
  if (!tile_is_full(tile)) {
//$ set last = "select(key_written(LAST_CODE), key_decode(LAST_CODE), place == INPUT)" if encodes else "key_decode(LAST_CODE)"
    keys[{{ k }}] = {{ last }};  //$ for k in range(items)
  }
  read_keys(tile, place);
//$ if encodes
  if (place != INPUT) {
    keys[{{ k }}] = key_read(keys[{{ k }}]);  //$ for k in range(items)
    return;
  }
//$ endif
  keys[{{ k }}] = key_encode(keys[{{ k }}]);  //$ for k in range(items)
}
