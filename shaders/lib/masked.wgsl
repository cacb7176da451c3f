// Quads of which only the items from `first` to `end` count; the identity stands for the others.
fn masked4(v: Quad, i: u32, first: u32, end: u32) -> Quad {
  let e = identity();
  return Quad(
    select(e, v.x, i >= first && i < end),
    select(e, v.y, i + 1u >= first && i + 1u < end),
    select(e, v.z, i + 2u >= first && i + 2u < end),
    select(e, v.w, i + 3u >= first && i + 3u < end),
  );
}

// The same where the input may end within the quad.
fn guarded4(i: u32, first: u32, end: u32) -> Quad {
  var v = quad_of(identity());
  if (i >= first && i < end) { v.x = item(i); }
  if (i + 1u >= first && i + 1u < end) { v.y = item(i + 1u); }
  if (i + 2u >= first && i + 2u < end) { v.z = item(i + 2u); }
  if (i + 3u >= first && i + 3u < end) { v.w = item(i + 3u); }
  return v;
}

fn join4(v: Quad) -> Acc { return combine(combine(v.x, v.y), combine(v.z, v.w)); }
