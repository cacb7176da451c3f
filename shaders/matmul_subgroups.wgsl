// Product of two row-major matrices of f16: c[m, n] = Σ a[m, k] · b[k, n], summed in f32, by matrices of 16 × 16 that a
// subgroup multiplies at once, as tensor cores do.
// Each workgroup computes a tile of c. It walks along k in steps: a tile of a and one of b go through workgroup memory, and
// every subgroup multiplies its part of them into sums that stay in registers. Loads for the next step are in flight
// meanwhile. The sums go through workgroup memory, too, as the matrices cannot be converted to f16.
// Source: NVIDIA's CUTLASS, for the tiles of a workgroup and of a subgroup.
// Assumptions: subgroups of 32. WGSL of Dawn: chromium_experimental_subgroup_matrix, and buffer_view, by which the same
// workgroup memory is written as words and read as f16.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

//$ include "lib/matmul_tiles.wgsl"

//$ set subgroups_n = tile_n // part_n
//$ set invocations = 32 * (tile_m // part_m) * subgroups_n
//$ set rows_m = part_m // 16
//$ set rows_n = part_n // items_n
// With a gap behind each row, so that rows begin in different banks.
//$ set a_row = tile_k + 8
//$ set b_row = tile_n + 8
//$ set a_items = tile_m * a_row
//$ set b_items = tile_k * b_row
//$ set a_jobs = tile_m * tile_k // 4 // invocations
//$ set b_jobs = tile_n * tile_k // 4 // invocations
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, {{ items_n }}, 16>;
alias Sums = subgroup_matrix_result<f32, {{ items_n }}, 16>;

// One step.
var<workgroup> a_memory: buffer<{{ 2 * a_items }}>;
var<workgroup> b_memory: buffer<{{ 2 * b_items }}>;

// Items i to i + 3 of a row of `length` items, as words; zeros past its end. `whole`: rows consist of whole vec4.
//$ for operand in ("a", "b")
fn words_{{ operand }}(row: u32, i: u32, length: u32, whole: bool) -> Quad {
  let first = row * length + i;
  if (whole) {
    if (i < length) { return load4_{{ operand }}(first); }
    return Quad(0u);
  }
  var found = vec4<u32>(0u);
  if (i < length) { found.x = load_{{ operand }}(first); }
  if (i + 1u < length) { found.y = load_{{ operand }}(first + 1u); }
  if (i + 2u < length) { found.z = load_{{ operand }}(first + 2u); }
  if (i + 3u < length) { found.w = load_{{ operand }}(first + 3u); }
  return Quad(found.x | (found.y << 16u), found.z | (found.w << 16u));
}
//$ endfor

// In flight from memory to workgroup memory.
//$ for r in range(a_jobs)
var<private> next_a_{{ r }}: Quad;
//$ endfor
//$ for r in range(b_jobs)
var<private> next_b_{{ r }}: Quad;
//$ endfor

// Reads the step that begins at `first`. Rows past the end of a give sums that are never stored, so any row is read for them.
fn load_step(first: u32, row: u32, column: u32, local: u32) {
  let a_whole = (params.k & 3u) == 0u;
  let b_whole = (params.n & 3u) == 0u;
//$ for r in range(a_jobs)
  {
    let job = local + {{ r * invocations }}u;
    let i = min(row + job / {{ tile_k // 4 }}u, params.m - 1u);
    next_a_{{ r }} = words_a(i, first + 4u * (job % {{ tile_k // 4 }}u), params.k, a_whole);
  }
//$ endfor
//$ for r in range(b_jobs)
  {
    let job = local + {{ r * invocations }}u;
    let k = first + job / {{ tile_n // 4 }}u;
    next_b_{{ r }} = Quad(0u);
    if (k < params.k) { next_b_{{ r }} = words_b(k, column + 4u * (job % {{ tile_n // 4 }}u), params.n, b_whole); }
  }
//$ endfor
}

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

  let a_words = bufferView<array<Quad, {{ a_items // 4 }}>>(&a_memory, 0);
  let b_words = bufferView<array<Quad, {{ b_items // 4 }}>>(&b_memory, 0);
  let a_halves = bufferView<array<f16, {{ a_items }}>>(&a_memory, 0);
  let b_halves = bufferView<array<f16, {{ b_items }}>>(&b_memory, 0);
//$ for i in range(rows_m)
//$ for j in range(rows_n)
  var sum_{{ i }}_{{ j }}: Sums;
//$ endfor
//$ endfor

  let steps = (params.k + TILE_K - 1u) / TILE_K;
  load_step(0u, row, column, local);
  // Each iteration stages a step, and reads the next one while it multiplies.
  for (var step = 0u; step < steps; step++) {
    workgroupBarrier();
//$ for r in range(a_jobs)
    { let job = local + {{ r * invocations }}u; (*a_words)[job / {{ tile_k // 4 }}u * {{ a_row // 4 }}u + job % {{ tile_k // 4 }}u] = next_a_{{ r }}; }
//$ endfor
//$ for r in range(b_jobs)
    { let job = local + {{ r * invocations }}u; (*b_words)[job / {{ tile_n // 4 }}u * {{ b_row // 4 }}u + job % {{ tile_n // 4 }}u] = next_b_{{ r }}; }
//$ endfor
    workgroupBarrier();
    if (step + 1u < steps) { load_step((step + 1u) * TILE_K, row, column, local); }
//$ for k in range(0, tile_k, 16)
    {
//$ for i in range(rows_m)
      let left_{{ i }} = subgroupMatrixLoad<Left>(a_halves, (y + {{ 16 * i }}u) * {{ a_row }}u + {{ k }}u, false, {{ a_row }}u);
//$ endfor
//$ for j in range(rows_n)
      let right_{{ j }} = subgroupMatrixLoad<Right>(b_halves, {{ k * b_row }}u + x + {{ items_n * j }}u, false, {{ b_row }}u);
//$ endfor
//$ for i in range(rows_m)
//$ for j in range(rows_n)
      sum_{{ i }}_{{ j }} = subgroupMatrixMultiplyAccumulate(left_{{ i }}, right_{{ j }}, sum_{{ i }}_{{ j }});
//$ endfor
//$ endfor
    }
//$ endfor
  }
  // Through the memory of a, {{ 16 * items_n }} sums of each subgroup at a time: a lane stores {{ items_n // 2 }} of a row.
  let sums = bufferView<array<f32, {{ a_items // 2 }}>>(&a_memory, 0);
  let mine = {{ 16 * items_n }}u * (subgroup % {{ invocations // 32 }}u);
  let at = mine + {{ items_n // 2 }}u * lane;
//$ for i in range(rows_m)
//$ for j in range(rows_n)
  workgroupBarrier();
  subgroupMatrixStore(sums, mine, sum_{{ i }}_{{ j }}, false, {{ items_n }}u);
  workgroupBarrier();
//$ for q in range(items_n // 8)
  put(
    row + y + {{ 16 * i }}u + lane / 2u, column + x + {{ items_n * j + 4 * q }}u + {{ items_n // 2 }}u * (lane & 1u),
    vec4<f32>((*sums)[at + {{ 4 * q }}u], (*sums)[at + {{ 4 * q + 1 }}u], (*sums)[at + {{ 4 * q + 2 }}u], (*sums)[at + {{ 4 * q + 3 }}u]),
  );
//$ endfor
//$ endfor
//$ endfor
}
