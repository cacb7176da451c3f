"""How much the times of processes differ on a device: learnt once, stored on disk, and in results files.

A file of one process cannot show it. It depends on the mode, on the clock (of the GPU, or the CPU) and on the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import wgpu

from ...internals import device_key
from ...storage import cache
from ..stats.levels import Repeatability

_KIND, _FORMAT = "repeatability", 1
# The overhead of a launch and the step of the clock matter less and less for longer times.
_CLASSES_NS = (20e3, 200e3)


@dataclass(frozen=True)
class LearntSpread:
    """How much the levels of processes differ, for one kind of time.

    Attributes
    ----------
    mode : str
    series : str
        ``"gpu_span"``, also for single kernels, or ``"cpu_wall"``.
    below_ns : float or None
        It is of times below this, and not below that of the next smaller class; None: of all longer ones.
    log_std : float
        Standard deviation of the logarithms of the levels.
    degrees : float
        Degrees of freedom of that estimate.
    """

    mode: str
    series: str
    below_ns: float | None
    log_std: float
    degrees: float


def time_class_ns(time_ns: float) -> float | None:
    """Return the upper bound of the class of a time; None for the longest."""
    return next((bound for bound in _CLASSES_NS if time_ns < bound), None)


def spread_for(spreads: Iterable[LearntSpread], mode: str, series: str, time_ns: float) -> Repeatability | None:
    """Return what was learnt for a time: of its class, else of the nearest shorter one, which differs by more."""
    of_kind = {spread.below_ns: spread for spread in spreads if (spread.mode, spread.series) == (mode, series)}
    classes = (*_CLASSES_NS, None)
    for bound in reversed(classes[: classes.index(time_class_ns(time_ns)) + 1]):
        if bound in of_kind:
            return Repeatability(of_kind[bound].log_std, of_kind[bound].degrees)
    return None


# ---- on disk


def store_spreads(device: wgpu.GPUDevice, spreads: Sequence[LearntSpread]) -> bool:
    """Store what was learnt, and return whether it was written."""
    return cache.save(_KIND, device_key(device), _FORMAT, {"spreads": [asdict(spread) for spread in spreads]})


def known_spreads(device: wgpu.GPUDevice) -> tuple[LearntSpread, ...]:
    """Return what was learnt for a device with its driver; empty if nothing was."""
    return _read(cache.load(_KIND, device_key(device), _FORMAT))


def spreads_of_adapter(adapter: str, backend: str, driver: str) -> tuple[LearntSpread, ...]:
    """Return what was learnt on this machine for an adapter of which only the names are known."""
    for _, data in cache.documents(_KIND):
        if data.get("format") == _FORMAT and isinstance(data.get("device"), dict):
            key = cast(dict[str, Any], data["device"])
            found = _read(data)
            if found and [key.get(name) for name in ("adapter", "backend", "driver")] == [adapter, backend, driver]:
                return found
    return ()


def _read(data: Mapping[str, Any] | None) -> tuple[LearntSpread, ...]:
    try:
        return tuple(_spread(one) for one in (data or {}).get("spreads", ()))
    except (ValueError, LookupError, TypeError, AttributeError):
        return ()


def _spread(data: Mapping[str, Any]) -> LearntSpread:
    below = data["below_ns"]
    return LearntSpread(
        mode=str(data["mode"]),
        series=str(data["series"]),
        below_ns=None if below is None else cache.positive(below),
        log_std=cache.positive(data["log_std"]),
        degrees=cache.positive(data["degrees"]),
    )
