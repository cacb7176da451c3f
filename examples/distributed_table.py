"""Small results of a large table: group-by, histogram, sums, on the GPUs of this host.

    python examples/distributed_table.py [ADAPTER …]

The table comes from chunks that workers make themselves; dask.dataframe.read_parquet and dask.array.from_zarr give the
same kind of columns. Needs the extra `dask`.
"""

import sys

import dask
import dask.array as da
import numpy as np

import gridwise_py.dask as gwd

ROWS, CHUNKS = 200_000, 4


def column(seed: int, index: int, high: int) -> np.ndarray:
    """Return a chunk of a column."""
    return np.random.default_rng([seed, index]).integers(0, high, ROWS // CHUNKS, dtype=np.int32)


def chunked(seed: int, high: int) -> da.Array:
    """Return a column."""
    make = dask.delayed(column, pure=True)
    parts = [da.from_delayed(make(seed, i, high), (ROWS // CHUNKS,), dtype=np.int32) for i in range(CHUNKS)]
    return da.concatenate(parts)


def main() -> None:
    """Compute, and compare with numpy on the whole columns, which fit here."""
    adapters = [int(index) for index in sys.argv[1:]] or "all"
    with gwd.local_cluster(adapters) as cluster, gwd.connect(cluster):
        station, rain = chunked(1, 6), chunked(2, 500)
        stations, totals = gwd.groupby(station, rain, "sum").compute()
        print("rain per station:", dict(zip(stations.tolist(), totals.tolist(), strict=True)))
        print("histogram:", gwd.histogram(rain, 5, range=(0, 500)).compute().tolist())
        # Held on the GPUs: uploaded once, used by several calls.
        held = gwd.on_gpu(rain).persist()
        low, high, total = (f(held).compute() for f in (gwd.min, gwd.max, gwd.sum))
        whole = np.concatenate([column(2, i, 500) for i in range(CHUNKS)])
        print(f"from {low} to {high}, total {total}, equal to numpy: {total == whole.sum()}")


if __name__ == "__main__":  # workers import this file
    main()
