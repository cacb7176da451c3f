"""Encode with the C functions below wgpu-py's wrappers, with all C values made beforehand.

A wrapper of wgpu-py makes a C structure, a Python object and an error capture for each call, which costs as much as the
call itself. A bound plan records the same commands each time, so its handles are looked up once, and one error capture
covers all of them. If wgpu-py is organised differently, `raw_commands` returns None, and the public calls are used.
"""

# The handles that wgpu-py keeps private are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
import functools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import wgpu

_CAPTURE = "gridwise commands"
_MARKER = "gridwise"

__all__ = [
    "RawCommands",
    "RawDispatch",
    "check_open",
    "encode_together",
    "joined",
    "prepared_submission",
    "raw_commands",
    "record_together",
]


class RawDispatch(NamedTuple):
    """A dispatch on wgpu-py's objects."""

    label: str
    pipeline: wgpu.GPUComputePipeline
    group: wgpu.GPUBindGroup
    workgroups: tuple[int, int, int]


class _Native:
    """The C functions, and the capture that turns their errors into exceptions."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import _api, _helpers, ffi, lib

        self.null, self.new, self.collected = ffi.NULL, ffi.new, ffi.gc
        self.handles_type = ffi.typeof("WGPUCommandBuffer[1]")
        self.encoder_type = _api.GPUCommandEncoder
        self.new_struct_p, self.to_c_string_view = _api.new_struct_p, _api.to_c_string_view
        self.handler, self.error_types = _api.error_handler, _helpers.ERROR_TYPES
        self.capture, self.release = self.handler.capture, self.handler.release
        self.create_encoder = lib.wgpuDeviceCreateCommandEncoder
        self.begin_pass = lib.wgpuCommandEncoderBeginComputePass
        self.set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        self.set_group = lib.wgpuComputePassEncoderSetBindGroup
        self.dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        self.end_pass = lib.wgpuComputePassEncoderEnd
        self.release_pass = lib.wgpuComputePassEncoderRelease
        self.finish = lib.wgpuCommandEncoderFinish
        self.insert_marker = lib.wgpuCommandEncoderInsertDebugMarker
        self.marker = self.to_c_string_view(_MARKER)
        self.release_encoder = lib.wgpuCommandEncoderRelease
        self.submit = lib.wgpuQueueSubmit
        self.release_commands = lib.wgpuCommandBufferRelease

    def raise_captured(self, name: str) -> None:
        """End the capture, and raise the captured error."""
        error = self.release(name)
        if error is not None:
            kind, message = error
            raise self.error_types.get(kind, wgpu.GPUError)(message)


@functools.lru_cache(maxsize=1)
def _native() -> _Native | None:
    try:
        return _Native()
    except (ImportError, AttributeError):
        return None  # another version or backend of wgpu-py


class RawCommands:
    """Dispatches in one pass, ready to be encoded any number of times, by any thread.

    Parameters
    ----------
    native : object
        The C functions.
    device : wgpu.GPUDevice
    dispatches : sequence of RawDispatch
    """

    __slots__ = ("_descriptor", "_device", "_dispatches", "_kept", "_label", "_native", "_queue")

    def __init__(self, native: Any, device: wgpu.GPUDevice, dispatches: Sequence[RawDispatch]):
        self._native = native
        # Holds the handles only: the device holds this object through its executor.
        self._device, self._queue = device._internal, device.queue._internal
        self._kept = dispatches  # keeps the objects alive, and so their handles valid
        self._dispatches = [(d.pipeline._internal, d.group._internal, *d.workgroups) for d in dispatches]
        self._label = native.to_c_string_view(dispatches[0].label)
        self._descriptor = native.new_struct_p("WGPUComputePassDescriptor *", label=self._label)

    def record(self, encoder: wgpu.GPUCommandEncoder, trials: int) -> bool:
        """Record on a caller's encoder; return False if it is not an encoder of wgpu-native."""
        native = self._native
        if type(encoder) is not native.encoder_type:
            return False
        native.capture(_CAPTURE)
        try:
            self._pass(encoder._internal, trials)
        finally:
            native.raise_captured(_CAPTURE)
        return True

    def encode(self, trials: int) -> Any:
        """Return a command buffer, which `submit` takes; see `encode_together`."""
        return encode_together(((self, trials),))

    def submit(self, commands: Any) -> None:
        """Submit a command buffer; the caller has checked that the device was not destroyed."""
        native = self._native
        handles = native.new(native.handles_type, (commands,))
        native.capture(_CAPTURE)
        try:
            native.submit(self._queue, 1, handles)
        finally:
            native.raise_captured(_CAPTURE)

    def _pass(self, encoder: Any, trials: int) -> None:
        self._pass_of(encoder, ((self, trials),))

    def _pass_of(self, encoder: Any, commands: Iterable[tuple[RawCommands, int]]) -> None:
        """Encode several in one pass, which has this one's label; wgpu orders the dispatches of a pass."""
        native = self._native
        set_pipeline, set_group, dispatch, null = native.set_pipeline, native.set_group, native.dispatch, native.null
        compute = native.begin_pass(encoder, self._descriptor)
        try:
            last_pipeline = last_group = None
            for one, trials in commands:
                for pipeline, group, x, y, z in one._dispatches:
                    if pipeline is not last_pipeline:
                        set_pipeline(compute, pipeline)
                        set_group(compute, 0, group, 0, null)
                        last_pipeline, last_group = pipeline, group
                    elif group is not last_group:
                        set_group(compute, 0, group, 0, null)
                        last_group = group
                    for _ in range(trials):
                        dispatch(compute, x, y, z)
            native.end_pass(compute)
        finally:
            native.release_pass(compute)


def raw_commands(device: wgpu.GPUDevice, dispatches: Sequence[RawDispatch]) -> RawCommands | None:
    """Return commands for dispatches in one pass, or None where wgpu-py has no such functions."""
    native = _native()
    if native is None or not dispatches:
        return None
    try:
        return RawCommands(native, device, dispatches)
    except AttributeError:
        return None


def check_open(encoder: wgpu.GPUCommandEncoder) -> None:
    """Raise wgpu.GPUError if an encoder is finished, or has an open pass: wgpu-py tells neither."""
    native = _native()
    if native is None or type(encoder) is not native.encoder_type:
        encoder.insert_debug_marker(_MARKER)
        return
    native.capture(_CAPTURE)
    try:
        native.insert_marker(encoder._internal, native.marker)
    finally:
        native.raise_captured(_CAPTURE)


def joined(commands: Sequence[tuple[RawCommands, int]]) -> RawCommands:
    """Return several as one, in order, each dispatch as often as the number says."""
    first = commands[0][0]
    result = copy.copy(first)
    result._kept = [dispatch for one, _ in commands for dispatch in one._kept]
    result._dispatches = [d for one, trials in commands for d in one._dispatches for _ in range(trials)]
    return result


def encode_together(commands: Sequence[tuple[RawCommands, int]]) -> Any:
    """Return a command buffer with several in one pass, each dispatch as often as the number says.

    Raises
    ------
    wgpu.GPUError
        For example, if the device is lost; then nothing was encoded.
    """
    first = commands[0][0]
    native = first._native
    native.capture(_CAPTURE)
    try:
        encoder = native.create_encoder(first._device, native.null)
    finally:
        native.raise_captured(_CAPTURE)
    native.capture(_CAPTURE)
    try:
        first._pass_of(encoder, commands)
        finished = native.finish(encoder, native.null)
    finally:
        native.release_encoder(encoder)
        native.raise_captured(_CAPTURE)
    # A garbage-collected handle: an interrupt before the submission leaks nothing.
    return native.collected(finished, native.release_commands)


def record_together(encoder: wgpu.GPUCommandEncoder, commands: Sequence[tuple[RawCommands, int]]) -> bool:
    """Record several in one pass, each dispatch as often as the number says; return False as `RawCommands.record`."""
    first = commands[0][0]
    native = first._native
    if type(encoder) is not native.encoder_type:
        return False
    native.capture(_CAPTURE)
    try:
        first._pass_of(encoder._internal, commands)
    finally:
        native.raise_captured(_CAPTURE)
    return True


def prepared_submission(
    device: wgpu.GPUDevice,
    commands: Any,
    is_wanted: Callable[[], bool],
    afterwards: Callable[[], object],
) -> Callable[[], bool] | None:
    """Return what submits a command buffer and calls `afterwards`, or neither, wherever an interrupt arrives.

    `commands` are of wgpu-py, or of `encode_together`.

    Python looks for signals between its own instructions; here C code makes both calls, one after the other. So
    `afterwards` must be a function in C, such as a `functools.partial` of one. If `is_wanted` says no at the last
    moment, nothing is done, and the result is False. None where wgpu-py has no such functions.
    """
    native = _native()
    if native is None:
        return None
    handle = commands._internal if isinstance(commands, wgpu.GPUCommandBuffer) else commands
    handles = native.new(native.handles_type, (handle,))
    calls = (functools.partial(native.submit, device.queue._internal, 1, handles), afterwards)
    run, queue = map(operator.call, calls), deque[object](maxlen=0)

    def submit() -> bool:
        native.capture(_CAPTURE)
        try:
            if not is_wanted():
                return False
            queue.extend(run)
        finally:
            native.raise_captured(_CAPTURE)
        return True

    return submit
