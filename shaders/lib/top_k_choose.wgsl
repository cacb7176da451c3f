// How a workgroup finds entries among which the k best {{ step }} of its row are.
//$ set hinted = listed or two_steps and step == "items"
// Codes that an invocation loads together.
//$ set together = 8 if key_words == 1 else 4
// The smallest code of each slot. Codes whose places agree modulo the number of slots are one part of the row.
fn fill_slots_{{ step }}() {
//$ if ragged
  let slots = workgroupUniformLoad(&row_slots);
//$ endif
  let parts = max({{ slots }}, WORKGROUP_SIZE);
  workgroupBarrier();
  for (var s = local; s < parts; s += WORKGROUP_SIZE) {
    var found = NO_CODE;
    var j = s;
    while (j + {{ together - 1 }}u * parts < {{ length }}) {
      let code_{{ t }} = code_at_{{ step }}(j + {{ t }}u * parts);  //$ for t in range(together)
      found = least(found, code_{{ t }});  //$ for t in range(together)
      j += {{ together }}u * parts;
    }
    while (j < {{ length }}) {
      found = least(found, code_at_{{ step }}(j));
      j += parts;
    }
    codes[s] = found;
  }
  for (var size = parts >> 1u; size >= {{ slots }}; size >>= 1u) {
    workgroupBarrier();
    for (var s = local; s < size; s += WORKGROUP_SIZE) { codes[s] = least(codes[s], codes[s + size]); }
  }
}
// Collects the codes up to a limit, in any order, as far as there is room; counts them, and those below it.
fn collect_{{ step }}(limit: Key) {
  var below = 0u;
  var j = local;
  while (j < {{ length }}) {
    // Places behind the end count as the last one, and are not taken. Many invocations that each take many codes would wait
    // for each other at the counter, so they take room for several at once.
    let code_{{ t }} = code_at_{{ step }}(min(j + {{ t }}u * WORKGROUP_SIZE, {{ length }} - 1u));  //$ for t in range(together)
    var taken = 0u;
//$ for t in range(together)
    let take_{{ t }} = !less(limit, code_{{ t }}) & (j + {{ t }}u * WORKGROUP_SIZE < {{ length }});
    taken += select(0u, 1u, take_{{ t }});
    below += select(0u, 1u, take_{{ t }} & less(code_{{ t }}, limit));
//$ endfor
    if (taken > 0u) {
      var at = atomicAdd(&collected, taken);
//$ for t in range(together)
      if (take_{{ t }}) {
        put_entry(at, code_{{ t }}, j + {{ t }}u * WORKGROUP_SIZE);
        at += 1u;
      }
//$ endfor
    }
    j += {{ together }}u * WORKGROUP_SIZE;
  }
  if (below > 0u) { atomicAdd(&collected_below, below); }
}
// Finds the k-th smallest code.
fn find_kth_{{ step }}() -> Kth {
  var some = Key();
  var every = NO_CODE;
  for (var j = local; j < {{ length }}; j += WORKGROUP_SIZE) {
    let code = code_at_{{ step }}(j);
    some |= code;
    every &= code;
  }
  var kth = Key();  // its digits that are known
  var known = Key();  // and where these are
  var left = {{ k }};
//$ set words = [("", "")] if key_words == 1 else [(".y", "_high"), (".x", "_low")]
//$ for word, tag in words
  // Digits in which all codes agree are known.
  workgroupBarrier();
  if (local == 0u) {
    atomicStore(&bins[0], 0u);
    atomicStore(&bins[1], 0xffffffffu);
  }
  workgroupBarrier();
  atomicOr(&bins[0], some{{ word }});
  atomicAnd(&bins[1], every{{ word }});
  workgroupBarrier();
  let bits{{ tag }} = share(atomicLoad(&bins[0]));
  let agreed{{ tag }} = share(atomicLoad(&bins[1]));
  let differ{{ tag }} = bits{{ tag }} ^ agreed{{ tag }};
  for (var shift = 24u; ; shift -= 8u) {
    if (((differ{{ tag }} >> shift) & 255u) == 0u) {
      kth{{ word }} |= agreed{{ tag }} & (255u << shift);
      known{{ word }} |= 255u << shift;
    } else {
      workgroupBarrier();
      for (var b = local; b < BINS; b += WORKGROUP_SIZE) { atomicStore(&bins[b], 0u); }
      workgroupBarrier();
      for (var j = local; j < {{ length }}; j += WORKGROUP_SIZE) {
        let code = code_at_{{ step }}(j);
        if (same(code & known, kth)) { atomicAdd(&bins[(code{{ word }} >> shift) & 255u], 1u); }
      }
      workgroupBarrier();
      // Each invocation has consecutive bins, or none.
      let each = max(1u, BINS / WORKGROUP_SIZE);
      var mine = 0u;
      for (var b = local * each; b < min((local + 1u) * each, BINS); b++) { mine += atomicLoad(&bins[b]); }
      let first = prefix_sum(mine);
      if (first < left && left <= first + mine) {
        var before = first;
        var b = local * each;
        while (before + atomicLoad(&bins[b]) < left) {
          before += atomicLoad(&bins[b]);
          b++;
        }
        sums[0] = b;
        sums[1] = before;
      }
      workgroupBarrier();
      let digit = share(sums[0]);
      left -= share(sums[1]);
      kth{{ word }} |= digit << shift;
      known{{ word }} |= 255u << shift;
    }
    if (shift == 0u) { break; }
  }
//$ endfor
  return Kth(kth, left);
}
// Stores entries, of which the k best are those of the row, and returns how many there are.
fn choose_{{ step }}(row_items: u32) -> u32 {
  if (row_items <= ROOM) {
    workgroupBarrier();
    for (var j = local; j < row_items; j += WORKGROUP_SIZE) {
      codes[j] = code_at_{{ step }}(j);
      places[j] = j;
    }
    return row_items;
  }
//$ if two_steps and step == "items"
  // As many items as chosen groups do not exceed the largest of their codes.
  var limit = kth_group;
//$ elif listed and key_words == 1
  // As many codes as listed groups do not exceed the largest of theirs, which is behind the list.
  var limit = load_list(params.k);
//$ elif listed
  var limit = vec2<u32>(load_list(params.k), load_list(params.k + 1u));
//$ else
  var limit = NO_CODE;
//$ endif
  var left = 0u;
  for (var attempt = {{ "0u" if hinted else "1u" }}; attempt < 2u; attempt++) {
    if (attempt == 1u) {
      if ({{ uniform_slots }} == 0u) { break; }
      fill_slots_{{ step }}();
      limit = kth_of_slots();
    }
    begin_collecting();
    collect_{{ step }}(limit);
    workgroupBarrier();
    let count = share(atomicLoad(&collected));
    if (count <= ROOM) { return count; }
    // Where fewer than k are below a limit that k do not exceed, it is the k-th smallest itself.
    let before = share(atomicLoad(&collected_below));
    let wanted = {{ uniform_k }};
    if (before < wanted) {
      left = wanted - before;
      break;
    }
  }
  if (left == 0u) {
    let found = find_kth_{{ step }}();
    limit = found.code;
    left = found.left;
  }
  // Exactly k: those below it in any order, then the first `left` that equal it, by consecutive parts of the row.
  workgroupBarrier();
  if (local == 0u) { atomicStore(&collected, 0u); }
  let each = ({{ length }} + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
  let begin = min(local * each, {{ length }});
  let end = min(begin + each, {{ length }});
  var equal = 0u;
  for (var j = begin; j < end; j++) { equal += select(0u, 1u, same(code_at_{{ step }}(j), limit)); }
  var rank = prefix_sum(equal);
  for (var j = local; j < {{ length }}; j += WORKGROUP_SIZE) {
    let code = code_at_{{ step }}(j);
    if (less(code, limit)) { put_entry(atomicAdd(&collected, 1u), code, j); }
  }
  for (var j = begin; j < end && rank < left; j++) {
    if (same(code_at_{{ step }}(j), limit)) {
      put_entry({{ k }} - left + rank, limit, j);
      rank++;
    }
  }
  workgroupBarrier();
  return {{ uniform_k }};
}
