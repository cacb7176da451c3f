"""A matrix product: what the CPU's clock says, what events say, and what the rate of multiply-adds predicts."""

import time

import numpy as np

import gridwise_py as gw
from gridwise_py.bench.calibrate.probes import fma_gflops

device = gw.request_device()
n = 256 if gw.capabilities(device).is_cpu else 4096
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in "ab")
x, y = (gw.asarray(matrix.ravel(), device) for matrix in (a, b))

matmul = gw.MatMul(device, "f32", m=n, n=n, k=n)
output = matmul.execute(a=x, b=y).output  # compiles
for _ in range(5):
    matmul.execute(a=x, b=y, output=output)
gw.synchronize(device)

# The trap: the call returns as soon as the work is handed over.
begin = time.perf_counter()
matmul.execute()
print(f"CPU clock, no wait:   {(time.perf_counter() - begin) * 1e3:.3f} ms")
gw.synchronize(device)
begin = time.perf_counter()
matmul.execute()
gw.synchronize(device)
print(f"CPU clock, with wait: {(time.perf_counter() - begin) * 1e3:.3f} ms")

iterations = 10
start, end = gw.Event(device), gw.Event(device)
start.record()
for _ in range(iterations):
    matmul.execute()
end.record()
end.synchronize()
measured_ms = start.elapsed_time(end) / iterations
print(f"GPU events:           {measured_ms:.3f} ms a product")

# The bound: 2·n³ operations at this device's own rate, measured, not that of a data sheet.
gflops = fma_gflops(device)
predicted_ms = 2 * n**3 / gflops / 1e6
print(
    f"predicted:            {predicted_ms:.3f} ms at {gflops:.0f} GFLOP/s: {predicted_ms / measured_ms:.0%} of the roof"
)

some = slice(0, n, 37)
expected = a[some].astype(np.float64) @ b
got = output.to_numpy().reshape(n, n)[some]
# At most n·eps·(|a| @ |b|).
bound = n * np.finfo(np.float32).eps * (np.abs(a[some]) @ np.abs(b))
print("equals numpy:", bool(np.all(np.abs(got - expected) <= bound)))
