// Reads keys as they are ranked.
fn read_ranked(tile: u32, place: u32) {
  read_codes(tile, place);
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) {
//$ for k in range(items)
    keys[{{ k }}] = key_fixed(keys[{{ k }}]);
//$ endfor
  }
//$ endif
}
// Reads them again, as they are written, if that is something else.
fn read_unfixed(tile: u32, place: u32) {
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) { read_codes(tile, place); }
//$ endif
}
