// Segmented reduction of blocks: each workgroup does a block of consecutive tiles, one after another, and writes the results of
// the segments that end in it. So each item is read once.
// What a block has of a segment that began before it, segmented_fixup.wgsl completes.
// Forward progress: no workgroup waits for another. Bindings: params, the inputs, totals, and the outputs.
// Sources: Sengupta, Harris, Zhang and Owens, "Scan primitives for GPU computing" (2007), for the operator; Merrill and
// Garland, "Merge-based parallel sparse matrix-vector multiplication" (2016), for results that a second kernel completes.
// Params: n (items of this window and those before; the GPU may have counted them); first (item of the window);
// capacity (items of the window that there is room for); whole (items of the array, whatever a window has);
// max_blocks; blocks (workgroups); flags (sum of some of HAS_CARRY and MORE_FOLLOWS); segments;
// expected_ends (segments that end in a tile, on average).
//$ include "lib/operator.wgsl"
//$ include "lib/chain.wgsl"
//$ include "lib/workgroup.wgsl"
//$ include "lib/segmented_subgroup.wgsl"
//$ include "lib/segmented_tile.wgsl"
//$ include "lib/segmented_blocks.wgsl"
//$ include "lib/emit_ends.wgsl"
//$ if short
//$ include "lib/segmented_short.wgsl"
//$ endif

//$ if op.commutative
// What comes before a tile, and what each invocation has of tiles without a head since then.
fn with_loose(before: Chain, loose: Acc) -> Chain {
  return chain_combine(before, wg_scan_chain(chain_of(0u, sg_reduce(loose))).total);
}
//$ endif
// Does a block, and returns what comes after its last head.
fn block_chain(block: u32) -> Chain {
  let first = block * tiles_per_block();
  let end = min(first + tiles_per_block(), used_tiles());
  var before = chain_identity();
  if (local == 0u) { unfinished = NO_SEGMENT; }
  var segment = 0u;
  if (first < end) { segment = segments_begin(first); }
//$ if op.commutative
  // What each invocation has of tiles without a head, in which nothing needs to be scanned.
  var loose = identity();
  var has_loose = false;
//$ endif
  for (var tile = first; tile < end; tile++) {
//$ if short
    if (are_short(tile, segment)) {
//$ if op.commutative
      if (has_loose) {
        before = with_loose(before, loose);
        loose = identity();
        has_loose = false;
      }
//$ endif
      let end = emit_short(tile, segment, tile_begin(first), before);
      if (end != NO_SEGMENT && tail_is_short(tile, end)) {
        before = chain_of(1u, tail_value(tile, end));
        segment = end;
        continue;
      }
      storageBarrier();  // results that are stored again come after those that were stored just now
    }
//$ endif
    tile_load(tile);
    let found = heads_begin(tile, segment);
//$ if op.commutative
    if (found.heads == 0u && found.end == segment) {
//$ for k in range(vecs)
      loose = combine(loose, combine(combine(tile_values[{{ k }}].x, tile_values[{{ k }}].y), combine(tile_values[{{ k }}].z, tile_values[{{ k }}].w)));
//$ endfor
      has_loose = true;
      continue;
    }
    if (has_loose) {
      before = with_loose(before, loose);
      loose = identity();
      has_loose = false;
    }
//$ endif
    tile_heads[{{ r }}] = heads_of(tile, {{ r }}u);  //$ for r in range(rows)
    let sum = tile_scan();
    if (found.end > segment) { emit_ends(tile, segment, found.end, tile_begin(first), before, sum); }
    segment = found.end;
    before = chain_combine(before, sum.total);
  }
//$ if op.commutative
  if (has_loose) { before = with_loose(before, loose); }
//$ endif
  workgroupBarrier();  // for `unfinished`
  return before;
}

fn run(block: u32, lanes: Lanes) {
  enter(lanes);
  let before = block_chain(block);
  if (local == 0u) {
//$ set row = 2 + 2 * acc.words
    store_totals({{ row }}u * block + {{ k }}u, before[{{ k }}]);  //$ for k in range(1 + acc.words)
    store_totals({{ row }}u * block + {{ 1 + acc.words }}u, unfinished);
    let partial = chain_of(0u, unfinished_value);
    store_totals({{ row }}u * block + {{ 2 + acc.words + k }}u, partial[{{ 1 + k }}]);  //$ for k in range(acc.words)
  }
}
