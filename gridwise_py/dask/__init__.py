"""Primitives on dask arrays, and clusters of workers with a GPU each. Needs the extra ``dask``.

::

    import dask.array as da

    import gridwise_py.dask as gwd

    with gwd.local_cluster() as cluster, gwd.connect(cluster):  # a process per GPU of this host
        x = da.from_zarr("x.zarr")
        print(gwd.sum(x).compute())

docs/howto/distributed.md says when this is worth it. Nothing of Dask is imported before a name is used.
"""

import typing as _typing

from .. import extras as _extras
from .. import namespace as _namespace

if _typing.TYPE_CHECKING:
    from .cluster import GpuClient, connect, local_cluster
    from .collections import (
        argsort,
        cumprod,
        cumsum,
        groupby,
        histogram,
        max,
        min,
        on_gpu,
        prod,
        reduce,
        scan,
        sort,
        sort_pairs,
        sum,
        to_host,
        top_k,
        unique,
    )
    from .worker import DeviceIdentity, GpuPlugin, identities

_LOADED_LATE = {
    "DeviceIdentity": "worker",
    "GpuClient": "cluster",
    "GpuPlugin": "worker",
    "connect": "cluster",
    "identities": "worker",
    "local_cluster": "cluster",
    **dict.fromkeys(
        (
            "argsort",
            "cumprod",
            "cumsum",
            "groupby",
            "histogram",
            "max",
            "min",
            "on_gpu",
            "prod",
            "reduce",
            "scan",
            "sort",
            "sort_pairs",
            "sum",
            "to_host",
            "top_k",
            "unique",
        ),
        "collections",
    ),
}

__all__ = [
    "DeviceIdentity",
    "GpuClient",
    "GpuPlugin",
    "argsort",
    "connect",
    "cumprod",
    "cumsum",
    "groupby",
    "histogram",
    "identities",
    "local_cluster",
    "max",
    "min",
    "on_gpu",
    "prod",
    "reduce",
    "scan",
    "sort",
    "sort_pairs",
    "sum",
    "to_host",
    "top_k",
    "unique",
]


def __dir__() -> list[str]:
    """Return the public names: modules of the package are found by their full path."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = _namespace.loaded_late(__name__, _LOADED_LATE, _extras.check_dask_is_installed)
