// Product of two row-major matrices of f16: c[m, n] = Σ a[m, k] · b[k, n], summed in f32, by matrices of 16 × 16 that a
// subgroup multiplies at once, as tensor cores do.
// Each workgroup computes a tile of c. It walks along k in steps: a tile of a and one of b go through workgroup memory, and
// every subgroup multiplies its part of them into sums that stay in registers. Loads for the next step are in flight
// meanwhile. The sums go through workgroup memory, too, as the matrices cannot be converted to f16.
// Source: NVIDIA's CUTLASS, for the tiles of a workgroup and of a subgroup.
// Tiles are vec4 of words, eight items each: matrices load from those, too, and a store of 16 bytes is one instruction, not
// eight. With arrays of f16 a product took 1.4 times as long.
// Assumptions: subgroups of 32. WGSL of Dawn: chromium_experimental_subgroup_matrix.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

//$ include "lib/matmul_tiles.wgsl"

//$ set subgroups_n = tile_n // part_n
//$ set invocations = 32 * (tile_m // part_m) * subgroups_n
const WORKGROUP_SIZE: u32 = {{ invocations }}u;
//$ set rows_m = part_m // 16
//$ set rows_n = part_n // items_n
// Rows of eight items. There is a gap behind each of a tile, so that rows begin in different banks.
//$ set a_rows = tile_k // 8
//$ set b_rows = tile_n // 8
//$ set a_stride = a_rows + 1
//$ set b_stride = b_rows + 1
//$ set a_jobs = tile_m * a_rows // invocations
//$ set b_jobs = tile_k * b_rows // invocations
// Steps along k, but for a tail. A constant, with which a product takes two thirds of the time: Tint counts the turns of
// other loops, and NVIDIA's compiler, too, makes more of one whose turns it knows.
override STEPS: u32;
alias Row = vec4<u32>;
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, {{ items_n }}, 16>;
alias Sums = subgroup_matrix_result<f32, {{ items_n }}, 16>;

// One step: the tile of a, and then that of b. In the end 16 rows of each subgroup's sums, some columns at a time.
//$ set b_first = tile_m * a_stride
//$ set sums_n = exchanged_n
//$ set sums_stride = sums_n // 4 + 1
var<workgroup> tiles: array<vec4<u32>, {{ storage_bytes // 16 }}>;

// Items i to i + 7 of a row of `length` items; zeros past its end.
//$ for operand in ("a", "b")
fn row_{{ operand }}(row: u32, i: u32, length: u32) -> Row {
  let first = row * length + i;
//$ if whole
  if (i < length) { return load_row_{{ operand }}(first); }
  return Row(0u);
//$ else
  var found = Row(0u);
//$ if quads
  if (i < length) { found = Row(load4_{{ operand }}(first), 0u, 0u); }
  if (i + 4u < length) { found = Row(found.xy, load4_{{ operand }}(first + 4u)); }
//$ else
//$ for j in range(8)
  if (i + {{ j }}u < length) { found[{{ j // 2 }}] |= load_{{ operand }}(first + {{ j }}u) << {{ 16 * (j % 2) }}u; }
//$ endfor
//$ endif
  return found;
//$ endif
}
//$ endfor

// Stores the eight sums of columns `column` to `column` + 7.
fn put_row(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>) {
//$ if whole
  if (row < params.m && column < params.n) { store_row_output(row * params.n + column, Row(lower4(low), lower4(high))); }
//$ else
  put(row, column, low);
  put(row, column + 4u, high);
//$ endif
}

struct Lanes {
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
}

fn run(block: u32, lanes: Lanes) {
  let local = lanes.local;
  let subgroup = lanes.subgroup;
  let lane = lanes.lane;
//$ include "lib/matmul_tile.wgsl"
  // Bounded, as Tint sees: it checks no index then.
  let y = subgroup / {{ subgroups_n }}u % {{ tile_m // part_m }}u * {{ part_m }}u;
  let x = subgroup % {{ subgroups_n }}u * {{ part_n // 8 }}u;
//$ for i in range(rows_m)
  var sum_{{ i }}_{{ j }}: Sums;  //$ for j in range(rows_n)
//$ endfor

//$ if a_rows == 4
  // Eight lanes store rows r and r + 4 of a: with the gaps these are in different banks, r and r + 1 are not.
  let a_row = local / 32u * 8u + local / 8u % 4u + local / 4u % 2u * 4u;
//$ else
  let a_row = local / {{ a_rows }}u;
//$ endif
  let a_column = local % {{ a_rows }}u;
  let b_row = local / {{ b_rows }}u;
  let b_column = local % {{ b_rows }}u;
  let a_at = a_row * {{ a_stride }}u + a_column;
  let b_at = {{ b_first }}u + b_row * {{ b_stride }}u + b_column;
  // In flight from memory to workgroup memory.
//$ for operand, jobs in (("a", a_jobs), ("b", b_jobs))
  var {{ operand }}_{{ r }}: Row;  //$ for r in range(jobs)
//$ endfor
//$ macro stage()
  workgroupBarrier();
//$ for r in range(a_jobs)
  tiles[a_at + {{ r * invocations // a_rows * a_stride }}u] = a_{{ r }};
//$ endfor
//$ for r in range(b_jobs)
  tiles[b_at + {{ r * invocations // b_rows * b_stride }}u] = b_{{ r }};
//$ endfor
  workgroupBarrier();
//$ endmacro
//$ macro multiply()
//$ for k in range(0, tile_k, 16)
  {
//$ for i in range(rows_m)
    let left_{{ i }} = subgroupMatrixLoad<Left, row_major>(
      &tiles, (y + {{ 16 * i }}u) * {{ a_stride }}u + {{ k // 8 }}u, {{ a_stride }}u,
    );
//$ endfor
//$ for j in range(rows_n)
    let right_{{ j }} = subgroupMatrixLoad<Right, row_major>(
      &tiles, {{ b_first + k * b_stride + j * items_n // 8 }}u + x, {{ b_stride }}u,
    );
//$ for i in range(rows_m)
    sum_{{ i }}_{{ j }} = subgroupMatrixMultiplyAccumulate(left_{{ i }}, right_{{ j }}, sum_{{ i }}_{{ j }});
//$ endfor
//$ endfor
  }
//$ endfor
//$ endmacro
//$ macro load_checked()
  // Rows of a past its end give sums that are never stored, so any row is read for them.
//$ for r in range(a_jobs)
  a_{{ r }} = row_a(min(row + a_row + {{ r * invocations // a_rows }}u, params.m - 1u), first + a_column * 8u, params.k);
//$ endfor
  // Rows of b past its end meet zeros of a, but what is read for them may be infinite: zeros here, too.
//$ for r in range(b_jobs)
  {
    let k = first + b_row + {{ r * invocations // b_rows }}u;
    b_{{ r }} = row_b(k, select(params.n, column + b_column * 8u, k < params.k), params.n);
  }
//$ endfor
//$ endmacro
//$ if whole
  // Whole steps: what lies past the end of a row is read, and gives sums that are never stored. No check, no branch: either
  // costs registers that the sums need.
  var a_first = (row + a_row) * params.k + a_column * 8u;
  var b_first = b_row * params.n + column + b_column * 8u;
  let a_last = params.m * params.k - 8u;
  let b_last = params.k * params.n - 8u;
//$ macro load_step()
//$ for r in range(a_jobs)
  a_{{ r }} = load_row_a(min(a_first + {{ r * invocations // a_rows }}u * params.k, a_last));
//$ endfor
//$ for r in range(b_jobs)
  b_{{ r }} = load_row_b(min(b_first + {{ r * invocations // b_rows }}u * params.n, b_last));
//$ endfor
  a_first += TILE_K;
  b_first += TILE_K * params.n;
//$ endmacro
//$ if steps
{{ load_step() }}
  for (var step = 0u; step < STEPS; step++) {
{{ stage() }}
    // The next step, while this one is multiplied; behind the last one what lies there.
{{ load_step() }}
{{ multiply() }}
  }
//$ endif
//$ if tail
  {
    let first = STEPS * TILE_K;
{{ load_checked() }}
{{ stage() }}
{{ multiply() }}
  }
//$ endif
//$ else
  for (var step = 0u; step < STEPS; step++) {
    let first = step * TILE_K;
{{ load_checked() }}
{{ stage() }}
{{ multiply() }}
  }
//$ endif
  // Lanes store eight items of a row at a time.
  let mine = {{ 16 * sums_stride }}u * (subgroup % {{ invocations // 32 }}u);
//$ set rows = sums_n // 8
//$ for i in range(rows_m)
//$ for first in range(0, part_n, sums_n)
  workgroupBarrier();
//$ for j in range(0, sums_n, items_n)
  subgroupMatrixStore<row_major>(&tiles, mine + {{ j // 4 }}u, sum_{{ i }}_{{ (first + j) // items_n }}, {{ sums_stride }}u);
//$ endfor
  workgroupBarrier();
  for (var r = 0u; r < {{ rows // 2 }}u; r++) {
    let job = lane + 32u * r;
    let at = mine + job / {{ rows }}u * {{ sums_stride }}u + job % {{ rows }}u * 2u;
    put_row(
      row + y + {{ 16 * i }}u + job / {{ rows }}u, column + x * 8u + {{ first }}u + job % {{ rows }}u * 8u,
      bitcast<vec4<f32>>(tiles[at]), bitcast<vec4<f32>>(tiles[at + 1u]),
    );
  }
//$ endfor
//$ endfor
}
