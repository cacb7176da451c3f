"""Keep an NVIDIA GPU's clock high between calls, by an idle CUDA context.

Under Vulkan the driver lowers the clock of an NVIDIA GPU after milliseconds of idleness, unless a process holds a CUDA
primary context on it. The context comes from the driver's own library (libcuda), so no CUDA toolkit is needed; it ends
with the process at the latest.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..warn import warn
from .fork_guard import inherited

_NVIDIA = 0x10DE  # PCI vendor
_NAME_BYTES = 256
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


class ClockHold:
    """Holds a GPU's clock until `release`. CUDA counts: several holds of one GPU do not disturb each other."""

    def __init__(self, cuda: Any, gpu: int):
        self._cuda, self._gpu = cuda, gpu
        self._lock = threading.RLock()  # a finalizer may run in this thread at any point
        self._is_held = True

    def release(self) -> None:
        """Release the clock; further calls do nothing."""
        with self._lock:
            was_held, self._is_held = self._is_held, False
        if was_held and not inherited():  # a fork cannot use the CUDA context that it inherited
            # CUDA 11 renamed it.
            release = getattr(self._cuda, "cuDevicePrimaryCtxRelease_v2", None) or self._cuda.cuDevicePrimaryCtxRelease
            release(ctypes.c_int(self._gpu))


def hold(info: Mapping[str, Any], *, pci: Callable[[], str | None] | None = None) -> ClockHold | None:
    """Hold the clock of a GPU, if possible.

    Parameters
    ----------
    info : mapping
        The adapter's ``info``, of wgpu.
    pci : callable, optional
        Returns the PCI address of the GPU, or None; asked only where CUDA finds several GPUs that may be this one.

    Returns
    -------
    ClockHold or None
        None if the GPU is not NVIDIA's or CUDA finds no GPU. None and a GridwiseWarning if CUDA finds several GPUs that
        may be this one, or makes no context.
    """
    if not is_nvidia(info):
        return None
    cuda = _load()
    if cuda is None or cuda.cuInit(ctypes.c_uint(0)):
        return None
    same = _gpus(cuda, info)
    if not same:
        return None
    if len(same) > 1 and pci is not None:
        same = _with_address(cuda, same, pci()) or same
    if len(same) > 1:
        _warn(
            f"CUDA finds {len(same)} GPUs that may be {str(info['device'])!r}; set CUDA_VISIBLE_DEVICES to the one "
            f"that wgpu uses"
        )
        return None
    gpu, context = same[0], ctypes.c_void_p()
    error = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(gpu))
    if error:
        remedy = "; free some memory of the GPU" if error == _OUT_OF_MEMORY else ""
        _warn(f"cuDevicePrimaryCtxRetain failed with CUDA's error {error}{remedy}")
        return None
    return ClockHold(cuda, gpu)


def is_nvidia(info: Mapping[str, Any]) -> bool:
    """Whether an adapter is an NVIDIA GPU."""
    return info.get("vendor_id") == _NVIDIA or "nvidia" in f"{info['vendor']} {info['device']}".casefold()


def is_held(info: Mapping[str, Any], *, pci: str | None = None) -> bool:
    """Whether this process holds the clock of a GPU: by `hold`, or by CUDA code of its own, such as PyTorch.

    Loads nothing, and makes no context. Of several GPUs that may be the one, all have to be held, unless `pci` is the
    address of the one. What other processes hold is not known here.
    """
    if not is_nvidia(info):
        return False
    cuda = _loaded()
    if cuda is None:
        return False
    gpus = _gpus(cuda, info)  # none before cuInit
    if len(gpus) > 1:
        gpus = _with_address(cuda, gpus, pci) or gpus
    return bool(gpus) and all(_has_context(cuda, gpu) for gpu in gpus)


def _has_context(cuda: Any, gpu: int) -> bool:
    flags, is_active = ctypes.c_uint(), ctypes.c_int()
    error = cuda.cuDevicePrimaryCtxGetState(ctypes.c_int(gpu), ctypes.byref(flags), ctypes.byref(is_active))
    return not error and bool(is_active.value)


def _gpus(cuda: Any, info: Mapping[str, Any]) -> list[int]:
    """Return the GPUs of CUDA that an adapter may be."""
    names = _gpu_names(cuda)
    wanted = str(info["device"])
    same = [gpu for gpu, name in names.items() if name == wanted]
    # OpenGL adds words to the name.
    return same or [gpu for gpu, name in names.items() if name and wanted.startswith(f"{name}/")] or list(names)


def _with_address(cuda: Any, gpus: Sequence[int], pci: str | None) -> list[int]:
    """Return the GPU among some of CUDA's that has a PCI address; none if no one has."""
    gpu = ctypes.c_int()
    if pci is None or cuda.cuDeviceGetByPCIBusId(ctypes.byref(gpu), pci.encode()):
        return []
    return [gpu.value] if gpu.value in gpus else []


def _warn(reason: str) -> None:
    warn(f"the GPU's clock is not held: {reason}")


def _load() -> Any:
    """Return the CUDA library of NVIDIA's driver, or None."""
    try:
        if sys.platform == "win32":
            return ctypes.WinDLL("nvcuda.dll")
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _loaded() -> Any:
    """Return the CUDA library if this process has loaded it, else None."""
    try:
        if sys.platform == "win32":
            handle = ctypes.windll.kernel32.GetModuleHandleW("nvcuda.dll")
            return ctypes.WinDLL("nvcuda.dll") if handle else None
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (OSError, AttributeError):  # macOS, or a C library without the flag
        return None


def _gpu_names(cuda: Any) -> dict[int, str]:
    """Return the names of the GPUs that CUDA sees, by CUDA's handle."""
    count = ctypes.c_int()
    names: dict[int, str] = {}
    if cuda.cuDeviceGetCount(ctypes.byref(count)):
        return {}
    for ordinal in range(count.value):
        gpu, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
        if cuda.cuDeviceGet(ctypes.byref(gpu), ctypes.c_int(ordinal)):
            continue
        error = cuda.cuDeviceGetName(name, ctypes.c_int(_NAME_BYTES), gpu)
        names[gpu.value] = "" if error else name.value.decode(errors="replace")
    return names
