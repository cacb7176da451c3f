// Moves the items of a tile of a long segment to the bins of one digit; items of one bin keep their order.
// The counts of a segment's tiles, and their sums over all tiles, say where its bins begin and what earlier tiles put there.
// Forward progress: no workgroup waits for another.
// Bindings: params, keys (and values), in and out, counts, sums{{ "" if fixed else ", list" }}.
// Params: n (items); tiles; workgroups; tile_items; length (of each segment); segment_tiles; digit (shift, width and
// word: see lib/segment_key.wgsl).

//$ include "lib/operator.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segment_key.wgsl"
//$ include "lib/sort_rank.wgsl"
//$ include "lib/long_tile.wgsl"
// By bin, the offset from the position of a key in the tile to its position in the output.
var<workgroup> run_offsets: array<u32, BINS>;

fn run(workgroup_number: u32, lanes: Lanes) {
  rank_enter(lanes);
  use_digit(params.digit);
  for (var t = workgroup_number; t < params.tiles; t += params.workgroups) {
    let tile = long_tile(t);
    // No tile behind it is used.
    if (tile.x >= tile.y) { break; }
    let count = tile.y - tile.x;
    let rounds = (count + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
    row_items = 32u * rounds;
//$ for k in range(items)
    if ({{ k }}u < rounds) {
      keys[{{ k }}] = LAST_CODE;
      if (tile_position({{ k }}u) < count) { keys[{{ k }}] = key_encode(load_keys_input(tile.x + tile_position({{ k }}u))); }
    }
//$ endfor
    let first = wg_exclusive(tile_count(rounds)).before;
    tile_rank(first);
    var of_segment = 0u;
    var of_earlier = 0u;
    if (lane < BINS) {
      let before = load_sums(tile.z * BINS + lane);
      let last = (tile.w - 1u) * BINS + lane;
      of_segment = load_sums(last) + load_counts(last) - before;
      of_earlier = load_sums(t * BINS + lane) - before;
    }
    let bin_begin = wg_exclusive(of_segment).before;
    let segment_begin = tile.x - (t - tile.z) * params.tile_items;
    if (lane < BINS) { run_offsets[lane] = segment_begin + bin_begin + of_earlier - first; }
//$ set words = ["x", "y"] if key_words == 2 else [""]
//$ for word in words
//$ set component = "." ~ word if word else ""
    if ({{ k }}u < rounds) { atomicStore(&stage[rank_of({{ k }}u)], keys[{{ k }}]{{ component }}); }  //$ for k in range(items)
    workgroupBarrier();
    if ({{ k }}u < rounds) { keys[{{ k }}]{{ component }} = atomicLoad(&stage[tile_position({{ k }}u)]); }  //$ for k in range(items)
    workgroupBarrier();
//$ endfor
//$ if value_words
    var destinations: array<u32, ITEMS>;
//$ endif
//$ for k in range(items)
    if ({{ k }}u < rounds && tile_position({{ k }}u) < count) {
      let to = run_offsets[ranked_digit(keys[{{ k }}])] + tile_position({{ k }}u);
      store_keys_output(to, key_decode(keys[{{ k }}]));
//$ if value_words
      destinations[{{ k }}] = to;
//$ endif
    }
//$ endfor
//$ if value_words
    var values: array<{{ "u32" if value_words == 1 else "vec2<u32>" }}, ITEMS>;
//$ for k in range(items)
    if ({{ k }}u < rounds && tile_position({{ k }}u) < count) {
      values[{{ k }}] = load_values_input(tile.x + tile_position({{ k }}u));
    }
//$ endfor
//$ for word in ["x", "y"] if value_words == 2 or word == "x"
//$ set component = "." ~ word if value_words == 2 else ""
    if ({{ k }}u < rounds) { atomicStore(&stage[rank_of({{ k }}u)], values[{{ k }}]{{ component }}); }  //$ for k in range(items)
    workgroupBarrier();
//$ for k in range(items)
    if ({{ k }}u < rounds) { values[{{ k }}]{{ component }} = atomicLoad(&stage[tile_position({{ k }}u)]); }
//$ endfor
    workgroupBarrier();
//$ endfor
//$ for k in range(items)
    if ({{ k }}u < rounds && tile_position({{ k }}u) < count) { store_values_output(destinations[{{ k }}], values[{{ k }}]); }
//$ endfor
//$ endif
  }
}
