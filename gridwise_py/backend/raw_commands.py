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
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import wgpu

from .device_state import state_of
from .internals import made_of_internals

_MARKER = "gridwise"
#: Among steps, in the form that they have in `RawCommands`: the pass ends.
_NEW_PASS: tuple[tuple[Any, Any, int, int, int], int] = ((None, None, 0, 0, 0), 1)

__all__ = [
    "RawCommands",
    "RawDispatch",
    "RawTransfer",
    "check_open",
    "encode_together",
    "prepared_submission",
    "raw_commands",
    "record_together",
    "reordered",
]


class RawDispatch(NamedTuple):
    """A dispatch on wgpu-py's objects."""

    label: str
    pipeline: wgpu.GPUComputePipeline
    group: wgpu.GPUBindGroup
    workgroups: tuple[int, int, int]


class RawTransfer(NamedTuple):
    """A fill with zeros (no source) or a copy, on wgpu-py's objects."""

    # Weak, as in a bind group: a cached plan must not keep the caller's buffers.
    source: weakref.ref[wgpu.GPUBuffer] | None
    source_offset_bytes: int
    destination: weakref.ref[wgpu.GPUBuffer]
    destination_offset_bytes: int
    size_bytes: int

    def buffers(self) -> tuple[wgpu.GPUBuffer | None, wgpu.GPUBuffer]:
        """Return its source, if it has one, and its destination."""
        source, destination = None if self.source is None else self.source(), self.destination()
        assert destination is not None, "the caller holds the arguments of a call while it is encoded"
        assert (source is None) == (self.source is None), "the caller holds the arguments of a call"
        return source, destination


class _Errors:
    """Catches the errors of C functions in a ``with`` block, and raises the last one at its end.

    It takes the place of a slot of wgpu-py's error handler, which sets `type` and `message`. So the block itself can
    ask whether there was an error, and one capture covers all commands of a submission.
    """

    __slots__ = ("_native", "_slots", "message", "name", "type")

    def __init__(self, native: _Native):
        self._native = native
        try:
            self._slots = native.of_thread.stack
        except AttributeError:  # the first time in this thread
            self._slots = native.slots()
        self.name: str = "gridwise commands"
        self.type: str = ""
        self.message: str | None = None

    def __enter__(self) -> _Errors:
        self._slots.append(self)
        return self

    def __exit__(self, kind: object, _error: object, _traceback: object) -> None:
        slots = self._slots
        while slots and slots.pop() is not self:
            pass  # left by an interrupt in wgpu-py
        if self.message is not None and kind is None:
            raise self._native.error_types.get(self.type, wgpu.GPUError)(self.message)


class _Native:
    """The C functions, and what turns their errors into exceptions."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import _api, _helpers, ffi, lib

        self.null, self.collected = ffi.NULL, ffi.gc
        backend: Any = cast(Any, ffi)._backend
        self.new = backend.newp  # what `ffi.new` calls for a type that is no text
        self.handles_type = ffi.typeof("WGPUCommandBuffer[1]")
        self.encoder_type = _api.GPUCommandEncoder
        self.new_struct_p, self.to_c_string_view = _api.new_struct_p, _api.to_c_string_view
        handler = cast(Any, _api.error_handler)
        self.of_thread: Any = handler._per_thread_data
        self.slots: Callable[[], deque[Any]] = handler._get_proxy_stack
        self.error_types = _helpers.ERROR_TYPES
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
        self.marker = self.to_c_string_view(_MARKER)
        self.release_encoder = lib.wgpuCommandEncoderRelease
        self.submit = lib.wgpuQueueSubmit
        self.release_commands = lib.wgpuCommandBufferRelease

    def transfer(self, encoder: Any, transfer: RawTransfer) -> None:
        """Encode a fill or a copy, outside of a pass."""
        source, destination = transfer.buffers()
        to = destination._internal, transfer.destination_offset_bytes
        if source is None:
            self.clear(encoder, *to, transfer.size_bytes)
        else:
            self.copy(encoder, source._internal, transfer.source_offset_bytes, *to, transfer.size_bytes)


@functools.lru_cache(maxsize=1)
def _native() -> _Native | None:
    return made_of_internals(_Native)


class RawCommands:
    """Dispatches, fills and copies, ready to be encoded any number of times, by any thread.

    Neighbouring dispatches share a pass: wgpu orders what is in one.

    Parameters
    ----------
    native : object
        The C functions.
    device : wgpu.GPUDevice
    steps : sequence of RawDispatch or RawTransfer
    """

    __slots__ = ("_descriptor", "_device", "_kept", "_label", "_native", "_queue", "_steps")

    def __init__(self, native: Any, device: wgpu.GPUDevice, steps: Sequence[RawDispatch | RawTransfer]):
        self._native = native
        # Holds the handles only: the device holds this object through its executor.
        self._device, self._queue = device._internal, device.queue._internal
        self._kept = steps  # keeps the objects alive, and so their handles valid
        # Of a dispatch pipeline, bind group and workgroups; of a transfer None and itself; two None: another pass.
        self._steps: list[tuple[Any, Any, int, int, int]] = [
            (None, step, 0, 0, 0)
            if isinstance(step, RawTransfer)
            else (step.pipeline._internal, step.group._internal, *step.workgroups)
            for step in steps
        ]
        label = next((step.label for step in steps if isinstance(step, RawDispatch)), "")
        self._label = native.to_c_string_view(label)
        self._descriptor = native.new_struct_p("WGPUComputePassDescriptor *", label=self._label)

    def record(self, encoder: wgpu.GPUCommandEncoder, trials: int) -> bool:
        """Record on a caller's encoder; return False if it is not an encoder of wgpu-native."""
        return record_together(encoder, ((self, trials),))

    def encode(self, trials: int) -> Any:
        """Return a command buffer, which `submit` takes; see `encode_together`."""
        return encode_together(((self, trials),))

    def submit(self, commands: Any) -> None:
        """Submit a command buffer; the caller has checked that the device was not destroyed."""
        native = self._native
        handles = native.new(native.handles_type, (commands,))
        with _Errors(native):
            native.submit(self._queue, 1, handles)

    def run(self, trials: int) -> None:
        """Encode and submit, as `encode` and `submit` do, in less time."""
        native = self._native
        with _Errors(native) as errors:
            commands = self._commands(((self, trials),), errors)
            if commands is not None:
                try:
                    native.submit(self._queue, 1, native.new(native.handles_type, (commands,)))
                finally:
                    native.release_commands(commands)

    def _commands(self, commands: Iterable[tuple[RawCommands, int]], errors: _Errors) -> Any:
        """Return the handle of a command buffer, to be released, or None after an error."""
        native = self._native
        encoder = native.create_encoder(self._device, native.null)
        if errors.message is not None:
            return None
        try:
            self._encode_on(encoder, commands)
            finished = native.finish(encoder, native.null)
        finally:
            native.release_encoder(encoder)
        if errors.message is not None:
            native.release_commands(finished)
            return None
        return finished

    def _encode_on(self, encoder: Any, commands: Iterable[tuple[RawCommands, int]]) -> None:
        """Encode several, each dispatch as often as the number says. The passes have this one's label."""
        native = self._native
        set_group, dispatch, null = native.set_group, native.dispatch, native.null
        compute = last_pipeline = last_group = None
        try:
            for one, trials in commands:
                for pipeline, group, x, y, z in one._steps:
                    if pipeline is None:
                        # No longer in `compute` when it is released, where an interrupt might release it again.
                        ended, compute = compute, None
                        if ended is not None:
                            native.end_pass(ended)
                            native.release_pass(ended)
                        if group is not None:
                            native.transfer(encoder, group)
                        continue
                    if compute is None:
                        compute = native.begin_pass(encoder, self._descriptor)
                        last_pipeline = last_group = None
                    if pipeline is not last_pipeline:
                        native.set_pipeline(compute, pipeline)
                        set_group(compute, 0, group, 0, null)
                        last_pipeline, last_group = pipeline, group
                    elif group is not last_group:
                        set_group(compute, 0, group, 0, null)
                        last_group = group
                    if trials == 1:
                        dispatch(compute, x, y, z)
                        continue
                    for _ in range(trials):
                        dispatch(compute, x, y, z)
            if compute is not None:
                native.end_pass(compute)
        finally:
            if compute is not None:
                native.release_pass(compute)


def raw_commands(device: wgpu.GPUDevice, steps: Sequence[RawDispatch | RawTransfer]) -> RawCommands | None:
    """Return commands for dispatches, fills and copies, or None where wgpu-py has no such functions."""
    native = _native() if state_of(device).engine.HAS_FAST_PATHS else None
    if native is None or not steps:
        return None
    try:
        return RawCommands(native, device, steps)
    except AttributeError:
        return None


def check_open(encoder: wgpu.GPUCommandEncoder) -> None:
    """Raise wgpu.GPUError if an encoder is finished, or has an open pass: wgpu-py tells neither."""
    native = _native()
    if native is None or type(encoder) is not native.encoder_type:
        encoder.insert_debug_marker(_MARKER)
        return
    with _Errors(native):
        native.insert_marker(encoder._internal, native.marker)


def reordered(commands: Sequence[tuple[RawCommands, int]], order: Iterable[int | None]) -> RawCommands:
    """Return several as one.

    Parameters
    ----------
    commands : sequence of tuple of RawCommands and int
        At least one, and how often each dispatch is encoded.
    order : iterable of int or None
        Numbers of the steps of all, and None where another pass begins.
    """
    result = copy.copy(commands[0][0])
    result._kept = [step for one, _ in commands for step in one._kept]
    steps = [(step, trials) for one, trials in commands for step in one._steps]
    result._steps = []
    for i in order:
        step, trials = _NEW_PASS if i is None else steps[i]
        result._steps += [step] * (trials if step[0] is not None else 1)
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
    with _Errors(native) as errors:
        finished = first._commands(commands, errors)
    # A garbage-collected handle: an interrupt before the submission leaks nothing.
    return native.collected(finished, native.release_commands)


def record_together(encoder: wgpu.GPUCommandEncoder, commands: Sequence[tuple[RawCommands, int]]) -> bool:
    """Record several in one pass, each dispatch as often as the number says.

    Returns False if it is not an encoder of wgpu-native: then nothing was recorded.
    """
    first = commands[0][0]
    native = first._native
    if type(encoder) is not native.encoder_type:
        return False
    with _Errors(native):
        first._encode_on(encoder._internal, commands)
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
    native = _native() if state_of(device).engine.HAS_FAST_PATHS else None
    if native is None:
        return None
    handle = commands._internal if isinstance(commands, wgpu.GPUCommandBuffer) else commands
    handles = native.new(native.handles_type, (handle,))
    calls = (functools.partial(native.submit, device.queue._internal, 1, handles), afterwards)
    run, queue = map(operator.call, calls), deque[object](maxlen=0)

    def submit() -> bool:
        with _Errors(native):
            if not is_wanted():
                return False
            queue.extend(run)
        return True

    return submit
