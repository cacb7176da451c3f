"""What this library keeps per device: capabilities, caches, the timing helper, staging buffers.

It belongs to the device's record (`backend.device_state`), so that two devices never share anything, a user's own
device works like ours, and all of it goes when the device goes.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Generator, Hashable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import wgpu

from .. import settings
from ..backend.device_errors import device_errors, is_lost, watch_engine
from ..backend.device_state import state_of
from ..backend.fork_guard import check_process, note_gpu_use
from ..backend.mapped_memory import mappable
from ..backend.queues import guard_queue, wait_method
from ..backend.recording import Log, log_of
from ..errors import ArgumentError
from ..settings import ShaderChecks
from ..timing.queries import TimingHelper, TimingSession
from ..tuning.store import TuningStore
from ..types.capabilities import FEATURES_OF_FLOAT64, Capabilities, LookbackVerdict
from ..types.operator_base import Operator
from ..warn import warn
from .compile_threads import compile_threads
from .device import EngineDescription, default_device, device_key, measure_capabilities, request_device
from .executor import Executor
from .memory import MemoryPool, MemoryStats
from .observer import Observer
from .transfers import Transfers

_Made = TypeVar("_Made")


class DeviceContext:
    """Everything that belongs to one device; get it with `context_of`."""

    def __init__(self, device: wgpu.GPUDevice):
        self._device_reference = weakref.ref(device)
        self.lock: threading.RLock = threading.RLock()
        self.has_timestamps: bool = "timestamp-query" in device.features
        #: Whether kernels compute float64.
        self.has_float64: bool = all(feature in device.features for feature in FEATURES_OF_FLOAT64)
        self._warned_no_timestamps = False
        #: What `lookback.lookback_verdict` found out, by the form of the state words.
        self.lookback_verdicts: dict[str, LookbackVerdict] = {}
        #: Operators of users' own that were checked, with the datatype's name.
        self.checked_operators: set[tuple[Operator, str]] = set()
        self._kept: dict[Hashable, Any] = {}
        #: What calls of one-shot functions do, by what tells them apart; and by thread, what writes one now.
        self.recipes: dict[tuple[Any, ...], Any] = {}
        self.builders: dict[int, Any] = {}
        reference: weakref.ref[DeviceContext] = weakref.ref(self)
        self.memory: MemoryPool = MemoryPool(
            device, lambda: _make_room(reference), is_mappable=settings.map_arrays() and mappable(device)
        )
        self.transfers: Transfers = Transfers(self.memory)
        state_of(device).end.afterwards.append(self.memory.close)
        self.observer: Observer | None = None  # while one is open
        #: What it was asked to do, of a device that only records.
        self.log: Log | None = log_of(device)
        #: As `DeviceState.recorders`.
        self.recorders: dict[int, weakref.ref[Any]] = state_of(device).recorders
        #: Events that submitted themselves are numbered afterwards; up to which number the GPU has come by, so that
        #: an event can tell it while later work, of other threads too, is under way.
        self.events_recorded: int = 0
        self.events_done: int = 0
        self._events_lock = threading.Lock()  # `lock` may be held while the GPU is waited for
        note_gpu_use()  # also by way of a device that a user made
        engine = state_of(device).engine
        engine.prepare()
        watch_engine(engine)

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device."""
        check_process()
        device = self._device_reference()
        assert device is not None, "a context outlived its device"
        return device

    @property
    def key(self) -> dict[str, str]:
        """What findings about the device hold for: adapter, driver, backend, and the versions that drive them."""
        return device_key(self.device)

    @property
    def engine(self) -> EngineDescription:
        """Of which engine the device is."""
        device, engine = self.device, state_of(self.device).engine
        return EngineDescription(engine.NAME, engine.version(), engine.switches(device), engine.HAS_TICKS)

    @property
    def is_lost(self) -> bool:
        """Whether the device is lost or destroyed."""
        return is_lost(self.device)

    @property
    def wait_method(self) -> str:
        """How this library waits for the device, as `queues.wait_method` says."""
        return wait_method(self.device)

    def with_checks(self, level: ShaderChecks) -> wgpu.GPUDevice:
        """Return a device of the same adapter whose shaders all have some run-time checks, if its engine can."""

        def make() -> wgpu.GPUDevice:
            made = request_device(self.device.adapter)
            state = state_of(made)
            state.shader_checks = state.engine.checks_of_all(made, level)
            return made

        return self.cached(("shader checks", level), make)

    def watch_queue(self) -> None:
        """Count submissions of a caller's own code from now on, too: `queue_uses`."""
        guard_queue(self.device)

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

    def known(self, key: Hashable) -> Any:
        """Return what is kept under a key; None if nothing is."""
        return self._kept.get(key)

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
            with self.at_once():
                return measure_capabilities(self.device, self.timing_helper if self.has_timestamps else None)

        return self.cached("capabilities", measure)

    def look_up_tuning(self) -> None:
        """Let primitives that are made from now on use what is known of the device by now: shapes and facts."""
        store = TuningStore(self.key)
        with self.lock:
            self._kept["capabilities"] = replace(self.capabilities, tuning=store.findings(), facts=store.facts())

    @property
    def executor(self) -> Executor:
        """The device's one executor."""
        return self.cached("executor", self._make_executor)

    def _make_executor(self) -> Executor:
        reference = weakref.ref(self)

        def observer() -> Observer | None:
            context = reference()
            return None if context is None else context.observer

        return Executor(self.device, self.memory, observer)

    def make_room(self) -> None:
        """Free the memory of plans, which are made again at their next use."""
        executor = self._kept.get("executor")
        if executor is not None:
            executor.clear()

    def recorder(self) -> Any:
        """Return what takes the calls of this thread instead of the queue, a `CallRecorder`, or None."""
        reference = self.recorders.get(threading.get_ident())
        return None if reference is None else reference()

    @contextlib.contextmanager
    def at_once(self) -> Generator[None]:
        """Let this thread's calls inside run at once, although a batch or a capture is open: for the library's own."""
        thread = threading.get_ident()
        recorder = self.recorders.pop(thread, None)
        try:
            yield
        finally:
            if recorder is not None:
                self.recorders[thread] = recorder

    def number_event(self) -> int:
        """Return the number of an event that was submitted just now."""
        with self._events_lock:
            self.events_recorded += 1
            return self.events_recorded

    def note_events_done(self, number: int) -> None:
        """Take note that the GPU has come by all events up to that number."""
        with self._events_lock:
            self.events_done = max(self.events_done, number)

    def session(self, *, inside: bool = False) -> TimingSession | None:
        """Open a timing session; return None, with the warning of `warn_no_timestamps`, without timestamps.

        `inside` is that of `TimingHelper.session`.
        """
        self.finish_compiling()
        if self.has_timestamps:
            return self.timing_helper.session(inside=inside)
        self.warn_no_timestamps()
        return None

    def finish_compiling(self) -> None:
        """Wait for what compiles in the background: it would slow the host, and a GPU that is a CPU."""
        compile_threads().finish()

    def warn_no_timestamps(self) -> None:
        """Warn, once per device, that GPU times will be None."""
        if not self._warned_no_timestamps:
            self._warned_no_timestamps = True
            warn(
                "this device has no feature 'timestamp-query': GPU times will be None "
                "(request_device() of gridwise_py asks for it where the adapter has it)"
            )

    def read_buffer(
        self, buffer: wgpu.GPUBuffer, offset_bytes: int, out: np.ndarray, *, is_fresh: bool = False
    ) -> None:
        """Copy from a GPU buffer into a contiguous numpy array; waits for the work that was submitted before.

        `is_fresh` says that the memory of the array was never touched.
        """
        observer = self.observer
        with (
            device_errors(f"reading {out.nbytes} bytes", self.device),
            observer.span("download", "transfer", bytes=out.nbytes) if observer else contextlib.nullcontext(),
        ):
            self.transfers.download(self.device, buffer, offset_bytes, out, observer, is_fresh=is_fresh)

    def write_buffer(self, buffer: wgpu.GPUBuffer, offset_bytes: int, items: np.ndarray) -> None:
        """Copy a numpy array of one dimension into a GPU buffer; offset and size are multiples of 4 bytes."""
        observer = self.observer
        with (
            device_errors(f"uploading {items.nbytes} bytes", self.device),
            observer.span("upload", "transfer", bytes=items.nbytes) if observer else contextlib.nullcontext(),
        ):
            self.transfers.upload(self.device, buffer, offset_bytes, items, observer)


def _make_room(reference: weakref.ref[DeviceContext]) -> None:
    context = reference()
    if context is not None:
        context.make_room()


def check_device(device: object) -> None:
    """Raise ArgumentError for what is no wgpu device."""
    if not isinstance(device, wgpu.GPUDevice):
        raise ArgumentError(
            f"device must be a wgpu.GPUDevice (gridwise_py.request_device() makes one), not {type(device).__name__}"
        )


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
    check_device(device)
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
    """Return the device's `TimingHelper`.

    Raises
    ------
    TimingUnavailable
        If the device was made without ``timestamp-query``.
    """
    return context_of(device).timing_helper


def memory_stats(device: wgpu.GPUDevice | None = None) -> MemoryStats:
    """Return how much memory Arrays and primitives use, and how much is kept for the next ones.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Returns
    -------
    MemoryStats

    Examples
    --------
    >>> import gridwise_py as gw
    >>> device = gw.request_device()
    >>> x = gw.empty(1000, "u32", device)
    >>> gw.memory_stats(device).in_use_bytes
    4096
    >>> del x
    >>> gw.memory_stats(device).cached_bytes
    4096
    """
    return context_of(device if device is not None else default_device()).memory.stats()


def empty_cache(device: wgpu.GPUDevice | None = None) -> int:
    """Give the memory that is kept for later Arrays back; waits for the GPU.

    Call it where others need the memory.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        By default `default_device()`.

    Returns
    -------
    int
        How many bytes were given back.
    """
    return context_of(device if device is not None else default_device()).memory.empty()
