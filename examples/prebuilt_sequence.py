"""Several primitives in one submission: a batch, and a sequence, which stands for a CUDA graph here.

A batch holds its calls back and submits them together. A sequence is captured once, and replayed: nothing is checked or
looked up again. See docs/howto/batches.md.
"""

import time

import numpy as np

import gridwise_py as gw

device = gw.request_device()
x = gw.asarray(np.arange(4096, dtype=np.uint32), device)
a, b, total = gw.empty_like(x), gw.empty_like(x), gw.empty(1, "u32", device)
vector_add, scan, reduce = gw.VectorAdd(device), gw.Scan(device), gw.Reduce(device)


def separate():
    """Call one primitive after another."""
    vector_add.execute(a=x, b=x, output=a)
    scan.execute(input=a, output=b)
    reduce.execute(input=b, output=total)


def batch():
    """Do the same in one submission."""
    with gw.batch(device):
        separate()


with gw.capture(device) as sequence:
    separate()

for name, call in (("three calls", separate), ("a batch", batch), ("a sequence", sequence.execute)):
    call()
    gw.synchronize(device)
    begin = time.perf_counter()
    for _ in range(50):
        call()
    gw.synchronize(device)
    print(f"{name}: {(time.perf_counter() - begin) / 50 * 1e6:.0f} µs each")
print(f"right: {total.item() == np.cumsum(2 * x.to_numpy(), dtype=np.uint32).sum(dtype=np.uint32)}")
