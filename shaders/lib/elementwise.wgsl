// Elementwise kernels: each workgroup does one block of WORKGROUP_SIZE × VECS vec4, loads before stores.
// The kernel's file defines f and f4, which return the results for the index of an item.
//$ if regions > 1
// Blocks of several regions take turns. Above the memory whose pages the GPU knows, concurrent workgroups then do not all
// wait for the lookup of the same page.
//$ endif
const VECS: u32 = {{ vecs }}u;

fn run(turn: u32, local: u32) {
//$ if regions > 1
  let each = params.blocks / {{ regions }}u;
  let block = select(turn, turn % {{ regions }}u * each + turn / {{ regions }}u, turn < {{ regions }}u * each);
//$ else
  let block = turn;
//$ endif
  let first = (block * WORKGROUP_SIZE * VECS + local) * 4u;
//$ if counted
  if (first >= {{ used.n }}) { return; }
//$ endif
  if ((block + 1u) * WORKGROUP_SIZE * VECS * 4u <= {{ used.n }}) {
    var results: array<{{ quad if quad is defined else "vec4<u32>" }}, VECS>;
    for (var r = 0u; r < VECS; r++) { results[r] = f4(first + r * WORKGROUP_SIZE * 4u); }
    for (var r = 0u; r < VECS; r++) { store4_output(first + r * WORKGROUP_SIZE * 4u, results[r]); }
    return;
  }
  for (var r = 0u; r < VECS; r++) {
    let i = first + r * WORKGROUP_SIZE * 4u;
    if (i + 4u <= {{ used.n }}) {
      store4_output(i, f4(i));
    } else {
      for (var j = i; j < {{ used.n }}; j++) { store_output(j, f(j)); }
    }
  }
}
