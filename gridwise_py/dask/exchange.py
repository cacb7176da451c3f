"""How the pieces of sorted chunks come to the parts of a sort: a task per piece, or Dask's P2P shuffle.

With p parts, tasks are p² pieces, which the scheduler handles one by one. P2P has O(p) tasks and goes through the
workers' disks. It moves rows of tables, so it needs pandas and pyarrow, and restarts as a whole when a worker dies.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial

import numpy as np

from .. import settings
from ..errors import ArgumentError
from ..settings import Exchange
from . import chunks, splitters
from .graph import Graph, Key

__all__ = ["MOST_PIECES", "check_room", "chosen", "exchanged"]

#: With more pieces the scheduler's time for tasks is longer than P2P's for its barrier and its disks.
MOST_PIECES = 4096


def chosen(exchange: str, parts: int) -> Exchange:
    """Return the exchange for so many parts.

    Raises
    ------
    ArgumentError
        If it is none that is known, or P2P without the packages that it needs.
    """
    known = settings.EXCHANGES
    if exchange not in known:
        raise ArgumentError(f"exchange={exchange!r} is unknown; known are {', '.join(known)}")
    wanted = settings.dask_exchange() if exchange == "auto" else exchange
    missing = [name for name in ("pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if wanted == "auto":
        return "p2p" if parts * parts > MOST_PIECES and not missing else "tasks"
    if wanted == "p2p" and missing:
        raise ArgumentError(f"exchange='p2p' needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    return "p2p" if wanted == "p2p" else "tasks"


def check_room(exchange: Exchange, sizes: Sequence[int] | None, dtypes: Sequence[np.dtype]) -> None:
    """Raise ClusterError where P2P would fill the disks of the workers, as far as the lengths of chunks are known."""
    if exchange == "p2p" and sizes is not None:
        from .p2p import ROW_BYTES, check_disks

        check_disks(sum(sizes) * (ROW_BYTES + sum(dtype.itemsize for dtype in dtypes)))


def exchanged(
    graph: Graph,
    exchange: Exchange,
    runs: Sequence[Key],
    table: Key,
    *,
    dtypes: Sequence[np.dtype],
    descending: bool,
) -> list[Key]:
    """Add the exchange and the merge of each part to a graph; return the keys of the parts.

    Parameters
    ----------
    graph : Graph
    exchange : {"tasks", "p2p"}
    runs : sequence of keys
        Sorted chunks.
    table : key
        Where these are cut.
    dtypes : sequence of dtype
        Of the columns of a chunk.
    descending : bool
    """
    parts = range(len(runs))
    merged = partial(chunks.merged, descending=descending)
    if exchange == "tasks":
        pieces = [
            [graph.add("piece", splitters.piece, run, table, i, j, index=(i, j)) for j in parts]
            for i, run in enumerate(runs)
        ]
        return graph.each("merge", merged, [[row[j] for row in pieces] for j in parts], on_gpu=True)
    from .p2p import shuffled  # pandas and pyarrow are needed here only

    return graph.each("merge", merged, shuffled(graph, runs, table, dtypes), on_gpu=True)
