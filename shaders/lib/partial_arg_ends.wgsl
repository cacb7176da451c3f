// The items with the greatest rank of two, of several the first, as in lib/partial_arg.wgsl: for the smallest, which are the
// first two words of an accumulator, and for the largest, the others.
fn rank_of_least_of(word: u32) -> u32 { {{ ranks[0] }} }
var<private> best_rank_of_least: u32;
fn rank_of_most_of(word: u32) -> u32 { {{ ranks[1] }} }
var<private> best_rank_of_most: u32;

fn begin_block() {}

fn with_tile(best: Acc, is_first: bool) -> Acc {
  var highest_of_least = 0u;
  var highest_of_most = 0u;
//$ for x in components("tile_items", vecs)
  highest_of_least = max(highest_of_least, rank_of_least_of({{ x }}[0]));
  highest_of_most = max(highest_of_most, rank_of_most_of({{ x }}[2]));
//$ endfor
  // Behind the last item there are identities: with the rank of the least item, but no smaller index.
  var found = best;
//$ for side, word in (("of_least", 0), ("of_most", 2))
  if (is_first || highest_{{ side }} > best_rank_{{ side }}) {
    best_rank_{{ side }} = highest_{{ side }};
//$ for x in components("tile_items", vecs) | reverse
    if (rank_{{ side }}_of({{ x }}[{{ word }}]) == highest_{{ side }}) {
      found[{{ word }}] = {{ x }}[{{ word }}];
      found[{{ word + 1 }}] = {{ x }}[{{ word + 1 }}];
    }
//$ endfor
  }
//$ endfor
  return found;
}
