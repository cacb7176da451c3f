"""Which of several equal GPUs a device is: the one whose used memory follows what the device holds.

wgpu names a GPU by its model and says no PCI address, so on a host with several GPUs of one model nothing else tells
which of them a device is. Drivers report the memory that is in use on each GPU, by its address. The probe holds memory
of an odd size and looks which GPU's use rose by that size. Other processes take and free memory at any time, so one
match proves nothing: the same GPU has to be the only one that matches in two rounds, each with a size that no one can
foresee. Otherwise the device stays unknown, and nothing is read from any of the GPUs.

The probe holds at most 1 GiB for some milliseconds, once per device, and only where several GPUs have one name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager

import wgpu

from ..backend.device_errors import device_errors
from ..backend.observers import Gpu, gpus_like
from ..backend.queues import submit, wait_idle
from ..errors import DeviceError
from .context import context_of

_KEY = "the GPU of the device"
_MIB = 1 << 20
_ROUNDS = 5
_MATCHES = 2
#: Larger than the blocks that allocators share out, so that the driver is asked for each. Each round holds more than
#: the one before: memory that a round freed, and an allocator kept, is too small for the next.
_LEAST_BYTES, _STEP_BYTES = 288 * _MIB, 128 * _MIB
#: Drivers hand out whole pages, of 2 MiB, and keep some for themselves.
_TOLERANCE_BYTES = 6 * _MIB


def gpu_of(device: wgpu.GPUDevice, *, may_hold: bool = True) -> Gpu | None:
    """Return the GPU of a device as its driver knows it; None if that is not certain.

    Where several GPUs have one name, the first call holds memory of the GPU for some milliseconds, and waits for it, so
    it has no place in timed work. With ``may_hold=False`` it does not, and only an earlier call's finding is returned.
    """
    context = context_of(device)
    gpus = context.cached("the GPUs that the device may be", lambda: gpus_like(device.adapter.info))
    if len(gpus) < 2:
        return gpus[0] if gpus else None
    return context.cached(_KEY, lambda: _find(device, gpus)) if may_hold else context.known(_KEY)


def known_gpu_of(device: wgpu.GPUDevice) -> Gpu | None:
    """Return what the probe found before; None where it did not run. Asks no driver."""
    return context_of(device).known(_KEY)


def pci_of(device: wgpu.GPUDevice) -> str | None:
    """Return the PCI address of a device's GPU, such as ``"0000:1b:00.0"``; None if it is not certain; see `gpu_of`."""
    gpu = gpu_of(device)
    return None if gpu is None else gpu.pci


def _find(device: wgpu.GPUDevice, gpus: Sequence[Gpu]) -> Gpu | None:
    most_bytes = int(device.limits["max-buffer-size"])
    found = find_by_memory([gpu.used_bytes for gpu in gpus], lambda size: _held(device, size), most_bytes)
    return None if found is None else gpus[found]


def find_by_memory(
    used: Sequence[Callable[[], int | None]],
    hold: Callable[[int], AbstractContextManager[bool]],
    most_bytes: int,
    seed: int | None = None,
) -> int | None:
    """Return the index of the GPU whose used memory follows what is held; None if that is not certain.

    Parameters
    ----------
    used : sequence of callables
        The bytes in use on each GPU now, by all processes; None where its driver does not tell.
    hold : callable
        Returns a context that holds so many bytes of the GPU that is looked for. It yields whether it holds them.
    most_bytes : int
        That can be held.
    seed : int, optional
        For tests. By default the sizes cannot be foreseen: other processes may be looking at this moment, too.
    """
    sizes = random.Random(seed)
    matched: list[int] = []
    for number in range(_ROUNDS):
        size = _LEAST_BYTES + number * _STEP_BYTES + sizes.randrange(_STEP_BYTES // _MIB - 8) * _MIB
        if size > most_bytes:
            return None
        before = [look() for look in used]
        with hold(size) as is_held:
            if not is_held:
                return None
            after = [look() for look in used]
        rises = [None if a is None or b is None else a - b for b, a in zip(before, after, strict=True)]
        if None in rises:
            return None
        same = [i for i, rise in enumerate(rises) if rise is not None and 0 <= rise - size <= _TOLERANCE_BYTES]
        if len(same) != 1:
            continue  # somebody else took memory at the same time
        matched.append(same[0])
        if len(set(matched)) > 1:
            return None
        if len(matched) == _MATCHES:
            return same[0]
    return None


@contextmanager
def _held(device: wgpu.GPUDevice, size_bytes: int) -> Generator[bool]:
    """Hold memory of a device's GPU; yield whether it does."""
    buffer = None
    try:
        with device_errors("finding out which GPU the device is", device):
            usage = wgpu.BufferUsage.COPY_DST
            buffer = device.create_buffer(label="gridwise which GPU", size=size_bytes, usage=usage)
            encoder = device.create_command_encoder(label="gridwise which GPU")
            encoder.clear_buffer(buffer)  # or a driver may put off the allocation
            submit(device, [encoder.finish()], "finding out which GPU the device is")
            wait_idle(device)
    except DeviceError:
        yield False
    else:
        yield True
    if buffer is not None:  # after an exception inside it goes with this frame, without a wait
        buffer.destroy()
        wait_idle(device)
