// Loads the items of a tile into the registers of the invocations. A pass reads one of three buffers and writes another. The
// GPU chooses them, once for the whole dispatch (see the routes in lib/sort_key.wgsl). So each load stands here three times,
// and full and partial tiles share it, because long texts are slow: past the end the last item is loaded again.
fn tile_is_full(tile: u32) -> bool { return (tile + 1u) * TILE <= {{ used.n }}; }

//$ for items_of in moved
fn read_{{ items_of.name }}(tile: u32, place: u32) {
  let first = tile * TILE + tile_position(0u);
  let most = {{ "max(%s, 1u)" % used.n if counted else used.n }} - 1u;
//$ for place in places
//$ set operand = items_of.name ~ "_" ~ place
//$ set load = "u32" if items_of.generated and place == "input" else "load_" ~ operand
//$ set count = segments.get(operand, 0)
  {{ "else " if not loop.first }}if (place == {{ place | upper }}) {
//$ if count
    let segment = select({{ count }}u, segment_of_{{ operand }}(tile * TILE, tile * TILE + TILE - 1u), tile_is_full(tile));
//$ for number in range(count)
    if (segment == {{ number }}u) {
      {{ items_of.name }}[{{ k }}] = {{ load }}_segment_{{ number }}(first + {{ 32 * k }}u);  //$ for k in range(items)
      return;
    }
//$ endfor
//$ endif
    {{ items_of.name }}[{{ k }}] = {{ load }}(min(first + {{ 32 * k }}u, most));  //$ for k in range(items)
  }
//$ endfor
}
//$ endfor

// Keys past the end rank behind all others: they have the last digit and the last places in the tile.
// Keys that are their own codes (not `encodes`) need a separate text. With the common one, NVIDIA's compiler uses one
// register too many for pairs, which costs a third (docs/contribute/performance.md, Sorts).
fn read_codes(tile: u32, place: u32) {
  read_keys(tile, place);
//$ if encodes
  if (place != INPUT) {
    keys[{{ k }}] = key_read(keys[{{ k }}]);  //$ for k in range(items)
  } else {
    keys[{{ k }}] = key_encode(keys[{{ k }}]);  //$ for k in range(items)
  }
//$ else
  keys[{{ k }}] = key_encode(keys[{{ k }}]);  //$ for k in range(items)
//$ endif
  if (tile_is_full(tile)) { return; }
  let first = tile * TILE + tile_position(0u);
  if (first + {{ 32 * k }}u >= {{ used.n }}) { keys[{{ k }}] = LAST_CODE; }  //$ for k in range(items)
}
