// Where items go if all are kept: those with the first mark to the first output, those with the second one to the second, the
// others to the last. Within the items that are written together, a tile or a round, they lie in this order.
struct Place { output: u32, at: u32 }
// The rank, among those written together, of item i of them; `rank` is that which it has, or would have, among those with a mark.
//$ if two
fn rank_of(i: u32, bits: Counts, j: u32, rank: Counts, count: Counts) -> u32 {
  let other = select(sum_of(count) + i - sum_of(rank), count.x + rank.y, has_mark(bits.y, j));
  return select(other, rank.x, has_mark(bits.x, j));
}
fn place_in_output(rank: u32, first: u32, before: Acc, count: Counts) -> Place {
  if (rank < count.x) { return Place(0u, before.x + rank); }
  if (rank < sum_of(count)) { return Place(1u, before.y + rank - count.x); }
  return Place(2u, params.first + first - sum_of(before) + rank - sum_of(count));
}
//$ else
fn rank_of(i: u32, bits: Counts, j: u32, rank: Counts, count: Counts) -> u32 {
  return select(count + i - rank, rank, has_mark(bits, j));
}
fn place_in_output(rank: u32, first: u32, before: Acc, count: Counts) -> Place {
  if (rank < count) { return Place(0u, before + rank); }
  return Place(1u, params.first + first - before + rank - count);
}
//$ endif
// How many of `most` items from item `first` on are written: those that there are.
fn written_of(first: u32, most: u32, count: Counts) -> u32 { return min(most, max(item_count(), first) - first); }

//$ include "lib/stream_write.wgsl"
//$ for f in moved
fn write_{{ f.name }}(to: Place, {{ f.given }}) {
//$ for output in f.outputs
  {{ "else " if not loop.first }}{{ "if (to.output == %du) " % loop.index0 if not loop.last }}{ write_to_{{ output }}(to.at, {{ f.gives }}); }
//$ endfor
}
//$ endfor
