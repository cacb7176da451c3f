// splits[t] = how many of the first t * TILE merged keys come from a: where the path of the merge crosses the diagonal on
// which tile t begins. Of equal keys those of a come first.
// Source: S. Odeh, O. Green, Z. Mwassi, O. Shmueli, Y. Birk, "Merge Path - Parallel Merging Made Simple" (2012).
// An invocation does one binary search per diagonal. Each of its steps waits for memory and reads lines that no other search
// reads, so it first probes where the path would be if both inputs were spread alike, and then one step beside it:
// where they are, the path lies between the two, and half of the steps are saved.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, splits{{ ", count" if counted_output }}.

struct Params {
  n_a: u32,  // keys
  n_b: u32,
  capacity_a: u32,  // keys that there is room for
  capacity_b: u32,
  tile_items: u32,
  splits: u32,  // tiles and one
  blocks: u32,  // workgroups that have work
  step: u32,  // the second probe lies so far from the first
//$ for lines in fields.values()
  {{ lines }}
//$ endfor
}
{{ bindings }}
//$ include "lib/workgroup_index.wgsl"
//$ include "lib/merge_order.wgsl"
override WORKGROUP_SIZE: u32 = 64u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let block = workgroup_index(workgroup, grid);
  let t = block * WORKGROUP_SIZE + local;
  if (block >= params.blocks || t >= params.splits) { return; }
  let n_a = length_a();
  let n_b = length_b();
  let n = n_a + n_b;
//$ if counted_output
  if (t == 0u) { store_count(0u, n); }
//$ endif
  let diagonal = min(t * params.tile_items, n);
  // The path crosses the diagonal between these places in a.
  var low = max(diagonal, n_b) - n_b;
  var high = min(diagonal, n_a);
  var probe = u32(f32(diagonal) * (f32(n_a) / f32(max(n, 1u))));
  for (var k = 0u; low < high; k++) {
    probe = clamp(probe, low, high - 1u);
    // The key of a comes first unless that of b is less.
    if (less(ranked(key_b(diagonal - 1u - probe)), ranked(key_a(probe)))) {
      high = probe;
      probe = max(probe, params.step) - params.step;
    } else {
      low = probe + 1u;
      probe += params.step;
    }
    if (k > 0u) { probe = low + (high - low) / 2u; }
  }
  store_splits(t, low);
}
