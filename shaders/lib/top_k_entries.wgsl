// Entries in workgroup memory, and how the workgroup that chooses the k best sorts them.
fn comes_before(a: u32, b: u32) -> bool {
  return less(codes[a], codes[b]) || (same(codes[a], codes[b]) && places[a] < places[b]);
}
fn power_of_two_from(n: u32) -> u32 { return select(1u << (32u - countLeadingZeros(n - 1u)), 1u, n <= 1u); }
// Sorts the first `count` entries by code and place.
fn sort_entries(count: u32) {
  let size = power_of_two_from(count);
  if (size * size <= COMPARISONS * WORKGROUP_SIZE) {
    sort_by_ranks(count, size);
  } else {
    // What fills up comes behind all others.
    for (var e = count + local; e < size; e += WORKGROUP_SIZE) {
      codes[e] = NO_CODE;
      places[e] = NO_PLACE;
    }
    sort_by_exchanges(size);
  }
}
// Sorts the first k entries by place alone.
fn sort_by_places() {
  workgroupBarrier();
  for (var e = local; e < {{ k }}; e += WORKGROUP_SIZE) { codes[e] = Key(); }
//$ if few
  sort_by_ranks(params.k, power_of_two_from(params.k));
//$ else
  sort_entries({{ uniform_k }});
//$ endif
}
// The place of an entry is the number of entries that come before it: as many comparisons as pairs, but only two waits.
fn sort_by_ranks(count: u32, size: u32) {
  let shares = max(min(WORKGROUP_SIZE / size, size), 1u);  // invocations that share the comparisons of an entry
  let e = local % size;
  let share_items = (count + shares - 1u) / shares;
  let first = (local / size) * share_items;
  workgroupBarrier();
  let code = codes[e];
  let place = places[e];
  if (e < count && local < size * shares) {
    var before = 0u;
    for (var o = first; o < min(first + share_items, count); o++) {
      let other = codes[o];
//$ if segmented
      // Entries that only fill up are equal: these stay where they are.
      let earlier = (places[o] < place) | ((places[o] == place) & (o < e));
//$ else
      let earlier = places[o] < place;
//$ endif
      before += select(0u, 1u, less(other, code) | (same(other, code) & earlier));
    }
    sums[local] = before;
  }
  workgroupBarrier();
  if (local < count) {
    var rank = 0u;
    for (var p = local; p < size * shares; p += size) { rank += sums[p]; }
    codes[rank] = code;
    places[rank] = place;
  }
  workgroupBarrier();
}
// Batcher's bitonic network (1968).
fn sort_by_exchanges(size: u32) {
  for (var width = 2u; width <= size; width <<= 1u) {
    for (var d = width >> 1u; d > 0u; d >>= 1u) {
      workgroupBarrier();
      for (var p = local; p < size / 2u; p += WORKGROUP_SIZE) {
        let a = ((p & ~(d - 1u)) << 1u) | (p & (d - 1u));
        let b = a | d;
        if (comes_before(b, a) == ((a & width) == 0u)) {
          let code = codes[a];
          let place = places[a];
          codes[a] = codes[b];
          places[a] = places[b];
          codes[b] = code;
          places[b] = place;
        }
      }
    }
  }
  workgroupBarrier();
}
//$ include "lib/prefix_sum.wgsl"
// The k-th smallest of the first SLOTS codes. It is the largest of those that fewer than k are smaller than, so that their
// places, and their order, do not matter.
fn kth_of_slots() -> Key {
//$ if ragged
  let slots = workgroupUniformLoad(&row_slots);
//$ endif
//$ if not few
  if ({{ slots }} > WORKGROUP_SIZE || {{ slots }} * {{ slots }} > 2u * COMPARISONS * WORKGROUP_SIZE) {
    for (var s = local; s < {{ slots }}; s += WORKGROUP_SIZE) { places[s] = s; }
    sort_entries({{ slots }});
    let limit = codes[{{ k }} - 1u];
    workgroupBarrier();
    return limit;
  }
//$ endif
  workgroupBarrier();
  let s = local & ({{ slots }} - 1u);
  let share_items = {{ slots }} / (WORKGROUP_SIZE / {{ slots }});
  let first = (local / {{ slots }}) * share_items;
  if (local == 0u) {
    atomicStore(&bins[0], 0u);
    atomicStore(&bins[1], 0u);
  }
  workgroupBarrier();
  let code = codes[s];
  var smaller = 0u;
  for (var o = first; o < min(first + share_items, {{ slots }}); o++) { smaller += select(0u, 1u, less(codes[o], code)); }
  sums[local] = smaller;
  workgroupBarrier();
  smaller = {{ k }};
  if (local < {{ slots }}) {
    smaller = 0u;
    for (var p = local; p < WORKGROUP_SIZE; p += {{ slots }}) { smaller += sums[p]; }
  }
//$ if key_words == 1
  if (smaller < {{ k }}) { atomicMax(&bins[0], code); }
  workgroupBarrier();
  return atomicLoad(&bins[0]);
//$ else
  if (smaller < {{ k }}) { atomicMax(&bins[0], code.y); }
  workgroupBarrier();
  let high = atomicLoad(&bins[0]);
  if (smaller < {{ k }} && code.y == high) { atomicMax(&bins[1], code.x); }
  workgroupBarrier();
  return vec2<u32>(atomicLoad(&bins[1]), high);
//$ endif
}
// The k-th smallest code, and how many of the codes that equal it are of the first k.
struct Kth { code: Key, left: u32 }
fn begin_collecting() {
  workgroupBarrier();
  if (local == 0u) {
    atomicStore(&collected, 0u);
    atomicStore(&collected_below, 0u);
  }
  workgroupBarrier();
}
fn put_entry(at: u32, code: Key, place: u32) {
  if (at < ROOM) {
    codes[at] = code;
    places[at] = place;
  }
}
