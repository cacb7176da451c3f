"""Encode with the C functions below an engine's wrappers, with all C values made beforehand.

A wrapper makes a C structure, a Python object and an error capture for each call, which costs as much as the call
itself. A bound plan records the same commands each time, so its handles are looked up once, and one error capture
covers all of them. Where an engine has no `native_functions`, `raw_commands` returns None, and the public calls are
used.
"""

# The handles that wgpu-py keeps private are what this file is for.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
import functools
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import wgpu

from .device_state import state_of
from .engine import engine_of
from .native_functions import MARKER, Errors, NativeFunctions

#: Among steps, in the form that they have in `RawCommands`: the pass ends.
_NEW_PASS: tuple[tuple[Any, Any, int, int, int], int] = ((None, None, 0, 0, 0), 1)


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


def _transfer(native: NativeFunctions, encoder: Any, transfer: RawTransfer) -> None:
    """Encode a fill or a copy, outside of a pass."""
    source, destination = transfer.buffers()
    to = cast(Any, destination)._internal, transfer.destination_offset_bytes
    if source is None:
        native.clear(encoder, *to, transfer.size_bytes)
    else:
        native.copy(encoder, cast(Any, source)._internal, transfer.source_offset_bytes, *to, transfer.size_bytes)


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

    def __init__(self, native: NativeFunctions, device: wgpu.GPUDevice, steps: Sequence[RawDispatch | RawTransfer]):
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
        """Record on a caller's encoder; return False if it is not the engine's encoder."""
        return record_together(encoder, ((self, trials),))

    def encode(self, trials: int) -> Any:
        """Return a command buffer, which `submit` takes; see `encode_together`."""
        return encode_together(((self, trials),))

    def submit(self, commands: Any) -> None:
        """Submit a command buffer; the caller has checked that the device was not destroyed."""
        native = self._native
        handles = native.new(native.handles_type, (commands,))
        with native.errors():
            native.submit(self._queue, 1, handles)

    def run(self, trials: int) -> None:
        """Encode and submit, as `encode` and `submit` do, in less time."""
        native = self._native
        errors = native.errors()
        try:
            commands = self._encode(((self, trials),), errors)
            if commands is not None:
                try:
                    native.submit(self._queue, 1, native.new(native.handles_type, (commands,)))
                finally:
                    native.release_commands(commands)
        except BaseException:
            errors.__exit__(*sys.exc_info())
            raise
        errors.__exit__(None, None, None)

    def _encode(self, commands: Iterable[tuple[RawCommands, int]], errors: Errors, on: Any = None) -> Any:
        """Encode several, each dispatch as often as the number says. The passes have this one's label.

        They are recorded on an encoder; without one, the result is the handle of a command buffer, to be released, or
        None after an error.
        """
        native = self._native
        set_group, dispatch, null = native.set_group, native.dispatch, native.null
        compute = last_pipeline = last_group = finished = None
        encoder = native.create_encoder(self._device, null) if on is None else on
        if errors.message is not None:
            return None
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
                            _transfer(native, encoder, group)
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
                    for _ in range(trials):
                        dispatch(compute, x, y, z)
            ended, compute = compute, None
            if ended is not None:
                native.end_pass(ended)
                native.release_pass(ended)
            if on is None:
                finished = native.finish(encoder, null)
        finally:
            if compute is not None:
                native.release_pass(compute)
            if on is None:
                native.release_encoder(encoder)
        if finished is not None and errors.message is not None:
            native.release_commands(finished)
            return None
        return finished


def raw_commands(device: wgpu.GPUDevice, steps: Sequence[RawDispatch | RawTransfer]) -> RawCommands | None:
    """Return commands for dispatches, fills and copies, or None where the engine has no such functions."""
    native = state_of(device).engine.native_functions()
    if native is None or not steps:
        return None
    try:
        return RawCommands(native, device, steps)
    except AttributeError:
        return None


def check_open(encoder: wgpu.GPUCommandEncoder) -> None:
    """Raise wgpu.GPUError if an encoder is finished, or has an open pass: wgpu-py tells neither."""
    native = engine_of(encoder).native_functions()
    if native is None or type(encoder) is not native.encoder_type:
        encoder.insert_debug_marker(MARKER)
        return
    with native.errors():
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
    with native.errors() as errors:
        finished = first._encode(commands, errors)
    # A garbage-collected handle: an interrupt before the submission leaks nothing.
    return native.collected(finished, native.release_commands)


def record_together(encoder: wgpu.GPUCommandEncoder, commands: Sequence[tuple[RawCommands, int]]) -> bool:
    """Record several in one pass, each dispatch as often as the number says.

    Returns False if it is not the engine's encoder: then nothing was recorded.
    """
    first = commands[0][0]
    native = first._native
    if type(encoder) is not native.encoder_type:
        return False
    with native.errors() as errors:
        first._encode(commands, errors, encoder._internal)
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
    moment, nothing is done, and the result is False. None where the engine has no such functions.
    """
    native = state_of(device).engine.native_functions()
    if native is None:
        return None
    handle = commands._internal if isinstance(commands, wgpu.GPUCommandBuffer) else commands
    handles = native.new(native.handles_type, (handle,))
    calls = (functools.partial(native.submit, device.queue._internal, 1, handles), afterwards)
    run, queue = map(operator.call, calls), deque[object](maxlen=0)

    def submit() -> bool:
        with native.errors():
            if not is_wanted():
                return False
            queue.extend(run)
        return True

    return submit
