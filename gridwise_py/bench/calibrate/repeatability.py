"""How much the times of processes differ on a device: learnt once, stored on disk, and in results files.

A file of one process cannot show it. It depends on the mode, on the clock (of the GPU, or the CPU) and on the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import wgpu

from ...internals import context_of
from ...storage import cache
from ...storage.checks import find_problem
from ...storage.records import Record
from ...storage.schemas import Limits
from ..stats.levels import Repeatability
from ..stats.series import Timed

_KIND, _FORMAT = "repeatability", 1
# The overhead of a launch and the step of the clock matter less and less for longer times.
_CLASSES_NS = (20e3, 200e3)


@dataclass(frozen=True, kw_only=True)
class Spread(Record):
    """How much the levels of processes differ, as `gridwise calibrate --repeatability` learnt it before the run.

    Attributes
    ----------
    mode : str
    series : str
        ``"gpu_span"``, also for kernels, or ``"cpu_wall"``.
    below_ns : float or None
        Of times below this, and not below that of the next smaller class; None: of all longer ones.
    log_std, degrees : float
        Standard deviation of the logarithms of the levels, and its degrees of freedom.
    """

    mode: str
    series: Timed
    below_ns: Annotated[float, Limits(above=0)] | None
    log_std: Annotated[float, Limits(above=0, at_most=100)]
    degrees: Annotated[float, Limits(at_least=1, at_most=1_000_000)]


@dataclass(frozen=True, kw_only=True)
class _Kept(Record):
    """What is kept of a device on disk."""

    spreads: tuple[Spread, ...]


def time_class_ns(time_ns: float) -> float | None:
    """Return the upper bound of the class of a time; None for the longest."""
    return next((bound for bound in _CLASSES_NS if time_ns < bound), None)


def spread_for(spreads: Iterable[Spread], mode: str, series: str, time_ns: float) -> Repeatability | None:
    """Return what was learnt for a time: of its class, else of the nearest shorter one, which differs by more."""
    of_kind = {spread.below_ns: spread for spread in spreads if (spread.mode, spread.series) == (mode, series)}
    classes = (*_CLASSES_NS, None)
    for bound in reversed(classes[: classes.index(time_class_ns(time_ns)) + 1]):
        if bound in of_kind:
            return Repeatability(of_kind[bound].log_std, of_kind[bound].degrees)
    return None


# ---- on disk


def store_spreads(device: wgpu.GPUDevice, spreads: Sequence[Spread]) -> bool:
    """Store what was learnt, and return whether it was written."""
    return cache.save(_KIND, context_of(device).key, _FORMAT, {"spreads": [spread.to_json() for spread in spreads]})


def known_spreads(device: wgpu.GPUDevice) -> tuple[Spread, ...]:
    """Return what was learnt for a device with its driver; empty if nothing was."""
    return _read(cache.load(_KIND, context_of(device).key, _FORMAT))


def spreads_of_adapter(adapter: str, backend: str, driver: str) -> tuple[Spread, ...]:
    """Return what was learnt on this machine for an adapter of which only the names are known."""
    for _, data in cache.documents(_KIND):
        if data.get("format") == _FORMAT and isinstance(data.get("device"), dict):
            key = cast(dict[str, Any], data["device"])
            found = _read(data)
            if found and [key.get(name) for name in ("adapter", "backend", "driver")] == [adapter, backend, driver]:
                return found
    return ()


def _read(data: Mapping[str, Any] | None) -> tuple[Spread, ...]:
    return () if data is None or find_problem(data, _Kept) else _Kept.from_json(data).spreads
