"""Time a scan: the example of README.md."""

import numpy as np

import gridwise_py as gw

device = gw.request_device()
x = gw.asarray(np.ones(1_000_000, dtype=np.uint32), device)

scan = gw.Scan(device, "u32", gw.Add, kind="inclusive")
scan.execute(input=x)  # once before it is timed: drivers may still compile in the first dispatch
run = scan.execute(input=x, enable_gpu_timing=True, enable_cpu_timing=True, trials=10)
result = scan.get_timing_result()
print(result)
print(result.per_trial)
print(run.output.to_numpy())
