"""What this library keeps per device: capabilities, caches, the timing helper, a staging buffer.

It belongs to the device's record (`backend.device_state`), so that two devices never share anything, a user's own
device works like ours, and all of it goes when the device goes.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import wgpu

from ..backend.device_errors import device_errors, watch_errors
from ..backend.device_state import state_of
from ..backend.fork_guard import check_process, note_gpu_use
from ..backend.wgpu_native import look_types_up, map_buffer, submit
from ..errors import ArgumentError, GridwiseWarning
from ..timing.queries import TimingHelper
from ..tuning.store import Findings
from ..types.capabilities import Capabilities, LookbackVerdict
from ..types.operator_base import Operator
from .device import measure_capabilities
from .executor import Executor
from .observer import Observer, step

__all__ = ["DeviceContext", "capabilities", "context_of", "timing_helper"]

# Large enough that the copy, not the calls, is what takes time; larger ones gain nothing.
_STAGING_BYTES = 32 << 20


_Made = TypeVar("_Made")


class DeviceContext:
    """Everything that belongs to one device; get it with `context_of`."""

    def __init__(self, device: wgpu.GPUDevice):
        self._device_reference = weakref.ref(device)
        self.lock: threading.RLock = threading.RLock()
        self.has_timestamps: bool = "timestamp-query" in device.features
        self._warned_no_timestamps = False
        #: What `lookback.lookback_verdict` found out, by the form of the state words.
        self.lookback_verdicts: dict[str, LookbackVerdict] = {}
        #: Operators of users' own that were checked, with the datatype's name.
        self.checked_operators: set[tuple[Operator, str]] = set()
        self._kept: dict[Hashable, Any] = {}
        self._staging: wgpu.GPUBuffer | None = None
        self.observer: Observer | None = None  # while one is open
        #: Events that submitted themselves are numbered afterwards; up to which number the GPU has come by, so that
        #: an event can tell it while later work, of other threads too, is under way.
        self.events_recorded: int = 0
        self.events_done: int = 0
        self._events_lock = threading.Lock()  # `lock` may be held while the GPU is waited for
        note_gpu_use()  # also by way of a device that a user made
        watch_errors()
        look_types_up()

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device."""
        check_process()
        device = self._device_reference()
        assert device is not None, "a context outlived its device"
        return device

    def cached(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return what is kept for the device under a key, making it at first use.

        It is made once, also if several threads ask first, and goes with the device.
        """
        try:
            return self._kept[key]
        except KeyError:
            pass
        with self.lock:
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]

    def forget(self, key: Hashable) -> None:
        """Let what is kept under a key be made again at its next use."""
        self._kept.pop(key, None)

    @property
    def timing_helper(self) -> TimingHelper:
        """The device's one timing helper."""
        return self.cached("timing helper", lambda: TimingHelper(self.device))

    @property
    def capabilities(self) -> Capabilities:
        """Measured at first use."""

        def measure() -> Capabilities:
            return measure_capabilities(self.device, self.timing_helper if self.has_timestamps else None)

        return self.cached("capabilities", measure)

    def use_tuning(self, tuning: Findings | None) -> None:
        """Let primitives that are made from now on use these shapes; None for the default ones."""
        with self.lock:
            self._kept["capabilities"] = replace(self.capabilities, tuning=tuning)

    @property
    def executor(self) -> Executor:
        """The device's one executor."""
        return self.cached("executor", self._make_executor)

    def _make_executor(self) -> Executor:
        reference = weakref.ref(self)

        def observer() -> Observer | None:
            context = reference()
            return None if context is None else context.observer

        return Executor(self.device, observer)

    def number_event(self) -> int:
        """Return the number of an event that was submitted just now."""
        with self._events_lock:
            self.events_recorded += 1
            return self.events_recorded

    def note_events_done(self, number: int) -> None:
        """Take note that the GPU has come by all events up to that number."""
        with self._events_lock:
            self.events_done = max(self.events_done, number)

    def warn_no_timestamps(self, stacklevel: int = 3) -> None:
        """Warn, once per device, that GPU times will be None; `stacklevel` leads to the user's line."""
        if not self._warned_no_timestamps:
            self._warned_no_timestamps = True
            warnings.warn(
                "this device has no feature 'timestamp-query': GPU times will be None "
                "(request_device() of gridwise_py asks for it where the adapter has it)",
                GridwiseWarning,
                stacklevel=stacklevel,
            )

    def read_buffer(self, buffer: wgpu.GPUBuffer, offset_bytes: int, out: np.ndarray) -> None:
        """Copy from a GPU buffer into a contiguous numpy array of 4-byte items, through a staging buffer.

        ``queue.read_buffer`` copies several times; this maps once and copies once per part.
        """
        target = out.view(np.uint8).reshape(-1)
        observer = self.observer
        with (
            self.lock,
            device_errors(f"reading {target.nbytes} bytes", self.device),
            observer.span("download", "transfer", bytes=target.nbytes) if observer else contextlib.nullcontext(),
        ):
            staging = self._take_staging(min(_STAGING_BYTES, 1 << max(16, (target.nbytes - 1).bit_length())))
            for start in range(0, target.nbytes, staging.size):
                size = min(staging.size, target.nbytes - start)
                encoder = self.device.create_command_encoder(label="gridwise read")
                with step(observer, "copy to host", encoder, size):
                    encoder.copy_buffer_to_buffer(buffer, offset_bytes + start, staging, 0, size)
                with step(observer, "submit"):
                    submit(self.device, [encoder.finish()], "read", waited_for=True)
                with step(observer, "wait"):
                    map_buffer(self.device, staging, "READ_NOSYNC", 0, size)
                with step(observer, "copy from staging"):
                    target[start : start + size] = np.frombuffer(
                        staging.read_mapped(0, size, copy=False), dtype=np.uint8
                    )
                staging.unmap()
            self._staging = staging

    def _take_staging(self, size_bytes: int) -> wgpu.GPUBuffer:
        """Return a staging buffer that nobody else has.

        It comes back only after a call that went well. After any other it may be mapped, or be so at any time: to copy
        into it then would end the process.
        """
        staging, self._staging = self._staging, None
        if staging is None or staging.size < size_bytes:
            staging = self.device.create_buffer(
                label="gridwise staging",
                size=size_bytes,
                usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST,
            )
        return staging


_creation_lock = threading.Lock()


def context_of(device: wgpu.GPUDevice) -> DeviceContext:
    """Return the context of a device, making it at first use.

    Raises
    ------
    ArgumentError
        If `device` is not a wgpu device.
    ForkError
        If the process was forked from one that had used the GPU.
    """
    check_process()
    if not isinstance(device, wgpu.GPUDevice):
        raise ArgumentError(
            f"device must be a wgpu.GPUDevice (gridwise_py.request_device() makes one), not {type(device).__name__}"
        )
    state = state_of(device)
    if state.context is None:
        with _creation_lock:
            if state.context is None:
                state.context = DeviceContext(device)
    return state.context


def capabilities(device: wgpu.GPUDevice) -> Capabilities:
    """Return what a device can do, measured once per device."""
    return context_of(device).capabilities


def timing_helper(device: wgpu.GPUDevice) -> TimingHelper:
    """Return the device's `TimingHelper`, which everything that times on it shares.

    Raises
    ------
    TimingUnavailable
        If the device was made without ``timestamp-query``.
    """
    return context_of(device).timing_helper
