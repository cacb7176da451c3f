"""Primitives on dask arrays, and clusters of workers with a GPU each. Needs the extra ``dask``.

::

    import dask.array as da

    import gridwise_py.dask as gwd

    with gwd.local_cluster() as cluster, gwd.connect(cluster):  # a process per GPU of this host
        x = da.from_zarr("x.zarr")
        print(gwd.sum(x).compute())

docs/howto/distributed.md says when this is worth it. Nothing of Dask is imported before a name is used.
"""

from .. import extras as _extras
from .. import namespace as _namespace

_PLACES = _namespace.places_of(
    {
        "cluster": "GpuClient connect local_cluster",
        "collections": (
            "argsort cumprod cumsum groupby histogram max min on_gpu prod reduce scan sort sort_pairs sum to_host "
            "top_k unique"
        ),
        "worker": "DeviceIdentity GpuPlugin identities",
    }
)
__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    """Return the public names: modules of the package are found by their full path."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


__getattr__ = _namespace.loaded_late(__name__, _PLACES, _extras.check_dask_is_installed)
