"""Three kernels of one's own as benchmarks: ``gridwise bench my_kernels.py``."""

import numpy as np

import gridwise_py as gw

SUM = """
@group(0) @binding(0) var<storage, read> INPUT: array<f32>;
@group(0) @binding(1) var<storage, read_write> OUTPUT: array<f32>;
override SIZE: u32 = 256;
var<workgroup> sums: array<f32, SIZE>;

@compute @workgroup_size(SIZE) fn main(
  @builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>
) {
  var sum = 0.0;
  for (var i = group.x * SIZE + lane; i < arrayLength(&INPUT); i += groups.x * SIZE) { sum += INPUT[i]; }
  sums[lane] = sum;
  for (var half = SIZE / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (lane < half) { sums[lane] += sums[lane + half]; }
  }
  if (lane == 0) { OUTPUT[group.x] = sums[0]; }
}"""

MATMUL = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@group(0) @binding(3) var<uniform> size: u32;
override TILE: u32 = 8;
var<workgroup> tile_a: array<f32, TILE * TILE>;
var<workgroup> tile_b: array<f32, TILE * TILE>;

@compute @workgroup_size(TILE, TILE) fn main(
  @builtin(local_invocation_id) local: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>
) {
  var sum = 0.0;
  for (var k = 0u; k < size; k += TILE) {
    tile_a[local.y * TILE + local.x] = a[id.y * size + k + local.x];
    tile_b[local.y * TILE + local.x] = b[(k + local.y) * size + id.x];
    workgroupBarrier();
    for (var i = 0u; i < TILE; i++) { sum += tile_a[local.y * TILE + i] * tile_b[i * TILE + local.x]; }
    workgroupBarrier();
  }
  c[id.y * size + id.x] = sum;
}"""

HISTOGRAM = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { atomicAdd(&counts[x[id.x]], 1u); }
}"""


@gw.benchmarked(n=[2**12, 2**16], groups=[16, 64])
def total(device, n, groups, rng):
    """A sum in two passes of one kernel."""
    x = rng.random(n, dtype=np.float32)

    def kernel(source, target, workgroups):
        text = SUM.replace("INPUT", source).replace("OUTPUT", target)
        return gw.Kernel(device, text, {source: "read", target: "write"}, workgroups)

    return gw.Benchmark(
        run={"partial sums": kernel("x", "partial", groups), "total": kernel("partial", "result", 1)},
        inputs={"x": x, "partial": np.zeros(groups, np.float32), "result": np.zeros(1, np.float32)},
        outputs=["result"],
        reference=lambda x: x.sum(dtype=np.float64),
        work=gw.Work(items=n, read_bytes=4 * n, write_bytes=4, flops=n - 1),
    )


@gw.benchmarked(n=[64, 128], tile=[4, 8], baseline="tile=4", tune=["tile"])
class matmul:  # the name of the benchmark
    """A product of matrices, in tiles of two sizes."""

    rtol, atol = 1e-4, 1e-4

    def __init__(self, device, n, tile, rng):
        groups = (n // tile, n // tile)
        bindings = {"a": "read", "b": "read", "c": "write", "size": "uniform"}
        self.run = gw.Kernel(device, MATMUL, bindings, groups, label="matmul", constants={"TILE": tile})
        a, b = (rng.random((n, n), dtype=np.float32) for _ in range(2))
        self.inputs = {"a": a, "b": b, "c": np.zeros((n, n), np.float32), "size": n}
        self.work = gw.Work(items=n * n, read_bytes=8 * n * n, write_bytes=4 * n * n, flops=2 * n**3)

    def reference(self, a, b):
        return a @ b


@gw.benchmarked(n=[2**12, 2**16], values=["uniform", "equal"])
def histogram(device, n, values, rng):
    """Counts by atomics, cleared before each run by commands of its own."""
    x = rng.integers(0, 256, n, dtype=np.uint32) if values == "uniform" else np.full(n, 7, np.uint32)
    kernel = gw.Kernel(device, HISTOGRAM, {"x": "read", "counts": "read_write"}, -(-n // 256), label="histogram")

    def record(encoder, x, counts):
        encoder.clear_buffer(counts.buffer, counts.offset_bytes, counts.nbytes)
        kernel.record(encoder, x=x, counts=counts)

    return gw.Benchmark(
        run=record,
        inputs={"x": x, "counts": np.zeros(256, np.uint32)},
        reference=lambda x: {"counts": np.bincount(x, minlength=256)},
        outputs=["counts"],
        work=gw.Work(items=n, read_bytes=4 * n, write_bytes=4 * 256),
    )
