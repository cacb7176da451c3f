"""Who waits for whom: the host for the queue, the host for an event, the queue for an event, a device for another."""

import time

import numpy as np

import gridwise_py as gw

device = gw.request_device()
x = gw.asarray(np.ones(1_000_000, dtype=np.uint32), device)
scan = gw.Scan(device)
scan.execute(input=x)

# A. A CPU timer and a wait: right for a caller's wait, and noisier than events.
gw.synchronize(device)
begin = time.perf_counter()
scan.execute()
gw.synchronize(device)
print(f"A: {(time.perf_counter() - begin) * 1e3:.3f} ms on the CPU")

# B. Reading too early cannot give a wrong number.
start, end = gw.Event(device), gw.Event(device)
start.record()
scan.execute()
end.record()
try:
    print(f"B: {start.elapsed_time(end):.3f} ms")
except gw.TimingNotReady as error:
    print(f"B: {error}")

# C. With a wait for the event.
end.synchronize()
print(f"C: done {end.query()}, {start.elapsed_time(end):.3f} ms on the GPU")

# The queue waits for an event by itself, since it keeps the order: nothing to do, and nobody blocks.
end.wait()
scan.execute()

# A device cannot wait for another one: the host does, and carries the data over.
other = gw.request_device()
try:
    end.wait(other.queue)
except gw.ArgumentError as error:
    print(f"refused: {error}")
result = scan.execute().output
end.record()
end.synchronize()
moved = gw.asarray(result.to_numpy(), other)
print(f"on the other device: {gw.max(moved).item()}")
