"""Fleets: one suite on many devices, put together from their files, or measured on a cluster, and judged.

::

    import gridwise_py.dask as gwd
    from gridwise_py.fleet import run_fleet

    with gwd.connect("tls://head:8786") as client:
        fleet = run_fleet(client, "quick", path="today.fleet.json")

These names need the extras ``bench`` and ``dask``, and are loaded when they are first used. To read and judge files
needs no Dask: ``gridwise_py.fleet.files.read_fleet`` and ``gridwise_py.fleet.judge.judge``.
"""

from .. import extras as _extras
from .. import namespace as _namespace

_PLACES = _namespace.places_of({"run": "DeviceState request_of run_fleet"})
__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = _namespace.loaded_late(__name__, _PLACES, _extras.check_dask_is_installed)
