"""Chain two primitives on one command encoder, submit once, and read the times of each.

The mean of the items of ``a + b`` needs their sum: the reduction reads what the addition has written. The GPU runs
the two in the order in which they were recorded, and nothing comes back to the host between them.
"""

import numpy as np

import gridwise_py as gw

device = gw.request_device()
rng = np.random.default_rng(0)
a = gw.asarray(rng.integers(0, 1000, 1_000_000, dtype=np.uint32), device)
b = gw.asarray(rng.integers(0, 1000, 1_000_000, dtype=np.uint32), device)

vector_add = gw.VectorAdd(device, "u32")
reduce = gw.Reduce(device, "u32", gw.Add)

# Once before they are timed: drivers may still compile in the first dispatch.
reduce.execute(input=vector_add.execute(a=a, b=b).output)

encoder = device.create_command_encoder()
first = vector_add.execute(a=a, b=b, encoder=encoder, enable_gpu_timing=True)
second = reduce.execute(input=first.output, encoder=encoder, enable_gpu_timing=True)

try:
    first.get_timing_result()
except gw.TimingNotReady:
    print("no times yet: the encoder is not submitted")

device.queue.submit([encoder.finish()])

# In any order, each as often as you like, or never.
for run in (second, first):
    result = run.get_timing_result()
    print(result)
    for label, nanoseconds in zip(result.labels, result.gpu_total_time_ns, strict=True):
        print(f"  {label}: {nanoseconds / 1e3:.1f} µs on the GPU")

print(f"mean of a + b: {second.output.to_numpy()[0] / a.size:.3f}")
