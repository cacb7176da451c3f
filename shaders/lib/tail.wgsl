// Stores those of the items i to i + 3 that lie before item n.
fn store4_guarded(i: u32, words: vec4<u32>) {
  if (i + 4u <= {{ used.n }}) {
    store4_output(i, words);
  } else {
    if (i < {{ used.n }}) { store_output(i, words.x); }
    if (i + 1u < {{ used.n }}) { store_output(i + 1u, words.y); }
    if (i + 2u < {{ used.n }}) { store_output(i + 2u, words.z); }
  }
}
