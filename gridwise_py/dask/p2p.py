"""An exchange by Dask's P2P shuffle, by public API only: a column says where each row goes, `set_index` does it.

Rows of a part arrive in any order, so each carries where it comes from. Columns travel as the bits of their items:
tables would turn every NaN into the same one.
"""

# Dask's annotations leave many types open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.config
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from distributed import Worker, default_client

from ..errors import ClusterError
from .graph import Graph, Key

__all__ = ["ROW_BYTES", "check_disks", "shuffled"]

#: What a row has beside its columns: its part and its origin.
ROW_BYTES = 16

#: Of an item's origin these bits are its position in the chunk. Sorts take chunks of fewer than 2^30 items.
_POSITION_BITS = 32


def shuffled(graph: Graph, runs: Sequence[Key], table: Key, dtypes: Sequence[np.dtype]) -> list[Key]:
    """Add a P2P shuffle of sorted chunks; return the keys of the parts: lists of pieces in the order of the chunks.

    Parameters
    ----------
    graph : Graph
    runs : sequence of keys
        Sorted chunks.
    table : key
        Where these are cut.
    dtypes : sequence of dtype
        Of the columns of a chunk.
    """
    parts = len(runs)
    rows = graph.each("rows", _rows, runs, [table] * parts, range(parts))
    columns: dict[str, Any] = {"part": np.empty(0, np.int64), "origin": np.empty(0, np.uint64)}
    columns |= {f"column{i}": np.empty(0, _bits_of(dtype)) for i, dtype in enumerate(dtypes)}
    # Dask's table is built on keys alone: the annotations of this graph's layers would be lost in it.
    frame: Any = dd.from_delayed([Delayed(key, {}) for key in rows], meta=pd.DataFrame(columns), verify_meta=False)
    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        moved = frame.set_index("part", divisions=list(range(parts + 1)), shuffle_method="p2p").optimize()
        tasks = dict(moved.__dask_graph__())
    graph.foreign("p2p", tasks, rows)
    return graph.each("pieces", partial(_pieces, tuple(dtypes)), moved.__dask_keys__())


def _bits_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")


def _rows(run: tuple[np.ndarray, ...], table: np.ndarray, index: int) -> pd.DataFrame:
    """Return a sorted chunk as a table, with the part and the origin of each item."""
    size = run[0].size
    lengths = np.diff([0, *table[index].tolist(), size])
    columns: dict[str, Any] = {
        "part": np.repeat(np.arange(lengths.size, dtype=np.int64), lengths),
        "origin": np.arange(size, dtype=np.uint64) | np.uint64(index << _POSITION_BITS),
    }
    columns |= {f"column{i}": column.view(_bits_of(column.dtype)) for i, column in enumerate(run)}
    return pd.DataFrame(columns, copy=False)


def _pieces(dtypes: tuple[np.dtype, ...], part: pd.DataFrame) -> list[tuple[np.ndarray, ...]]:
    """Return the items of a part by the chunks that they come from."""
    origin = part["origin"].to_numpy()
    order = np.argsort(origin, kind="stable")
    chunks = (origin >> np.uint64(_POSITION_BITS))[order]
    ends = np.flatnonzero(chunks[1:] != chunks[:-1]) + 1
    columns = [np.split(part[f"column{i}"].to_numpy()[order].view(dtype), ends) for i, dtype in enumerate(dtypes)]
    return list(zip(*columns, strict=True))


def check_disks(data_bytes: int) -> None:
    """Raise ClusterError unless the disks of the current client's workers have room for the data of a shuffle.

    Parameters
    ----------
    data_bytes : int
        Of all rows.
    """
    try:
        client = default_client()
    except ValueError:
        return
    if client.asynchronous:  # its answers have to be awaited
        return
    run: Any = client.run
    free_bytes: dict[str, int] = run(_free_bytes)
    if free_bytes and min(free_bytes.values()) * len(free_bytes) < data_bytes:
        least = min(free_bytes, key=free_bytes.__getitem__)
        raise ClusterError(
            f"a P2P exchange of {data_bytes:,} bytes goes through the disks of {len(free_bytes)} workers, but worker "
            f"{least} has {free_bytes[least]:,} bytes free; give exchange='tasks', or start workers with "
            f"--local-directory on a larger disk"
        )


def _free_bytes(dask_worker: Worker) -> int:
    return shutil.disk_usage(dask_worker.local_directory).free
