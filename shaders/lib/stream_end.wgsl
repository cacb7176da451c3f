// The end of a window: the counts, the run that is open, and what the next window has to know.
//$ set next = words + (marks[0].bytes // 8 + 1 if heads else 0)

// One invocation calls it, with the counts of the window.
fn emit_end(here: Acc) {
  let total = carried_before(here);
  let n = min(params.n, params.first + params.capacity);
  let counts = counts_of(total);
  store_{{ count }}({{ loop.index0 }}u, {{ part }});  //$ for part in (["counts.x", "counts.y"] if two else ["counts"])
//$ if splits
  store_{{ count }}({{ marks | length }}u, n - sum_of(counts));
//$ endif
//$ if runs
  // The run that is open ends with the items; if more windows follow, one of them writes its length again.
  if (total.x > 0u && total.x <= params.room) { store_lengths(total.x - 1u, n + 1u - total.y); }
//$ endif
//$ if carried
  // Behind what this window was given, in the same order.
  store_carries({{ next + k }}u, total{{ "[%d]" % k if words > 1 }});  //$ for k in range(words)
//$ if heads
  if (item_count() > 0u) {
    let last = load_{{ marks[0].name }}(item_count() - 1u);
    store_carries({{ next + words + k }}u, last{{ "[%d]" % k if marks[0].bytes == 8 }});  //$ for k in range(next - words)
  }
//$ endif
//$ endif
}
