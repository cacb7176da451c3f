// Product of two row-major matrices of f16: c[m, n] = Σ a[m, k] · b[k, n], summed in f32, by matrices of 16 × 16 that a
// subgroup multiplies at once, as tensor cores do.
// Each workgroup computes a tile of c. It walks along k in steps: a tile of a and one of b go through workgroup memory, and
// every subgroup multiplies its part of them into sums that stay in registers. Loads for the next step are in flight
// meanwhile. The sums go through workgroup memory, too, as the matrices cannot be converted to f16.
// Source: NVIDIA's CUTLASS, for the tiles of a workgroup and of a subgroup.
// Matrices are loaded from arrays of f16 alone, so the tiles are written item by item. The view of a buffer would not help:
// Tint turns its stores of words into the same stores of items.
// Assumptions: subgroups of 32. WGSL of Dawn: chromium_experimental_subgroup_matrix.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

//$ include "lib/matmul_tiles.wgsl"

//$ set subgroups_n = tile_n // part_n
//$ set invocations = 32 * (tile_m // part_m) * subgroups_n
//$ set rows_m = part_m // 16
//$ set rows_n = part_n // items_n
// With a gap behind each row, so that rows begin in different banks.
//$ set a_row = tile_k + 8
//$ set b_row = tile_n + 8
//$ set a_quads = tile_k // 4
//$ set b_quads = tile_n // 4
//$ set a_jobs = tile_m * a_quads // invocations
//$ set b_jobs = tile_k * b_quads // invocations
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, {{ items_n }}, 16>;
alias Sums = subgroup_matrix_result<f32, {{ items_n }}, 16>;

// One step.
var<workgroup> a_tile: array<f16, {{ tile_m * a_row }}>;
var<workgroup> b_tile: array<f16, {{ tile_k * b_row }}>;
// 16 × 16 of each subgroup's sums at a time. Few, so that large tiles fit 48 KiB, too.
//$ set sums_n = 16
//$ set sums_row = sums_n + 4
var<workgroup> sums: array<f32, {{ 16 * sums_row * (invocations // 32) }}>;

// Items i to i + 3 of a row of `length` items, as words; zeros past its end.
//$ for operand in ("a", "b")
fn words_{{ operand }}(row: u32, i: u32, length: u32) -> Quad {
  let first = row * length + i;
//$ if whole
  if (i < length) { return load4_{{ operand }}(first); }
  return Quad(0u);
//$ else
  var found = vec4<u32>(0u);
  if (i < length) { found.x = load_{{ operand }}(first); }
  if (i + 1u < length) { found.y = load_{{ operand }}(first + 1u); }
  if (i + 2u < length) { found.z = load_{{ operand }}(first + 2u); }
  if (i + 3u < length) { found.w = load_{{ operand }}(first + 3u); }
  return Quad(found.x | (found.y << 16u), found.z | (found.w << 16u));
//$ endif
}
//$ endfor

@compute @workgroup_size({{ invocations }})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) grid: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
//$ include "lib/matmul_tile.wgsl"
  // Bounded, as Tint sees: it checks no index then.
  let y = subgroup / {{ subgroups_n }}u % {{ tile_m // part_m }}u * {{ part_m }}u;
  let x = subgroup % {{ subgroups_n }}u * {{ part_n }}u;
//$ for i in range(rows_m)
//$ for j in range(rows_n)
  var sum_{{ i }}_{{ j }}: Sums;
//$ endfor
//$ endfor

  let a_at = local / {{ a_quads }}u * {{ a_row }}u + local % {{ a_quads }}u * 4u;
  let b_at = local / {{ b_quads }}u * {{ b_row }}u + local % {{ b_quads }}u * 4u;
  // In flight from memory to workgroup memory.
//$ for operand, jobs in (("a", a_jobs), ("b", b_jobs))
//$ for r in range(jobs)
  var {{ operand }}_{{ r }}: Quad;
//$ endfor
//$ endfor
//$ macro stage()
  workgroupBarrier();
//$ for operand, jobs, items in (("a", a_jobs, invocations // a_quads * a_row), ("b", b_jobs, invocations // b_quads * b_row))
//$ for r in range(jobs)
  {
    let items = bitcast<vec4<f16>>({{ operand }}_{{ r }});
//$ for j in range(4)
    {{ operand }}_tile[{{ operand }}_at + {{ r * items + j }}u] = items[{{ j }}];
//$ endfor
  }
//$ endfor
//$ endfor
  workgroupBarrier();
//$ endmacro
//$ macro multiply()
//$ for k in range(0, tile_k, 16)
  {
//$ for i in range(rows_m)
    let left_{{ i }} = subgroupMatrixLoad<Left>(&a_tile, (y + {{ 16 * i }}u) * {{ a_row }}u + {{ k }}u, false, {{ a_row }}u);
//$ endfor
//$ for j in range(rows_n)
    let right_{{ j }} = subgroupMatrixLoad<Right>(&b_tile, {{ k * b_row }}u + x + {{ items_n * j }}u, false, {{ b_row }}u);
//$ endfor
//$ for i in range(rows_m)
//$ for j in range(rows_n)
    sum_{{ i }}_{{ j }} = subgroupMatrixMultiplyAccumulate(left_{{ i }}, right_{{ j }}, sum_{{ i }}_{{ j }});
//$ endfor
//$ endfor
  }
//$ endfor
//$ endmacro
//$ macro load_checked()
  // Rows of a past its end give sums that are never stored, so any row is read for them.
//$ for r in range(a_jobs)
  a_{{ r }} = words_a(
    min(row + local / {{ a_quads }}u + {{ r * invocations // a_quads }}u, params.m - 1u), first + local % {{ a_quads }}u * 4u, params.k,
  );
//$ endfor
  // Rows of b past its end meet zeros of a, but what is read for them may be infinite: zeros here, too.
//$ for r in range(b_jobs)
  {
    let k = first + local / {{ b_quads }}u + {{ r * invocations // b_quads }}u;
    b_{{ r }} = words_b(k, select(params.n, column + local % {{ b_quads }}u * 4u, k < params.k), params.n);
  }
//$ endfor
//$ endmacro
//$ if whole
  // Whole steps: what lies past the end of a row is read, and gives sums that are never stored. No check, no branch: either
  // costs registers that the sums need.
  let a_first = (row + local / {{ a_quads }}u) * params.k + local % {{ a_quads }}u * 4u;
  let b_first = local / {{ b_quads }}u * params.n + column + local % {{ b_quads }}u * 4u;
  let a_last = params.m * params.k - 4u;
  let b_last = params.k * params.n - 4u;
//$ macro load_step()
//$ for r in range(a_jobs)
    a_{{ r }} = load4_a(min(a_first + ({{ r * invocations // a_quads }}u * params.k + first), a_last));
//$ endfor
//$ for r in range(b_jobs)
    b_{{ r }} = load4_b(min(b_first + (first + {{ r * invocations // b_quads }}u) * params.n, b_last));
//$ endfor
//$ endmacro
  let steps = params.k / TILE_K;
  if (steps > 0u) {
    {
      let first = 0u;
{{ load_step() }}
    }
    for (var step = 0u; step < steps; step++) {
{{ stage() }}
      // The next step, while this one is multiplied; behind the last one the same again.
      let first = min(step + 1u, steps - 1u) * TILE_K;
{{ load_step() }}
{{ multiply() }}
    }
  }
//$ if tail
  {
    let first = steps * TILE_K;
{{ load_checked() }}
{{ stage() }}
{{ multiply() }}
  }
//$ endif
//$ else
  for (var first = 0u; first < params.k; first += TILE_K) {
{{ load_checked() }}
{{ stage() }}
{{ multiply() }}
  }
//$ endif
  // Lanes store four items of a row at a time.
  let mine = {{ 16 * sums_row }}u * (subgroup % {{ invocations // 32 }}u);
//$ set quads = sums_n // 4
//$ for i in range(rows_m)
//$ for first in range(0, part_n, sums_n)
  workgroupBarrier();
//$ for j in range(0, sums_n, items_n)
  subgroupMatrixStore(&sums, mine + {{ j }}u, sum_{{ i }}_{{ (first + j) // items_n }}, false, {{ sums_row }}u);
//$ endfor
  workgroupBarrier();
  for (var job = lane; job < {{ 16 * quads }}u; job += 32u) {
    let at = mine + job / {{ quads }}u * {{ sums_row }}u + job % {{ quads }}u * 4u;
    put(
      row + y + {{ 16 * i }}u + job / {{ quads }}u, column + x + {{ first }}u + job % {{ quads }}u * 4u,
      vec4<f32>(sums[at], sums[at + 1u], sums[at + 2u], sums[at + 3u]),
    );
  }
//$ endfor
//$ endfor
}
