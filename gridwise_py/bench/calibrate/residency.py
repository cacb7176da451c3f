"""What the shapes of kernels depend on, measured: multiprocessors, and what workgroups share on one."""

from __future__ import annotations

from collections.abc import Callable

import wgpu

from ...internals import OwnKernel
from . import probes

_STATE_BYTES = 1 << 20
_ROUNDS = 256
_MOST_WORKGROUPS = 1 << 15
# So few bytes of workgroup memory that other limits count.
_LITTLE_BYTES = 256
_REPEATS = 5
# A workgroup that had to wait for another one doubles the time.
_WAITED = 1.5


def measure_facts(device: wgpu.GPUDevice) -> dict[str, int]:
    """Return facts of a device with timestamps, by the names of `tuning.facts.DeviceFacts`; what could be measured."""
    limits = device.limits
    most_bytes = limits["max-compute-workgroup-storage-size"]
    size = min(256, limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
    found: dict[str, int] = {}
    places = _at_once(device, 64, most_bytes)
    if places is not None:
        found["multiprocessors"] = places
        # Each workgroup may take some memory beside what it asks for, so that a little is left over; what a
        # multiprocessor has is a power of two.
        taken = [
            (_at_once(device, 64, room) or 0) / places * room
            for room in (most_bytes, 1 << 14, 1 << 13)
            if room <= most_bytes
        ]
        found["storage_bytes"] = 1 << (max(1, round(max(taken))) - 1).bit_length()
        at_once = _at_once(device, size, _LITTLE_BYTES)
        if at_once is not None:
            found["invocations"] = max(size, round(at_once / places) * size)
    return found


def _at_once(device: wgpu.GPUDevice, size: int, room_bytes: int) -> int | None:
    return most_at_once(lambda workgroups: _time_ns(device, workgroups, size, room_bytes))


def most_at_once(time_ns: Callable[[int], float | None], most: int = _MOST_WORKGROUPS) -> int | None:
    """Return the largest number of workgroups that take about as long as one; None where that was not found.

    Parameters
    ----------
    time_ns : callable
        Returns the time of so many workgroups; None where it is not known.
    most : int
        More are not tried.
    """
    alone = time_ns(1)
    if alone is None:
        return None

    def waits(workgroups: int) -> bool | None:
        ns = time_ns(workgroups)
        return None if ns is None else ns > _WAITED * alone

    low, high = 1, 2
    while not (late := waits(high)):
        if late is None or high >= most:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if waits(middle):
            high = middle
        else:
            low = middle
    return low


def _time_ns(device: wgpu.GPUDevice, workgroups: int, size: int, room_bytes: int) -> float | None:
    """Return the shortest of some times, or None: what else the GPU does only adds to one."""
    constants = ("WORKGROUP_SIZE", size), ("ROOM_WORDS", room_bytes // 4), ("ROUNDS", _ROUNDS)
    bound = OwnKernel("resident", _STATE_BYTES, workgroups, constants).bind(device)
    if not bound.ran:
        probes.timed_passes(device, bound, passes=1)
    lengths = probes.timed_passes(device, bound, passes=_REPEATS).lengths_ns
    return float(lengths.min()) if lengths.size else None
