// Product of two row-major matrices: c[m, n] = Σ a[m, k] · b[k, n], summed in f32.
// Each workgroup computes a tile of c. It walks along k in steps: a tile of a and one of b go through workgroup memory,
// and every invocation multiplies a few vec4 of each into sums that stay in registers. Loads for the next step are in
// flight meanwhile.
// Source: the two-level tiling is that of Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra" (2008),
// and of NVIDIA's CUTLASS. a is transposed in workgroup memory, so that both fragments are read as vec4.
// Workgroup memory is accessed by whole vec4. Eight neighbouring invocations access neighbouring vec4 or the same one, so
// there are no bank conflicts.
// Forward progress: no workgroup waits for another. Bindings: params, a, b, output.

//$ include "lib/matmul_tiles.wgsl"

//$ set quads_m = thread_m // 4
//$ set quads_n = thread_n // 4
//$ set across_m = tile_m // thread_m
//$ set across_n = tile_n // thread_n
//$ set invocations = across_m * across_n
const WORKGROUP_SIZE: u32 = {{ invocations }}u;
//$ set a_jobs = tile_m * tile_k // 16
//$ set b_jobs = tile_n * tile_k // 16
//$ set quads_k = tile_k // 4
//$ set side = [8, tile_m // 4] | min
//$ set rounds = (a_jobs + b_jobs + invocations - 1) // invocations

// [k][m / 4] and [k][n / 4]{{ ", twice: one is read while the other is written" if stages == 2 }}.
var<workgroup> a_tile: array<vec4<f32>, {{ stages * tile_k * tile_m // 4 }}>;
var<workgroup> b_tile: array<vec4<f32>, {{ stages * tile_k * tile_n // 4 }}>;

// In flight from memory to workgroup memory: 4 × 4 items of a, or 4 vec4 of b, per invocation and round.
//$ for r in range(rounds)
var<private> next_{{ r }}_{{ j }}: vec4<f32>;  //$ for j in range(4)
//$ endfor

// Which 4 × 4 items of a: {{ side }} neighbours take different rows, so that their stores are contiguous; {{ quads_k }} such groups
// take the same rows further along, so that rows are read in pieces of {{ 16 * quads_k }} bytes.
fn a_column(job: u32) -> u32 { return job / {{ side * quads_k }}u * {{ side }}u + job % {{ side }}u; }
fn a_step(job: u32) -> u32 { return job / {{ side }}u % {{ quads_k }}u; }

// Reads the step that begins at `first`. Rows past the end of a give sums that are never stored, so any row is read for them.
fn load_step(first: u32, row: u32, column: u32, local: u32) {
  let a_whole = (params.k & 3u) == 0u;
  let b_whole = (params.n & 3u) == 0u;
//$ for r in range(rounds)
  {
    let job = local + {{ r * invocations }}u;
    if (job < {{ a_jobs }}u) {
      let i = row + 4u * a_column(job);
      let k = first + 4u * a_step(job);
      next_{{ r }}_{{ j }} = quad_a(min(i + {{ j }}u, params.m - 1u), k, params.k, a_whole);  //$ for j in range(4)
    } else if (job < {{ a_jobs + b_jobs }}u) {
      let at = job - {{ a_jobs }}u;
      let i = column + 4u * (at % {{ tile_n // 4 }}u);
      let k = first + at / {{ tile_n // 4 }}u;
//$ for j in range(4)
      next_{{ r }}_{{ j }} = vec4<f32>(0.0);
      if (k + {{ j * quads_k }}u < params.k) {
        next_{{ r }}_{{ j }} = quad_b(k + {{ j * quads_k }}u, i, params.n, b_whole);
      }
//$ endfor
    }
  }
//$ endfor
}

// Puts the loaded items into workgroup memory, those of a transposed.
fn store_step(stage: u32, local: u32) {
//$ for r in range(rounds)
  {
    let job = local + {{ r * invocations }}u;
    if (job < {{ a_jobs }}u) {
      let at = stage * {{ tile_k * tile_m // 4 }}u + {{ tile_m }}u * a_step(job) + a_column(job);
//$ for c in "xyzw"
      a_tile[at + {{ loop.index0 * (tile_m // 4) }}u] =
        vec4<f32>(next_{{ r }}_0.{{ c }}, next_{{ r }}_1.{{ c }}, next_{{ r }}_2.{{ c }}, next_{{ r }}_3.{{ c }});
//$ endfor
    } else if (job < {{ a_jobs + b_jobs }}u) {
      let at = stage * {{ tile_k * tile_n // 4 }}u + job - {{ a_jobs }}u;
//$ for j in range(4)
      b_tile[at + {{ j * quads_k * (tile_n // 4) }}u] = next_{{ r }}_{{ j }};
//$ endfor
    }
  }
//$ endfor
}

//$ for i in range(thread_m)
var<private> sum_{{ i }}_{{ p }}: vec4<f32>;  //$ for p in range(quads_n)
//$ endfor

fn multiply_step(stage: u32, y: u32, x: u32) {
  var a_at = stage * {{ tile_k * tile_m // 4 }}u + y;
  var b_at = stage * {{ tile_k * tile_n // 4 }}u + x;
  for (var k = 0u; k < TILE_K; k += {{ unroll }}u) {
//$ for u in range(unroll)
    {
//$ for q in range(quads_m)
      let a_{{ q }} = a_tile[a_at + {{ u * (tile_m // 4) + q * across_m }}u];
//$ endfor
//$ for p in range(quads_n)
      let b_{{ p }} = b_tile[b_at + {{ u * (tile_n // 4) + p * across_n }}u];
//$ endfor
//$ for i in range(thread_m)
//$ for p in range(quads_n)
      sum_{{ i }}_{{ p }} = fma(vec4<f32>(a_{{ i // 4 }}.{{ "xyzw"[i % 4] }}), b_{{ p }}, sum_{{ i }}_{{ p }});
//$ endfor
//$ endfor
    }
//$ endfor
    a_at += {{ unroll * (tile_m // 4) }}u;
    b_at += {{ unroll * (tile_n // 4) }}u;
  }
}

fn run(block: u32, local: u32) {
//$ include "lib/matmul_tile.wgsl"
  // Neighbouring invocations form blocks of {{ lanes_m }} × {{ lanes_n }}, so that they read few different vec4.
  let lane = local % {{ lanes_m * lanes_n }}u;
  let part = local / {{ lanes_m * lanes_n }}u;
  let y = part / {{ across_n // lanes_n }}u * {{ lanes_m }}u + lane / {{ lanes_n }}u;
  let x = part % {{ across_n // lanes_n }}u * {{ lanes_n }}u + lane % {{ lanes_n }}u;

  // Each iteration reads a step, multiplies the previous one, and then stages the new one for the next iteration.
//$ if stages == 2
  var stage = 0u;
//$ endif
  for (var first = 0u; first < params.k + TILE_K; first += TILE_K) {
    if (first < params.k) { load_step(first, row, column, local); }
//$ if stages == 2
    if (first > 0u) { multiply_step(stage ^ 1u, y, x); }
    if (first < params.k) { store_step(stage, local); }
    stage ^= 1u;
//$ else
    if (first > 0u) { multiply_step(0u, y, x); }
    workgroupBarrier();
    if (first < params.k) { store_step(0u, local); }
//$ endif
    workgroupBarrier();
  }
//$ for i in range(thread_m)
//$ for p in range(quads_n)
  put(row + {{ (i // 4) * 4 * across_m + i % 4 }}u + 4u * y, column + {{ p * 4 * across_n }}u + 4u * x, sum_{{ i }}_{{ p }});
//$ endfor
//$ endfor
}
