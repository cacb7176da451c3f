"""More data than fits: chunks through two staging buffers; the host copies while the GPU works.

With CUDA this takes pinned memory, two streams, and waits in the right places. Here a device has one queue, and
`gw.stream` does it.
"""

import numpy as np

import gridwise_py as gw

device = gw.request_device()


def batches():
    """Make one chunk after another, as a file reader would; none of them stays in memory."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        yield rng.integers(0, 1000, 500_000, dtype=np.uint32)


with gw.profile(device) as prof:
    total = gw.stream(gw.Reduce(device, "u32", gw.Add), batches())
    last = 0
    for prefix_sums in gw.stream(gw.Scan(device, "u32", gw.Add), batches()):
        last = prefix_sums[-1]
print(f"total {total}, last prefix sum {last}")

by_name = {row.name: row for row in prof.key_averages()}
for name in ("copy to staging", "copy to GPU", "reduce", "wait"):
    row = by_name[name]
    on_gpu = row.cpu_time_total_ns is None
    ns = row.gpu_time_total_ns if on_gpu else row.cpu_time_total_ns
    print(f"{name}: {row.calls} times, {ns * 1e-6:.2f} ms on the {'GPU' if on_gpu else 'CPU'}")
