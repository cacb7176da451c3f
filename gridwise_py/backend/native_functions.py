"""The C functions of an engine that encode and submit commands, those of webgpu.h, and how their errors arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import wgpu

MARKER = "gridwise"


class Errors(Protocol):
    """Catches the errors of C functions from when it is made to the end of a ``with`` block, and raises one there."""

    @property
    def message(self) -> str | None:
        """What was said so far."""
        ...

    def __enter__(self) -> Errors: ...
    def __exit__(self, kind: object, error: object, traceback: object, /) -> None: ...


class SlotErrors:
    """Catches the errors of wgpu-native's functions in a ``with`` block, and raises the last one at its end.

    It takes the place of a slot of wgpu-py's error handler, which sets `type` and `message`. So the block itself can
    ask whether there was an error, and one capture covers all commands of a submission.
    """

    __slots__ = ("_error_types", "_slots", "message", "name", "type")

    def __init__(self, of_thread: Any, new_slots: Callable[[], deque[Any]], error_types: Mapping[str, type[Exception]]):
        try:
            self._slots: deque[Any] = of_thread.stack
        except AttributeError:  # the first time in this thread
            self._slots = new_slots()
        self._error_types = error_types
        self.name: str = "gridwise commands"
        self.type: str = ""
        self.message: str | None = None
        self._slots.append(self)

    def __enter__(self) -> SlotErrors:
        return self

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None:
        slots = self._slots
        while slots and slots.pop() is not self:
            pass  # left by an interrupt in wgpu-py
        if self.message is not None and kind is None:
            raise self._error_types.get(self.type, wgpu.GPUError)(self.message)


class PendingErrors:
    """Raises the first error that Dawn's functions left in wgpudawn's list in a ``with`` block, and logs the others."""

    __slots__ = ("_handler", "_pending")

    def __init__(self, handler: Any):
        self._handler = handler
        self._pending: list[tuple[str, str]] = handler.pending

    @property
    def message(self) -> str | None:
        """What was said so far."""
        return self._pending[0][1] if self._pending else None

    def __enter__(self) -> PendingErrors:
        return self

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None:
        if self._pending:
            (self._handler.raise_pending if kind is None else self._handler.log_pending)()


class NativeFunctions:
    """The C functions of an engine, and what turns their errors into exceptions.

    Parameters
    ----------
    api : module
        The engine's wrappers: of wgpu-py's form.
    ffi, lib : object
        Those of cffi.
    new : callable
        What `ffi.new` calls for a type that is no text.
    errors : callable
        Returns an `Errors`.
    """

    def __init__(self, api: Any, ffi: Any, lib: Any, new: Callable[..., Any], errors: Callable[[], Errors]):
        self.null, self.collected = ffi.NULL, ffi.gc
        self.new, self.errors = new, errors
        self.handles_type = ffi.typeof("WGPUCommandBuffer[1]")
        self.encoder_type = api.GPUCommandEncoder
        self.new_struct_p, self.to_c_string_view = api.new_struct_p, api.to_c_string_view
        self.create_encoder = lib.wgpuDeviceCreateCommandEncoder
        self.begin_pass = lib.wgpuCommandEncoderBeginComputePass
        self.set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        self.set_group = lib.wgpuComputePassEncoderSetBindGroup
        self.dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        self.end_pass = lib.wgpuComputePassEncoderEnd
        self.release_pass = lib.wgpuComputePassEncoderRelease
        self.clear = lib.wgpuCommandEncoderClearBuffer
        self.copy = lib.wgpuCommandEncoderCopyBufferToBuffer
        self.finish = lib.wgpuCommandEncoderFinish
        self.insert_marker = lib.wgpuCommandEncoderInsertDebugMarker
        self.marker = self.to_c_string_view(MARKER)
        self.release_encoder = lib.wgpuCommandEncoderRelease
        self.submit = lib.wgpuQueueSubmit
        self.release_commands = lib.wgpuCommandBufferRelease
