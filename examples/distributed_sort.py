"""Sorts an array that is in many chunks, on several GPUs of this host, each with a process of its own.

    python examples/distributed_sort.py [ADAPTER …]

Without adapters it takes all GPUs; `gridwise info` lists the adapters. An adapter may be named twice. Needs the extra
`dask`. docs/howto/distributed.md says when this is worth it: for data that fits one GPU, gw.sort is faster.
"""

import itertools
import os
import sys

import dask
import dask.array as da
import numpy as np

import gridwise_py.dask as gwd

ITEMS, CHUNKS = 400_000, 8


def chunk(index: int) -> np.ndarray:
    """Return the items of a chunk. Workers call this: no data passes through this process."""
    return np.random.default_rng(index).standard_normal(ITEMS // CHUNKS).astype(np.float32)


def main() -> None:
    """Sort, and look at the ends and at the lengths of the parts."""
    adapters = [int(index) for index in sys.argv[1:]] or "all"
    make = dask.delayed(chunk, pure=True)
    parts = [da.from_delayed(make(i), (ITEMS // CHUNKS,), dtype=np.float32) for i in range(CHUNKS)]
    x = da.concatenate(parts)
    with gwd.local_cluster(adapters) as cluster, gwd.connect(cluster) as client:
        for device in gwd.identities(client):
            print(f"{device.id}: {device.adapter}, process {device.pid}")
        ordered = gwd.sort(x).persist()
        least, greatest = ordered[0].compute(), ordered[-1].compute()
        # The greatest item of each part is not above the least one of the next.
        ends = [(part[0].compute(), part[-1].compute()) for part in ordered.blocks]
        steps = all(before[1] <= after[0] for before, after in itertools.pairwise(ends))
        print(f"from {least:.3f} to {greatest:.3f}, parts in order: {steps}, chunks {set(ordered.chunks[0])}")
        print(f"distinct processes besides this one: {len({d.pid for d in gwd.identities(client)} - {os.getpid()})}")


if __name__ == "__main__":  # workers import this file
    main()
