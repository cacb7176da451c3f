"""The data that this library keeps for each device: one record, stored on the device object.

So devices share no data, devices made by other code work too, and the record is freed with its device. The runtime
stores its `DeviceContext` in it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Protocol

import wgpu

from .. import settings
from ..interrupts import keep_interrupts
from ..settings import ShaderChecks
from .activity import Activity
from .engine import Engine, engine_of
from .fork_guard import inherited
from .waits import Wait

#: The attribute of a device that has its record: what each call passes reads it without `state_of`.
STATE = "_gridwise"
_SUBMISSIONS_KEPT = 8
_LOOK_AGAIN_S = 0.0002


class Mapped(Protocol):
    """Holds a buffer mapped for a while."""

    def wait(self) -> None:
        """Return when it is unmapped."""
        ...


class DeviceEnd:
    """Replaces the method `destroy` of one device and records the call, without keeping the device alive.

    wgpu-py does not tell whether a device was destroyed. A submission to such a device ends the process, and a wait
    either returns at once or never.

    Attributes
    ----------
    lock : threading.RLock
        While it is held, no thread destroys the device through Python, and none submits.
    mapped : list of Mapped
        What holds buffers of Arrays mapped. Added with the lock held; whoever submits or destroys calls `wait_unmapped`
        first.
    reached : bool
        Whether the device was destroyed.
    afterwards : list of callable
        Called when the device has been destroyed.
    """

    __slots__ = ("_device", "_kept_for", "_memory", "_users", "afterwards", "lock", "mapped", "reached")

    def __init__(self, device: wgpu.GPUDevice):
        self._device = weakref.ref(device)
        self._memory = threading.Lock()
        self._users: list[int] = []  # the threads that touch mapped memory of the device, by number
        self._kept_for: weakref.WeakSet[Any] = weakref.WeakSet()
        self.lock: threading.RLock = threading.RLock()
        self.mapped: list[Mapped] = []
        self.reached: bool = False
        self.afterwards: list[Callable[[], object]] = []

    @contextlib.contextmanager
    def memory_in_use(self) -> Generator[bool]:
        """Touch mapped memory inside, which goes away with the device: `destroy` waits until nobody does.

        What is given says whether the device is still there. For threads that no interrupt reaches, and for what ends
        by itself; unlike `lock`, any number may hold it.
        """
        with self._memory:
            is_there = not self.reached
            self._users.append(threading.get_ident())
        try:
            yield is_there
        finally:
            with self._memory:
                self._users.remove(threading.get_ident())

    def wait_unmapped(self) -> None:
        """Return when no buffer of an Array is mapped; the lock is held, so that none is mapped from now on.

        wgpu-native ends the process when a mapped buffer is submitted, and frees the memory of one that is destroyed.
        """
        for one in tuple(self.mapped):
            one.wait()

    def keep_for(self, holder: object) -> None:
        """Let `destroy` leave the memory as it is while `holder` is alive: a caller may touch it.

        wgpu's device then goes when it is collected, which is after its holders.
        """
        self._kept_for.add(holder)

    def __call__(self) -> None:
        device = self._device()
        if device is None or inherited():  # the device belongs to the parent process, and so may the lock
            return
        try:
            submit_pending(device)
        finally:
            with self.lock:
                with self._memory:
                    self.reached = True
                self.wait_unmapped()
                # The garbage collector may run a finalizer that destroys the device in a thread that touches the
                # memory. The thread cannot wait for itself: as for holders, wgpu's device goes when it is collected.
                this_thread = threading.get_ident()
                # Asked for, since an interrupt of threading.Condition may leave its lock held.
                while any(user != this_thread for user in tuple(self._users)):
                    time.sleep(_LOOK_AGAIN_S)
                if not self._kept_for and this_thread not in self._users:
                    type(device).destroy(device)
            for call in self.afterwards:
                call()


class Recorder(Protocol):
    """Takes the calls of a thread, as `DeviceState.recorders` says."""

    def before_queue_use(self, doing: str) -> None:
        """Raise if the thread may not use the queue now."""
        ...


class DeviceState:
    """The record of one device; get it with `state_of`.

    Attributes
    ----------
    end : DeviceEnd
        Records when the device is destroyed, from the first `state_of` on.
    engine : Engine
        Which one the device is of.
    polled : callable
        The engine's: whether all that was submitted to the device is done, None if unknown.
    losses_seen : int
        The number of device losses that wgpu had logged when this device was last known to work.
    wait : tuple of str and callable, or None
        The name of a way to wait until the queue is idle, and what makes the call that blocks; None until the first
        wait.
    waits : list of Wait
        What helpers wait for now; also for threads that were interrupted meanwhile.
    compiled_ns : float
        When a call last had its pipelines compiled, by `time.perf_counter_ns`.
    is_cpu : bool or None
        Whether the adapter is a CPU; None until it matters.
    timed_calls : threading.RLock
        Held by a call whose CPU times are taken: one at a time, each from an idle queue on.
    uses : int
        How often the queue was used so far, as far as this library sees it: `queue_uses`.
    is_counted : bool
        Whether the submission that is made just now, with the lock of `end` held, was counted and noted.
    shader_checks : {"none", "bounds", "all"} or None
        The run-time checks of all shaders; None: each has those that it asks for.
    timeout_is_fixed : bool
        Whether `timeout_s` is set; if not, the environment variable counts.
    timeout_s : float or None
        The limit of a wait; None for none.
    activity : Activity
        When the GPU was last at work.
    submissions : deque of str
        The names of the last submissions, for messages.
    queue : dict
        The attributes of the queue's object, where what replaces a method of it lies.
    probe_layout : wgpu.GPUBindGroupLayout or None
        Made when a buffer is first tested for having been destroyed.
    one : wgpu.GPUBuffer or None
        A buffer with one word, 1; made when an encoder is first marked.
    context : object or None
        The runtime's `DeviceContext`.
    recorders : dict of int to weak reference to Recorder
        By the number of a thread, what takes its calls instead of the queue: a batch, or a capture. See `recorder`.
    pending : list
        The calls of batches, in order, that are not submitted yet; an entry goes when it is.
    flush : callable or None
        Submits them; set by the first batch of the device.
    """

    __slots__ = (
        "activity",
        "compiled_ns",
        "context",
        "end",
        "engine",
        "flush",
        "is_counted",
        "is_cpu",
        "losses_seen",
        "one",
        "pending",
        "polled",
        "probe_layout",
        "queue",
        "recorders",
        "shader_checks",
        "submissions",
        "timed_calls",
        "timeout_is_fixed",
        "timeout_s",
        "uses",
        "wait",
        "waits",
    )

    def __init__(self, device: wgpu.GPUDevice):
        self.engine: Engine = engine_of(device)
        self.polled: Callable[[wgpu.GPUDevice], bool | None] = self.engine.polled
        self.end: DeviceEnd = DeviceEnd(device)
        self.activity: Activity = Activity()
        self.losses_seen: int = 0
        self.compiled_ns: float = -math.inf
        self.wait: tuple[str, Callable[[wgpu.GPUDevice], Callable[[], object]]] | None = None
        self.waits: list[Wait] = []
        self.is_cpu: bool | None = None
        self.timed_calls: threading.RLock = threading.RLock()
        self.uses: int = 0
        self.is_counted: bool = False
        self.shader_checks: ShaderChecks | None = self.engine.checks_of_all(device, settings.shader_checks())
        self.timeout_is_fixed: bool = False
        self.timeout_s: float | None = None
        self.submissions: deque[str] = deque(maxlen=_SUBMISSIONS_KEPT)
        self.queue: dict[str, Any] = device.queue.__dict__
        self.probe_layout: wgpu.GPUBindGroupLayout | None = None
        self.one: wgpu.GPUBuffer | None = None
        self.context: Any = None
        self.recorders: dict[int, weakref.ref[Recorder]] = {}
        self.pending: list[Any] = []
        self.flush: Callable[[], None] | None = None


_known: weakref.WeakSet[wgpu.GPUDevice] = weakref.WeakSet()


def state_of(device: wgpu.GPUDevice) -> DeviceState:
    """Return the record of a device, making it at the first call."""
    state = device.__dict__.get(STATE)
    if state is None:
        keep_interrupts()
        state = device.__dict__.setdefault(STATE, DeviceState(device))
        device.destroy = state.end
        _known.add(device)
    return state


def queue_uses() -> dict[wgpu.GPUDevice, int]:
    """Return how often the queue of each device that this library knows was used so far, those that are gone left out.

    Counted are submissions and transfers: also submissions of a caller's own code, once `guard_queue` was called.
    """
    return {device: state_of(device).uses for device in tuple(_known) if not state_of(device).end.reached}


def submit_pending(device: wgpu.GPUDevice) -> None:
    """Submit what batches on a device hold back, so that what comes next is behind it."""
    state = state_of(device)
    if state.pending:
        assert state.flush is not None, "calls are held back by what has set it"
        state.flush()


def check_queue_use(device: wgpu.GPUDevice, doing: str) -> None:
    """Raise if the thread may not use the queue, because it captures its calls."""
    reference = state_of(device).recorders.get(threading.get_ident())
    recorder = None if reference is None else reference()
    if recorder is not None:
        recorder.before_queue_use(doing)


def before_queue_use(device: wgpu.GPUDevice, doing: str) -> None:
    """Do `check_queue_use`, and submit what batches hold back.

    Everything that submits, waits, or asks what the GPU has done calls this first. So nobody sees that calls are held
    back.
    """
    state = state_of(device)
    if state.recorders:
        check_queue_use(device, doing)
    if state.pending:
        submit_pending(device)
