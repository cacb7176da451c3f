"""Submitting and waiting, with every engine: what the queue of a device is used for, and what must come before.

What is an engine's own, is in `engine` and in the modules that it names.
"""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, BufferUsageError, GridwiseError
from ..planning.shaders import shader_error
from ..settings import ShaderChecks
from ..warn import warn
from .device_errors import check_not_lost, device_error, device_errors, is_lost, is_trouble, lost_error
from .device_state import STATE, before_queue_use, check_queue_use, queue_uses, state_of, submit_pending
from .engine import engine_of
from .fork_guard import check_process, inherited, release_nothing
from .mapped_memory import Mode, staging_mapping
from .timeout import timed_out, timeout_s
from .waits import Wait, begin_in_thread

#: For this long a wait polls, as long as a short kernel runs; only then it is left to a helper, whose end costs some
#: 30 µs more. Between its polls it lets others have the CPU: a software adapter's kernels need it.
_POLLING_NS = 1_000_000
#: A first call on a CPU adapter that takes so long says why, where its wait began so soon after its compilation.
_SLOW_NS, _SOON_NS = 3_000_000_000, 1_000_000_000
TOLD_OF_COMPILING: list[str] = []  # once per process
_give_way: Callable[[], object] = getattr(os, "sched_yield", functools.partial(time.sleep, 0))


def _choose_wait(device: wgpu.GPUDevice) -> tuple[str, Callable[[wgpu.GPUDevice], Callable[[], object]]]:
    """Return the name of a way to wait, and what makes the call that blocks until the queue is idle.

    Such a call is made by a helper (`waits`). So it may be one that no interrupt ends.
    """
    state = state_of(device)
    own = state.engine.blocking_wait(device) if state.polled(device) is not None else None
    if own is not None:
        name, block = own
        return name, lambda device: block(device, lambda: state_of(device).end.reached)
    # An engine that is organised differently: its public call where it works.
    attempt = Wait(device.queue.on_submitted_work_done_sync)
    begin_in_thread(lambda: attempt.run([]))
    for _ in attempt.looks(None):
        pass
    if attempt.error is None:
        return "on_submitted_work_done", lambda device: device.queue.on_submitted_work_done_sync
    # It raises TypeError in wgpu-py 0.32.0 (#834), whose callback lacks an argument, and the others where there is no
    # such call. Nothing else: an error of the device, or of the calls that a batch held back, is for the caller.
    if not isinstance(attempt.error, (TypeError, AttributeError, NotImplementedError)):
        raise attempt.error
    return "read_buffer", lambda device: functools.partial(_read_a_word, device)


def _nothing_else() -> bool:
    return False


def _read_a_word(device: wgpu.GPUDevice) -> None:
    usage = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    device.queue.read_buffer(device.create_buffer(label="gridwise wait", size=4, usage=usage))


def wait_method(device: wgpu.GPUDevice) -> str:
    """Return how `wait_idle` waits.

    One of ``"device_poll"``, ``"on_submitted_work_done"``, and ``"read_buffer"``, which adds over 130 µs to each CPU
    wall.
    """
    return _wait(device)[0]


def wait_idle(device: wgpu.GPUDevice) -> int:
    """Wait until all work that was submitted to the device's queue is done.

    An interrupt ends the wait, and not the work.

    Returns
    -------
    int
        When it was done, by `time.perf_counter_ns`: up to 50 µs before this returns.

    Raises
    ------
    DeviceTimeoutError
        If a timeout is set for the device and passes first.
    DeviceLostError
        If the device was destroyed, or wgpu has logged that it was lost.
    """
    check_process()
    state = state_of(device)
    if state.recorders or state.pending:
        before_queue_use(device, "waiting for the GPU")
    begin_ns = perf_counter_ns()
    try:  # not device_errors(), which would add a microsecond to the times
        end_ns = _wait_until(device, _nothing_else)
    except (RuntimeError, AttributeError) as error:  # raised by wgpu-py if another thread destroys the device
        if isinstance(error, GridwiseError) or not is_lost(device):
            raise
        raise lost_error(str(error), "waiting for the GPU") from error
    state.activity.waited(begin_ns, end_ns)
    check_not_lost(device)
    return end_ns


def _wait(device: wgpu.GPUDevice) -> tuple[str, Callable[[wgpu.GPUDevice], Callable[[], object]]]:
    state = state_of(device)
    if state.wait is None:
        state.wait = _choose_wait(device)
    return state.wait


def _wait_until(device: wgpu.GPUDevice, is_enough: Callable[[], object]) -> int:
    """Wait until the queue is idle, or something else is true that a poll may bring about; return when it was so."""
    begin_ns = now_ns = perf_counter_ns()
    limit_s, state = timeout_s(device), state_of(device)
    until_ns = begin_ns + (_POLLING_NS if limit_s is None else min(_POLLING_NS, int(limit_s * 1e9)))
    while True:
        idle, now_ns = state.polled(device), perf_counter_ns()
        if idle or is_enough():
            return now_ns
        if idle is None or now_ns >= until_ns:
            break
        _give_way()
    block = _wait(device)[1]
    while True:
        # One that was left by an interrupt or a timeout, or is another thread's, serves as well: with each of its own,
        # a thread that waits again and again for a GPU that hangs would start helpers without end.
        others = [] if idle is None else [wait for wait in tuple(state.waits) if not wait.done]
        wait = others[0] if others else Wait(block(device))
        if not others:
            begin_in_thread(functools.partial(wait.run, state.waits))
        left_s = None if limit_s is None else limit_s - (perf_counter_ns() - begin_ns) / 1e9
        for _ in wait.looks(left_s):
            check_not_lost(device)  # whether the call ever returns then, drivers do not say
            if begin_ns - state.compiled_ns < _SOON_NS:  # some drivers compile when a kernel first runs
                tell_of_compiling(device, begin_ns)
            if is_enough():
                break
        if wait.error is not None and not others:
            raise wait.error
        idle, now_ns = (True if idle is None else state.polled(device)) if wait.done else False, perf_counter_ns()
        if idle or is_enough():
            return now_ns if others or wait.end_ns is None else wait.end_ns
        if limit_s is not None and (now_ns - begin_ns) / 1e9 >= limit_s:
            raise timed_out(device, limit_s)


@atexit.register
def _end_without_waiting() -> None:
    """Let the process end although a GPU is at work: wgpu waits, deaf to Ctrl-C, before it releases a device."""
    if not inherited() and any(state_of(device).polled(device) is False for device in queue_uses()):
        release_nothing()


def wait_in_turn(device: wgpu.GPUDevice) -> None:
    """Wait before a submission, or before a buffer is destroyed, where wgpu or the driver would do so.

    wgpu 29 submits nothing while a thread is inside of a poll that blocks. A software driver may run one submission at
    a time, and block in the next one (lavapipe, Mesa 22.3.6). No interrupt ends that.
    """
    state = device.__dict__[STATE]
    if state.is_cpu is None:
        state.is_cpu = device.adapter.info["adapter_type"] == "CPU"
    if state.is_cpu:
        if not state.polled(device):
            _wait_until(device, _nothing_else)
    elif state.waits:
        _wait_until(device, lambda: all(wait.done for wait in tuple(state.waits)))


def map_buffer(
    device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, mode: Mode, offset: int = 0, size: int | None = None
) -> None:
    """Map a buffer, after the work submitted before.

    Parameters
    ----------
    device : wgpu.GPUDevice
    buffer : wgpu.GPUBuffer
    mode : {"READ", "WRITE"}
    offset, size : int, optional
        In bytes: multiples of 8 and of 4.

    Raises
    ------
    DeviceTimeoutError
        As `wait_idle`. Then, and after an interrupt, the buffer is not to be used again: drop it.
    DeviceLostError
        If the device is destroyed before or meanwhile.
    """
    check_process()
    begin_ns = perf_counter_ns()
    with device_errors("reading from the GPU", device):
        size = buffer.size - offset if size is None else size
        mapping = staging_mapping(device, buffer, mode, offset, size)
        if mapping is not None:
            mapping.map_for_wgpu(lambda is_mapped: _wait_until(device, is_mapped))
        else:
            wait_idle(device)
            engine_of(device).map_idle(device, buffer, mode, offset, size)
    state_of(device).activity.waited(begin_ns, perf_counter_ns())


def memory_of_mapped(buffer: wgpu.GPUBuffer, size_bytes: int) -> np.ndarray | None:
    """Return the first bytes of a buffer that is mapped for writing, as an array on its memory.

    The public `write_mapped` copies by itself, in one thread that holds the GIL; it is what remains where this is None.
    Whoever touches the array after the buffer was unmapped, or is gone, ends the process.
    """
    mapped_range = getattr(buffer, "_experimental_get_mapped_range", None)
    return None if mapped_range is None else np.frombuffer(mapped_range(0, size_bytes), dtype=np.uint8)


def submit(
    device: wgpu.GPUDevice,
    commands: Sequence[wgpu.GPUCommandBuffer],
    what: str,
    *,
    is_transfer: bool = False,
) -> None:
    """Submit command buffers; `what` names them in messages. Transfers do not raise the GPU's clock."""
    submit_by(device, what, submit_counted, device, commands, is_transfer=is_transfer)


def submit_counted(device: wgpu.GPUDevice, commands: Sequence[wgpu.GPUCommandBuffer]) -> None:
    """Call the queue's `submit` for what is noted already; the guard of the queue would note it again."""
    state = state_of(device)
    try:
        state.is_counted = True
        device.queue.submit(commands)
    finally:
        state.is_counted = False


def submit_by(
    device: wgpu.GPUDevice, what: str, call: Callable[..., object], *arguments: object, is_transfer: bool = False
) -> None:
    """Call a function that submits, unless the device was destroyed; `what` names it in messages."""
    state = device.__dict__.get(STATE) or state_of(device)
    if state.recorders:
        check_queue_use(device, what)
    state.submissions.append(what)
    if not is_transfer:
        state.activity.submitted(perf_counter_ns(), state.polled, device)
    end = state.end
    with end.lock:
        if state.pending:  # asked for in here: another thread may be about to submit them
            submit_pending(device)
        if state.is_cpu is not False or state.waits:
            wait_in_turn(device)
        if end.mapped:
            end.wait_unmapped()
        if end.reached:  # wgpu would end the process
            check_not_lost(device, what)
        state.uses += 1
        call(*arguments)


def note_work(device: wgpu.GPUDevice) -> None:
    """Note that work for the GPU's cores is submitted now."""
    state = state_of(device)
    state.activity.submitted(perf_counter_ns(), state.polled, device)


def submit_is_wgpus(device: wgpu.GPUDevice) -> bool:
    """Whether the queue's `submit` is wgpu's own, not replaced by code that watches or counts submissions."""
    own = (device.__dict__.get(STATE) or state_of(device)).queue.get("submit")
    return own is None or _submits_itself(device.queue) or getattr(own, "of_gridwise", False)


def _submits_itself(queue: wgpu.GPUQueue) -> bool:
    """Whether the queue's `submit` is its class's: whoever had replaced it may have put that back on the queue."""
    own = queue.__dict__.get("submit")
    return own is None or getattr(own, "__func__", None) is type(queue).submit


def queue_is_idle(device: wgpu.GPUDevice) -> bool | None:
    """Whether all submitted work is done, without waiting; None if that is unknown.

    Raises
    ------
    DeviceLostError
        As `wait_idle`.
    """
    check_process()
    before_queue_use(device, "asking whether the queue is idle")
    check_not_lost(device)
    return state_of(device).polled(device)


def write_timestamp(
    encoder: wgpu.GPUCommandEncoder | wgpu.GPUComputePassEncoder, query_set: wgpu.GPUQuerySet, index: int
) -> None:
    """Write a timestamp at the current place of an encoder, or of an open pass.

    The device has ``timestamp-query-inside-encoders``, or ``timestamp-query-inside-passes``.
    """
    engine_of(encoder).write_timestamp(encoder, query_set, index)


def tick_period_ns(device: wgpu.GPUDevice) -> float:
    """Return the nanoseconds per tick of a timestamp."""
    return engine_of(device).tick_period_ns(device)


def tell_of_compiling(device: wgpu.GPUDevice, begin_ns: int) -> None:
    """Warn, once per process, that a CPU adapter has compiled for seconds."""
    if state_of(device).is_cpu and perf_counter_ns() - begin_ns > _SLOW_NS and not TOLD_OF_COMPILING:
        name = device.adapter.info["device"]
        TOLD_OF_COMPILING.append(name)
        warn(
            f"this first call takes seconds, in which {name} compiles; later ones compile nothing. gw.warm_up() "
            f"compiles ahead and side by side what a program calls, and many drivers keep that for the next process"
        )


def create_shader_module(
    device: wgpu.GPUDevice, *, label: str, code: str, checks: ShaderChecks
) -> wgpu.GPUShaderModule:
    """Compile WGSL with some run-time checks.

    Raises
    ------
    ShaderError
        With the compiler's message.
    """
    try:
        return engine_of(device).create_module(device, label, code, checks)
    except (wgpu.GPUError, ValueError) as error:  # ValueError: wgpu-py takes the text for GLSL
        if is_trouble(error):
            raise device_error(error, f"compiling {label!r}") from error
        raise shader_error(f"shader {label!r} does not compile", code, str(error)) from error


def device_of(thing: wgpu.GPUBuffer | wgpu.GPUCommandEncoder | wgpu.GPUQueue) -> wgpu.GPUDevice | None:
    """Return the device of a buffer, an encoder or a queue, or None if it is unknown."""
    return getattr(thing, "_device", None)


class _Destructions:
    """How many buffers were destroyed so far: a call whose buffers were there at this number can still use them."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: int = 0

    def note(self, flag: list[bool]) -> None:
        """Note the end of a buffer; the flag first, for whoever has seen the number already."""
        flag[0] = True
        self.count += 1


DESTRUCTIONS = _Destructions()


def destroyed_flag(buffer: wgpu.GPUBuffer, *, fresh: bool = False) -> list[bool]:
    """Return a list whose only item tells whether `destroy` was called on a buffer.

    wgpu-py does not tell, and submitting a destroyed buffer aborts the process (wgpu-native 29). So the first call
    replaces the buffer's `destroy` by one that records the call. Whether the buffer was destroyed before, it finds out
    by trying to bind it, which only a buffer with the usage STORAGE allows.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
    fresh : bool, default False
        The buffer is new: skip the test.
    """
    flag = buffer.__dict__.get("_gridwise_destroyed")
    if flag is None:
        flag = buffer.__dict__["_gridwise_destroyed"] = [not fresh and not _can_be_bound(buffer)]
        buffer.destroy = _NotingDestroy(buffer, flag)
        if buffer.usage & (wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE):
            _after_pending(buffer, "map_async", "buffer.map_async()")
    return flag


def _can_be_bound(buffer: wgpu.GPUBuffer) -> bool:
    device = device_of(buffer)
    if device is None or not buffer.usage & wgpu.BufferUsage.STORAGE or buffer.size < 4:
        return True  # nothing can be found out
    check_not_lost(device, "looking at a buffer")  # of Dawn, which goes on as if it were not
    state = state_of(device)
    if state.probe_layout is None:
        entry = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "read-only-storage"}}
        with device_errors("looking at a buffer"):
            state.probe_layout = device.create_bind_group_layout(entries=[entry])
    try:
        device.create_bind_group(
            layout=state.probe_layout,
            entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 4}}],
        )
    except wgpu.GPUError as error:
        if is_trouble(error):
            raise device_error(error, "looking at a buffer") from error
        return False
    return True


class _NotingDestroy:
    """Replaces the method `destroy` of one buffer and records the call, without keeping the buffer alive."""

    def __init__(self, buffer: wgpu.GPUBuffer, flag: list[bool]):
        self._buffer = weakref.ref(buffer)
        self._flag = flag

    def __call__(self) -> None:
        buffer = self._buffer()
        if buffer is None or inherited():  # the memory belongs to the parent process
            DESTRUCTIONS.note(self._flag)
            return
        device = device_of(buffer)
        if device is None:
            DESTRUCTIONS.note(self._flag)
            type(buffer).destroy(buffer)
            return
        end = state_of(device).end
        with end.lock:  # nobody maps it meanwhile
            try:
                submit_pending(device)  # calls of a batch that use it were made before, and find it as it is
            finally:
                DESTRUCTIONS.note(self._flag)
                end.wait_unmapped()
                wait_in_turn(device)
                type(buffer).destroy(buffer)


class EncoderFate:
    """Whether the commands recorded on an encoder can still be submitted.

    They can while the encoder, or the command buffer that it was finished into, is alive, and no buffer that they use
    was destroyed. wgpu-py has no link from an encoder to its command buffer, so a replaced `finish` records it.
    """

    def __init__(self, encoder: wgpu.GPUCommandEncoder):
        self._needed: dict[int, tuple[tuple[list[bool], str], ...]] = {}
        self._kept: dict[int, tuple[object, ...]] = {}
        self._encoder = weakref.ref(encoder)
        self._commands: weakref.ref[wgpu.GPUCommandBuffer] | None = None
        finish = type(encoder).finish

        def noting_finish(*args: Any, **kwargs: Any) -> wgpu.GPUCommandBuffer:
            target = self._encoder()
            assert target is not None
            self.check_buffers()  # wgpu-core 29 ends the process where a pass needs a barrier for a destroyed buffer
            commands = finish(target, *args, **kwargs)
            self._commands = weakref.ref(commands)
            commands.__dict__["_gridwise_fate"] = self
            return commands

        encoder.finish = noting_finish

    def can_be_submitted(self) -> bool:
        """Whether the commands could still be submitted."""
        if self._commands is not None:
            return self._commands() is not None
        return self._encoder() is not None

    def needs(self, buffers: tuple[tuple[list[bool], str], ...], leases: tuple[object, ...] = ()) -> None:
        """Record which buffers the commands use: the `destroyed_flag` of each, and its name in messages.

        What keeps their memory from being reused, `leases`, is kept until the commands are submitted.
        """
        self._needed[id(buffers)] = buffers
        self._kept[id(leases)] = leases

    def submitted(self) -> None:
        """Let the memory be reused: later work comes after the commands in the queue."""
        self._kept.clear()

    def check_buffers(self) -> None:
        """Raise BufferUsageError if a buffer that is needed was destroyed."""
        for destroyed, what in (buffer for buffers in self._needed.values() for buffer in buffers):
            if destroyed[0]:
                raise BufferUsageError(
                    f"the buffer of {what} was destroyed after it was recorded on an encoder; record again with an "
                    f"Array that lives until the submission. Nothing was submitted"
                )


def guard_queue(device: wgpu.GPUDevice) -> None:
    """Refuse those of a caller's own submissions for which wgpu would end the process.

    These are commands of this library whose buffers were destroyed since, commands that were submitted before, and
    submissions to a destroyed device.
    """
    if not _submits_itself(device.queue):
        return
    queue, owner = weakref.ref(device.queue), weakref.ref(device)

    def guarded_submit(command_buffers: Sequence[wgpu.GPUCommandBuffer]) -> None:
        target, of_device = queue(), owner()
        assert target is not None
        assert of_device is not None, "a queue outlived its device"
        commands = list(command_buffers)
        for command in commands:
            fate = command.__dict__.get("_gridwise_fate")
            if fate is not None:
                fate.check_buffers()
            if "_gridwise_submitted" in command.__dict__:
                raise ArgumentError(
                    "a command buffer is submitted once: this one was submitted before; record and finish again"
                )
        before_queue_use(of_device, "queue.submit()")
        end = state_of(of_device).end
        with end.lock:
            submit_pending(of_device)
            wait_in_turn(of_device)
            if end.mapped:
                end.wait_unmapped()
            if end.reached:
                check_not_lost(of_device, "queue.submit()")
            if not state_of(of_device).is_counted:
                note_work(of_device)
                state_of(of_device).uses += 1
            type(target).submit(target, commands)
        for command in commands:
            command.__dict__["_gridwise_submitted"] = True
            fate = command.__dict__.get("_gridwise_fate")
            if fate is not None:
                fate.submitted()

    guarded_submit.__dict__.update(of_gridwise=True, after_pending=True)
    device.queue.submit = guarded_submit


# `read_buffer` and `read_texture` call `submit`, and the other wait `on_submitted_work_done_async`. No call of a batch
# uses a texture.
_USES_OF_THE_QUEUE = ("submit", "write_buffer", "on_submitted_work_done_async")


def guard_order(device: wgpu.GPUDevice) -> None:
    """Have what a caller does with the queue come after the calls that batches hold back by then."""
    guard_queue(device)
    for name in _USES_OF_THE_QUEUE:
        _after_pending(device.queue, name, f"queue.{name}()")


def _after_pending(thing: Any, name: str, doing: str) -> None:
    """Replace a method of a queue or a buffer by one that first calls `before_queue_use`, and then does the same."""
    own, public = thing.__dict__.get(name), getattr(cast(Any, type(thing)), name)
    if getattr(own, "after_pending", False):
        return
    reference = weakref.ref(thing)

    @functools.wraps(own or public)
    def in_order(*args: Any, **kwargs: Any) -> Any:
        target = reference()
        assert target is not None
        device = device_of(target)
        if device is not None:
            before_queue_use(device, doing)
        return own(*args, **kwargs) if own is not None else public(target, *args, **kwargs)

    in_order.__dict__["after_pending"] = True
    setattr(thing, name, in_order)


def encoder_fate(encoder: wgpu.GPUCommandEncoder) -> EncoderFate:
    """Return the `EncoderFate` of an encoder; each encoder has one."""
    fate = encoder.__dict__.get("_gridwise_fate")
    if fate is None:
        fate = encoder.__dict__["_gridwise_fate"] = EncoderFate(encoder)
    return fate
