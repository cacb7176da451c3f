"""Several primitives prepared once and submitted at once: what stands for a CUDA graph here.

`bind` checks the arguments and makes everything that is needed; `record` records it. A command buffer of WebGPU can be
submitted only once, so the sequence is recorded for each submission, which is little work.
"""

import time

import numpy as np

import gridwise_py as gw

device = gw.request_device()
x = gw.asarray(np.arange(4096, dtype=np.uint32), device)
a, b, total = gw.empty_like(x), gw.empty_like(x), gw.empty(1, "u32", device)

vector_add, scan, reduce = gw.VectorAdd(device), gw.Scan(device), gw.Reduce(device)
sequence = [
    vector_add.bind(a=x, b=x, output=a),
    scan.bind(input=a, output=b),
    reduce.bind(input=b, output=total),
]


def run():
    """Submit all of it at once; nothing is made or looked up."""
    encoder = device.create_command_encoder()
    for call in sequence:
        call.record(encoder)
    device.queue.submit([encoder.finish()])


def separate():
    """Do the same by three calls."""
    for call in sequence:
        call.execute()


for name, call in (("three calls", separate), ("one submission", run)):
    call()
    gw.synchronize(device)
    begin = time.perf_counter()
    for _ in range(50):
        call()
    gw.synchronize(device)
    print(f"{name}: {(time.perf_counter() - begin) / 50 * 1e6:.0f} µs each")
print(f"right: {total.to_numpy()[0] == np.cumsum(2 * x.to_numpy(), dtype=np.uint32).sum(dtype=np.uint32)}")
