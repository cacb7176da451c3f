"""Run and time a WGSL kernel of one's own."""

import numpy as np

import gridwise_py as gw

SQUARE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
}"""

device = gw.request_device()
bindings = {"x": "read", "y": "write"}
square = gw.Kernel(device, SQUARE, bindings, lambda n: -(-n["x"] // 64), label="square")

x = gw.asarray(np.arange(1_000_000, dtype=np.float32), device)
y = gw.empty_like(x)
square.execute(x=x, y=y)  # once before it is timed: drivers may still compile in the first dispatch
run = square.execute(x=x, y=y, enable_gpu_timing=True, enable_cpu_timing=True, trials=10)
print(run.get_timing_result())
print(run.output.to_numpy()[:5])
