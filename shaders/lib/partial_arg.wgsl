// The item with the greatest rank, of several the first; where there are two sides, of the first and of the last two words.
// Until the end an accumulator is the greatest rank that an invocation has met, and the tile. Those with the workgroup's
// greatest load their tile again and look for the item: so each item costs its part of extremes alone.
//$ set joined = ["%s"] if sides | length == 1 else ["Acc(%s.xy, found.zw)", "Acc(found.xy, %s.zw)"]
//$ set of_floats = [("min", "u32"), ("max", "u32"), ("max", "i32")]
var<workgroup> wg_found: Acc;
//$ for largest, rank in sides
//$ set k, at = loop.index0, 2 * loop.index0
var<workgroup> wg_first_{{ k }}: atomic<u32>;
fn rank_{{ k }}(word: u32) -> u32 { {{ rank }} }
fn tile_rank_{{ k }}() -> u32 {
  var highest = 0u;
//$ for f, T in (of_floats if value == "f32" else [("max" if largest else "min", value)])
  var {{ f }}_{{ T }} = bitcast<{{ T }}>(tile_items[0].x[{{ at }}]);
  {{ f }}_{{ T }} = {{ f }}({{ f }}_{{ T }}, bitcast<{{ T }}>({{ x }}[{{ at }}]));  //$ for x in components("tile_items", vecs)
  highest = max(highest, rank_{{ k }}(bitcast<u32>({{ f }}_{{ T }})));
//$ endfor
  return highest;
}
fn is_best_{{ k }}(rank: u32) -> bool {
  if (local == 0u) { atomicStore(&wg_first_{{ k }}, 0xffffffffu); }
  return rank == wg_scan_rank(sg_reduce_rank(rank)).total;
}
fn first_{{ k }}(x: Acc, is_best: bool) -> Acc {
  if (is_best) { atomicMin(&wg_first_{{ k }}, x[{{ at + 1 }}]); }
  workgroupBarrier();
  if (is_best && x[{{ at + 1 }}] == atomicLoad(&wg_first_{{ k }})) { wg_found = x; }
  workgroupBarrier();
  return wg_found;
}
//$ endfor
fn begin_block() {}
fn with_tile(best: Acc, tile: u32, is_first: bool) -> Acc {
  var found = best;
//$ for k in range(sides | length)
  let here_{{ k }} = tile_rank_{{ k }}();
  if (is_first || here_{{ k }} > found[{{ 2 * k }}]) {
    found[{{ 2 * k }}] = here_{{ k }};
    found[{{ 2 * k + 1 }}] = tile;
  }
//$ endfor
  return found;
}
fn end_block(best: Acc, first: u32, end: u32) -> Acc {
  var found = identity();
  if (first >= end) { return found; }
  var loaded = end - 1u;
//$ for k in range(sides | length)
//$ set at = 2 * k
  let has_{{ k }} = is_best_{{ k }}(best[{{ at }}]);
  if (has_{{ k }}) {
    if (best[{{ at + 1 }}] != loaded) { tile_load(best[{{ at + 1 }}]); }
    loaded = best[{{ at + 1 }}];
    // Anew: a compiler may have rounded an expression in another way.
    let highest = tile_rank_{{ k }}();
    if (rank_{{ k }}({{ x }}[{{ at }}]) == highest) { found = {{ joined[k] % x }}; }  //$ for x in components("tile_items", vecs) | reverse
  }
  found = {{ joined[k] % "first_%d(found, has_%d)" % (k, k) }};
//$ endfor
  return found;
}
fn best_of_all(x: Acc) -> Acc {
  var found = x;
  found = {{ joined[k] % "first_%d(x, is_best_%d(rank_%d(x[%d])))" % (k, k, k, 2 * k) }};  //$ for k in range(sides | length)
  return found;
}
