// The end of a window: the counts, the run that is open, and what the next window has to know.
//$ set carry_words = words + (marks[0].bytes // 8 + 1 if heads else 0)

// One invocation calls it, with the counts of the window.
fn emit_end(here: Acc) {
  let total = carried_before(here);
  let n = min(params.n, params.first + params.capacity);
//$ if words == 1
  store_{{ count }}(0u, total);
//$ if splits
  store_{{ count }}(1u, n - total);
//$ endif
//$ elif splits
  store_{{ count }}(0u, total.x);
  store_{{ count }}(1u, total.y);
  store_{{ count }}(2u, n - total.x - total.y);
//$ else
  store_{{ count }}(0u, total.x);
//$ endif
//$ if runs
  // The run that is open ends with the items; if more windows follow, one of them writes its length again.
  if (total.x > 0u && total.x <= params.room) { store_lengths(total.x - 1u, n + 1u - total.y); }
//$ endif
//$ if carried
//$ if words == 1
  store_carries({{ carry_words }}u, total);
//$ else
  store_carries({{ carry_words }}u, total.x);
  store_carries({{ carry_words + 1 }}u, total.y);
//$ endif
//$ if heads
  if (item_count() > 0u) {
    let last = load_{{ marks[0].name }}(item_count() - 1u);
//$ if marks[0].bytes == 8
    store_carries({{ carry_words + words }}u, last.x);
    store_carries({{ carry_words + words + 1 }}u, last.y);
//$ else
    store_carries({{ carry_words + words }}u, last);
//$ endif
  }
//$ endif
//$ endif
}
