// Where items go if those with a mark are kept: one behind the other, from the number of all earlier ones on. `rank` is that of an
// item among those that are written together, `before` what comes before them.
alias Place = u32;
fn place_in_output(rank: u32, first: u32, before: Acc, count: Counts) -> Place { return counts_of(before) + rank; }
// How many of `most` items from item `first` on are written; `count` of them have a mark.
fn written_of(first: u32, most: u32, count: Counts) -> u32 { return count; }

//$ include "lib/stream_write.wgsl"
fn write_{{ f.name }}(to: Place, {{ f.given }}) { write_to_{{ f.outputs[0] }}(to, {{ f.gives }}); }  //$ for f in moved
