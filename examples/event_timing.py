"""CPU time against GPU time of one call, by two events: as with torch.cuda.Event, or gocudrv's NewEvent."""

import time

import numpy as np

import gridwise_py as gw

device = gw.request_device()
print(f"GPU: {gw.capabilities(device).adapter}")

n = 10_000_000
a = gw.asarray(np.random.default_rng(0).random(n, dtype=np.float32), device)
vector_add = gw.VectorAdd(device, "f32")
output = gw.empty_like(a)
vector_add.execute(a=a, b=a, output=output)  # compiles, and binds the arguments for the calls below
gw.synchronize(device)
# CPU wall-clock time, without a wait: how long it takes to hand the work over.
begin = time.perf_counter()
vector_add.execute()
handed_over_ms = (time.perf_counter() - begin) * 1e3
gw.synchronize(device)
# With a wait: the whole time that a caller waits.
begin = time.perf_counter()
vector_add.execute()
gw.synchronize(device)
waited_ms = (time.perf_counter() - begin) * 1e3

# GPU time. To read it before a wait is an error that says so.
start, end = gw.Event(device), gw.Event(device)
start.record()
vector_add.execute()
end.record()
try:
    start.elapsed_time(end)
except gw.TimingNotReady as error:
    print(f"too early: {error}")
end.synchronize()
print(f"CPU, no wait:   {handed_over_ms:.3f} ms")
print(f"CPU, with wait: {waited_ms:.3f} ms")
print(f"GPU events:     {start.elapsed_time(end):.3f} ms")

# Several iterations between two events: a mean.
iterations = 10
start.record()
for _ in range(iterations):
    vector_add.execute()
end.record()
end.synchronize()
print(f"mean of {iterations} calls: {start.elapsed_time(end) / iterations:.3f} ms")

# On one encoder nothing of the host lies between the events: for kernels of some microseconds.
encoder = device.create_command_encoder()
start.record(encoder)
vector_add.record(encoder)
end.record(encoder)
device.queue.submit([encoder.finish()])
end.synchronize()
print(f"on one encoder: {start.elapsed_time(end):.3f} ms")
