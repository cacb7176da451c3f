// The item with the greatest rank, of several the first. Indices ascend in the order in which an invocation reads items, so
// a later item wins only if its rank is greater. The index is needed only where the best item changes: each item costs
// its rank and a maximum.
fn rank_of(word: u32) -> u32 { {{ ranks[0] }} }
var<private> best_rank: u32;

fn begin_block() {}

fn with_tile(best: Acc, is_first: bool) -> Acc {
  var highest = 0u;
  highest = max(highest, rank_of({{ x }}[0]));  //$ for x in components("tile_items", vecs)
  // Behind the last item there are identities: with the rank of the least item, but no smaller index.
  if (!is_first && highest <= best_rank) { return best; }
  best_rank = highest;
  var found = best;
  if (rank_of({{ x }}[0]) == highest) { found = {{ x }}; }  //$ for x in components("tile_items", vecs) | reverse
  return found;
}
