// Kernels that compute items of any size, by quads: four consecutive items, which one invocation writes.
// So small items, of which several share a word, are written as whole words. The kernel's file defines item_at(i), or
// quad_at(i), too, where it has more than items one by one.
const VECS: u32 = {{ vecs }}u;

//$ if own_quads is not defined
fn quad_at(i: u32) -> Quad { return quad_of(item_at(i), item_at(i + 1u), item_at(i + 2u), item_at(i + 3u)); }
//$ endif

fn run(block: u32, local: u32) {
  {{ "if ((block + 1u) * VECS * WORKGROUP_SIZE * 4u <= params.n) { run_tile(block, local); return; }" if parts is defined and parts }}
  for (var r = 0u; r < VECS; r++) {
    let i = ((block * VECS + r) * WORKGROUP_SIZE + local) * 4u;
    if (i + 4u <= params.n) {
      store4_output(i, quad_at(i));
    } else {
      for (var j = i; j < params.n; j++) { store_output(j, item_at(j)); }
    }
  }
}
