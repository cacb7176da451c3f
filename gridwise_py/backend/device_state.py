"""The data that this library keeps for each device: one record, stored on the device object.

So devices share no data, devices made by other code work too, and the record is freed with its device. The runtime
stores its `DeviceContext` in it.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import wgpu

from .activity import Activity
from .fork_guard import inherited

__all__ = ["DeviceEnd", "DeviceState", "state_of"]

_ATTRIBUTE = "_gridwise"
_SUBMISSIONS_KEPT = 8
_LOOK_AGAIN_S = 0.0002


class DeviceEnd:
    """Replaces the method `destroy` of one device and records the call, without keeping the device alive.

    wgpu-py does not tell whether a device was destroyed. A submission to such a device ends the process, and a wait
    either returns at once or never.

    Attributes
    ----------
    lock : threading.RLock
        While it is held, no thread destroys the device through Python.
    reached : bool
        Whether the device was destroyed.
    afterwards : list of callable
        Called when the device has been destroyed.
    """

    __slots__ = ("_device", "_memory", "_users", "afterwards", "lock", "reached")

    def __init__(self, device: wgpu.GPUDevice):
        self._device = weakref.ref(device)
        self._memory = threading.Lock()
        self._users = 0  # threads that touch mapped memory of the device
        self.lock: threading.RLock = threading.RLock()
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
            self._users += 1
        try:
            yield is_there
        finally:
            with self._memory:
                self._users -= 1

    def __call__(self) -> None:
        device = self._device()
        if device is not None and not inherited():  # the device belongs to the parent process, and so may the lock
            with self.lock:
                with self._memory:
                    self.reached = True
                while self._users:  # asked for, since an interrupt of threading.Condition may leave its lock held
                    time.sleep(_LOOK_AGAIN_S)
                type(device).destroy(device)
            for call in self.afterwards:
                call()


class DeviceState:
    """The record of one device; get it with `state_of`.

    Attributes
    ----------
    end : DeviceEnd
        Records when the device is destroyed, from the first `state_of` on.
    losses_seen : int
        The number of device losses that wgpu had logged when this device was last known to work.
    wait : tuple of str and callable, or None
        How to wait until the queue is idle, with the name of the method; None until the first wait.
    timeout_is_fixed : bool
        Whether `timeout_s` is set; if not, the environment variable counts.
    timeout_s : float or None
        The limit of a wait; None for none.
    activity : Activity
        When the GPU was last at work.
    submissions : deque of str
        The names of the last submissions, for messages.
    probe_layout : wgpu.GPUBindGroupLayout or None
        Made when a buffer is first tested for having been destroyed.
    one : wgpu.GPUBuffer or None
        A buffer with one word, 1; made when an encoder is first marked.
    context : object or None
        The runtime's `DeviceContext`.
    """

    __slots__ = (
        "activity",
        "context",
        "end",
        "losses_seen",
        "one",
        "probe_layout",
        "submissions",
        "timeout_is_fixed",
        "timeout_s",
        "wait",
    )

    def __init__(self, device: wgpu.GPUDevice):
        self.end: DeviceEnd = DeviceEnd(device)
        self.activity: Activity = Activity()
        self.losses_seen: int = 0
        self.wait: tuple[str, Callable[[], Any]] | None = None
        self.timeout_is_fixed: bool = False
        self.timeout_s: float | None = None
        self.submissions: deque[str] = deque(maxlen=_SUBMISSIONS_KEPT)
        self.probe_layout: wgpu.GPUBindGroupLayout | None = None
        self.one: wgpu.GPUBuffer | None = None
        self.context: Any = None


def state_of(device: wgpu.GPUDevice) -> DeviceState:
    """Return the record of a device, making it at the first call."""
    state = device.__dict__.get(_ATTRIBUTE)
    if state is None:
        state = device.__dict__.setdefault(_ATTRIBUTE, DeviceState(device))
        device.destroy = state.end
    return state
