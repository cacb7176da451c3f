"""A benchmark function by events, as one writes it with PyTorch; and what `gw.benchmark` and `gw.measure` add."""

import statistics

import numpy as np

import gridwise_py as gw

device = gw.request_device()


def benchmark(fn, n_warmup=5, n_iters=50):
    """Return mean and standard deviation of the GPU time of `fn`, in ms."""
    for _ in range(n_warmup):
        fn()
    gw.synchronize(device)
    start, end = gw.Event(device), gw.Event(device)
    times_ms = []
    for _ in range(n_iters):
        start.record()
        fn()
        end.record()
        end.synchronize()
        times_ms.append(start.elapsed_time(end))
    return statistics.mean(times_ms), statistics.stdev(times_ms)


x = gw.asarray(np.random.default_rng(0).random(1 << 20, dtype=np.float32), device)
scan = gw.Scan(device, "f32")
scan.execute(input=x, output=gw.empty_like(x))

mean_ms, std_ms = benchmark(scan.execute, n_iters=20)
print(f"by hand:      {mean_ms:.3f} ± {std_ms:.3f} ms")

# The same in a line; with the timestamps of the kernels themselves.
result = gw.benchmark(lambda: scan.execute(enable_gpu_timing=True), n_iters=20)
print(f"gw.benchmark: {result.mean_ns * 1e-6:.3f} ± {result.std_ns * 1e-6:.3f} ms")

# Warm until stationary, every timestamp judged, an interval, and the result checked: for a decision.
measured = gw.measure(scan, protocol=gw.SamplingProtocol(timeout_s=0.3, warmup_s=0.1))
span = measured.whole["gpu_span"].summary
print(f"gw.measure:   {span.text()}")
