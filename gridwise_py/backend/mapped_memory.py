"""Map a buffer that the GPU computes on, where CPU and GPU share memory, with the C functions below wgpu-py's wrappers.

wgpu-py's own mapping wakes a thread for each call, which takes 70 µs; these functions take 5 µs. wgpu-py does not see
such a mapping: the buffer's `map_state` stays as it was. wgpu-native ends the process when a mapped buffer is
submitted, destroyed or mapped again, so whoever maps one keeps others from that (`DeviceEnd.mapped`).

If wgpu-py is organised differently, `mappable` returns False, and nothing here is used.
"""

# The handles that wgpu-py keeps private are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import io
import operator
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, repeat, takewhile
from typing import Any, Literal, cast

import numpy as np
import wgpu

from .device_errors import check_not_lost
from .device_state import state_of
from .internals import made_of_internals
from .pages import advise_pages
from .timeout import timed_out, timeout_s

__all__ = [
    "FEATURE",
    "MAP_ALIGNMENT_BYTES",
    "MAP_USAGE",
    "Mapping",
    "Mode",
    "flush",
    "mappable",
    "shares_memory",
    "staging_mapping",
    "take_large_pages",
]

#: What a device needs so that a buffer can be mapped and bound.
FEATURE = "mappable-primary-buffers"
#: The usage that such a buffer needs.
MAP_USAGE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE
#: Where a mapped range may begin.
MAP_ALIGNMENT_BYTES = 8

_SHARED_MEMORY = ("CPU", "IntegratedGPU")
_CAPTURE = "gridwise mapping"
_MAPPED = "1 "  # what the note of a callback begins with: WGPUMapAsyncStatus_Success
_PAUSE_S = 0.0002
_LARGE_BYTES = 4 << 20
_MADV_HUGEPAGE = 14  # Linux 2.6.38

Mode = Literal["READ", "WRITE"]
# Those that wgpu may still call back about.
_requested: set[Mapping] = set()


class _Native:
    """The C functions, and the capture that turns their errors into exceptions."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import _api, _helpers, ffi, lib

        self.null, self.new, self.buffer, self.closure = ffi.NULL, ffi.new, ffi.buffer, ffi.callback
        self.capture, self.release = _api.error_handler.capture, _api.error_handler.release
        self.error_types = _helpers.ERROR_TYPES
        self.map_async, self.unmap = lib.wgpuBufferMapAsync, lib.wgpuBufferUnmap
        self.mapped_range = lib.wgpuBufferGetMappedRange
        self.poll, self.submit = lib.wgpuDevicePoll, lib.wgpuQueueSubmit
        self.modes = {"READ": lib.WGPUMapMode_Read, "WRITE": lib.WGPUMapMode_Write}
        self.callback_mode = lib.WGPUCallbackMode_AllowProcessEvents
        if lib.WGPUMapAsyncStatus_Success != 1:
            raise AttributeError("WGPUMapAsyncStatus_Success")

    def raise_captured(self) -> None:
        """End the capture, and raise the captured error."""
        error = self.release(_CAPTURE)
        if error is not None:
            kind, message = error
            raise self.error_types.get(kind, wgpu.GPUError)(message)


@functools.lru_cache(maxsize=1)
def _native() -> _Native | None:
    return made_of_internals(_Native)


def shares_memory(adapter: wgpu.GPUAdapter) -> bool:
    """Whether the memory of an adapter is the CPU's. On any other, what the CPU can reach is slow for kernels."""
    return adapter.info["adapter_type"] in _SHARED_MEMORY


def mappable(device: wgpu.GPUDevice) -> bool:
    """Whether buffers of a device can be mapped and bound, in memory that its CPU and its GPU share."""
    has_it = FEATURE in device.features and shares_memory(device.adapter)
    return has_it and state_of(device).engine.HAS_MAPPED_MEMORY and _native() is not None


def flush(device: wgpu.GPUDevice) -> None:
    """Have the GPU do what the queue was given to write into buffers: wgpu holds it back until a submission.

    Mapping does not wait for what is held back, and would come before it.
    """
    native = _native()
    assert native is not None, "mappable() tells"
    native.submit(device.queue._internal, 0, native.null)


def staging_mapping(
    device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: Mode, begin_bytes: int, size_bytes: int
) -> Mapping | None:
    """Return what maps a buffer that only the CPU and copies use; None where wgpu-py has to do so by itself."""
    if not state_of(device).engine.HAS_MAPPED_MEMORY or _native() is None:
        return None
    if buffer.map_state != "unmapped" or not hasattr(buffer, "_mapped_status"):
        return None
    return Mapping(device, buffer, mode, begin_bytes, size_bytes)


def take_large_pages(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer) -> None:
    """Have the system give a new, large buffer large pages, as numpy does for its arrays.

    For an adapter that is the CPU: its memory is the process's own. Otherwise the first use of 256 MiB spends 0.2 s on
    page faults. Where the system has no large pages, nothing changes.
    """
    if buffer.size < _LARGE_BYTES or device.adapter.info["adapter_type"] != "CPU":
        return
    mapping = Mapping(device, buffer, "WRITE", 0, MAP_ALIGNMENT_BYTES)
    begin = mapping.map().__array_interface__["data"][0]
    advise_pages(begin, buffer.size, _MADV_HUGEPAGE)
    mapping.unmap()


class Mapping:
    """A range of a buffer that is to be mapped once.

    Parameters
    ----------
    device : wgpu.GPUDevice
    buffer : wgpu.GPUBuffer
        With the usage `MAP_USAGE`.
    mode : {"READ", "WRITE"}
    begin_bytes : int
        A multiple of `MAP_ALIGNMENT_BYTES`.
    size_bytes : int
        A multiple of 4.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        buffer: wgpu.GPUBuffer,
        mode: Mode,
        begin_bytes: int,
        size_bytes: int,
    ):
        native = _native()
        assert native is not None, "mappable() tells"
        self._native, self._device, self._buffer = native, device, buffer
        self._begin_bytes, self._size_bytes, self._reads = begin_bytes, size_bytes, mode == "READ"
        # What wgpu calls when the buffer is mapped, in whichever thread polls the device. It is a function of C that
        # takes any arguments: one of Python could be interrupted, and the news lost.
        self._note = io.StringIO()
        closure = native.closure(
            "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", functools.partial(print, file=self._note)
        )
        self._callback = native.new("WGPUBufferMapCallbackInfo *", {"mode": native.callback_mode, "callback": closure})
        self._closure = closure
        handle, ask_for = buffer._internal, native.modes[mode]
        self._begin = functools.partial(native.map_async, handle, ask_for, begin_bytes, size_bytes, self._callback[0])
        self._poll = functools.partial(native.poll, device._internal)
        self._end = functools.partial(native.unmap, handle)

    def _memory(self) -> Iterator[Any]:
        """Return an iterator that gives the mapped memory; it raises KeyError if the buffer is not mapped by then."""
        native = self._native
        texts = map(operator.call, (self._note.getvalue,))
        handles = map({True: self._buffer._internal}.__getitem__, map(str.startswith, texts, (_MAPPED,)))
        pointers = map(native.mapped_range, handles, (self._begin_bytes,), (self._size_bytes,))
        return map(native.buffer, pointers, (self._size_bytes,))

    def _waiting(self) -> Iterator[Any]:
        """Return an iterator that polls the device until wgpu has called back."""
        unnoted = takewhile(operator.not_, map(operator.call, repeat(self._note.tell)))
        return zip(unnoted, map(self._poll, repeat(False), repeat(self._native.null)), strict=False)

    def map(self, is_wanted: Callable[[], bool] = lambda: True) -> np.ndarray:
        """Map it, after the work submitted before; return its memory, which is there until `unmap`.

        For a thread that no interrupt reaches. Nobody submits meanwhile. `is_wanted` is asked while it waits.

        Raises
        ------
        DeviceTimeoutError
            If a timeout is set for the device and passes first, or it is not wanted any more.
        wgpu.GPUError
            If wgpu refuses.
        """
        native = self._native
        native.capture(_CAPTURE)
        try:
            self._begin()
            self._wait(is_wanted)
            memory = None if not self._is_mapped() else next(self._memory())
        finally:
            native.raise_captured()
        if memory is None:
            raise self._refusal()
        return np.frombuffer(memory, dtype=np.uint8)

    def _wait(self, is_wanted: Callable[[], bool]) -> None:
        limit_s = timeout_s(self._device)
        end = None if limit_s is None else time.monotonic() + limit_s
        self._poll(False, self._native.null)  # mostly nobody else has submitted anything
        while not self._note.tell():
            if not is_wanted() or (end is not None and time.monotonic() > end):
                self._end()  # wgpu takes the request back
                raise timed_out(self._device, limit_s or 0.0)
            time.sleep(_PAUSE_S)
            self._poll(False, self._native.null)

    def map_for_wgpu(self, wait: Callable[[Callable[[], object]], object]) -> None:
        """Map it so that wgpu-py knows, and its methods give the memory and unmap it.

        Without wgpu-py's own thread for that, which takes 70 µs to wake, and whose lock an interrupt may leave held.

        Parameters
        ----------
        wait : callable
            Takes a function, and returns when what that returns is true, or nothing more is under way. After an
            exception of it the buffer is not mapped, and wgpu-py does not let it be used again.
        """
        native, buffer, device = self._native, cast(Any, self._buffer), self._device
        _requested.add(self)  # what wgpu is to call must live until it is called
        buffer._map_state = "pending"
        native.capture(_CAPTURE)
        try:
            self._begin()
        finally:
            native.raise_captured()
        limit_s, begin = timeout_s(device), time.monotonic()
        try:
            wait(self._note.tell)
            while not self._note.tell():  # another thread's poll is about to call
                check_not_lost(device, "mapping a buffer")
                if limit_s is not None and time.monotonic() - begin > limit_s:
                    raise timed_out(device, limit_s)
                time.sleep(_PAUSE_S)
                wait(self._note.tell)
        except BaseException:
            self._end()
            raise
        _requested.discard(self)
        check_not_lost(device, "mapping a buffer")  # wgpu calls back with success for a device that was destroyed
        if not self._is_mapped():
            raise self._refusal()
        flag = native.modes["READ" if self._reads else "WRITE"]  # as those of WebGPU
        buffer._mapped_status = self._begin_bytes, self._begin_bytes + self._size_bytes, flag
        buffer._mapped_memoryviews = []
        buffer._map_state = "mapped"

    def _is_mapped(self) -> bool:
        return self._note.getvalue().startswith(_MAPPED)

    def _refusal(self) -> Exception:
        check_not_lost(self._device, "mapping a buffer")
        return wgpu.GPUError(f"a buffer of {self._buffer.size} bytes was not mapped ({self._note.getvalue().strip()})")

    def unmap(self) -> None:
        """Give the range back to the GPU."""
        native = self._native
        native.capture(_CAPTURE)
        try:
            self._end()
        finally:
            native.raise_captured()

    def copy(self, lead_bytes: int, items: np.ndarray) -> None:
        """Map it, copy between its memory and items, and unmap it: all, or nothing, wherever an interrupt arrives.

        Python looks for signals between its own instructions; here C code makes all calls. The caller holds the lock
        of submissions, and the queue is idle.

        Parameters
        ----------
        lead_bytes : int
            Where the items begin in the range.
        items : numpy.ndarray
            One dimension; with the mode ``"READ"`` contiguous.
        """
        native, dtype = self._native, items.dtype.newbyteorder("=")
        as_items = functools.partial(np.frombuffer, dtype=dtype, count=items.size, offset=lead_bytes)
        put: Callable[..., object] = operator.setitem
        mapped: Iterator[Any] = map(as_items, self._memory())
        host: Iterator[Any] = iter((items,))
        targets, sources = (host, mapped) if self._reads else (mapped, host)
        copies = map(put, targets, (...,), sources)
        steps = chain(map(operator.call, (self._begin,)), self._waiting(), copies, map(operator.call, (self._end,)))
        native.capture(_CAPTURE)
        try:
            deque(steps, maxlen=0)
        except KeyError:
            raise self._refusal() from None
        except BaseException:
            if self._is_mapped():
                self._end()
            raise
        finally:
            native.raise_captured()
