// Reads keys in the form in which they are ranked.
fn read_ranked(tile: u32, place: u32) {
  read_codes(tile, place);
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) {
    keys[{{ k }}] = key_fixed(keys[{{ k }}]);  //$ for k in range(items)
  }
//$ endif
}
// Reads them again in the form in which they are written, if that differs.
fn read_unfixed(tile: u32, place: u32) {
//$ if fixes | length > 1
  if (load_routes(UNFIXED) != 0u) { read_codes(tile, place); }
//$ endif
}
