"""Whether this process can use a GPU: a fork of a process that used one cannot."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from ..errors import ForkError

# Those of the engines: wgpu, and Dawn.
_BACKENDS = ("wgpu.backends.wgpu_native", "wgpudawn.backends.dawn")
_used = False  # this library has looked for adapters, or has seen a device, in this process
_inherited = False  # the process was forked from one that had used the GPU


def note_gpu_use() -> None:
    """Record that from now on a fork of this process cannot use the GPU."""
    global _used
    _used = True


def check_process() -> None:
    """Raise if this process was forked from one that had used a GPU.

    A fork has none of the driver's threads, and inherits its locks as they were. On lavapipe, work submitted in a fork
    never runs: a wait for it hangs, and other waits return without an error.

    Raises
    ------
    ForkError
    """
    if _inherited:
        raise ForkError(
            "this process was forked from one that had used the GPU, and drivers do not work in a fork. Start workers "
            "with multiprocessing.get_context('spawn'), or fork before the parent first uses the GPU and make the "
            "device in the child"
        )


def inherited() -> bool:
    """Whether `check_process` would raise."""
    return _inherited


def _release_nothing(_self: object) -> None: ...


def release_nothing() -> None:
    """Never release an object of wgpu from now on.

    In a fork, whose objects are the parent's, the driver would wait for threads that no longer exist.
    """
    for backend in _BACKENDS:
        api = sys.modules.get(f"{backend}._api")
        for value in list(vars(api).values()) if api is not None else ():
            if isinstance(value, type) and "_release" in vars(value):
                value._release = _release_nothing


def _skip_exit_handlers() -> None:
    """Let this process end without the exit handlers of C that it has of its parent; Python's own still run.

    NVIDIA's driver (580) would free what the parent has on the GPU, so that the parent's next wait never ends. Mesa's
    OpenGL driver would wait for threads that no longer exist.
    """
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # neither musl nor macOS tells a handler the status
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)  # handlers run from the last to the first
        libc.__cxa_atexit(ctypes.cast(libc.fflush, ctypes.c_void_p), None, None)  # all of C's streams


def _instance_exists() -> bool:
    """Whether an engine was used in this process: its instance is made at the first search for adapters."""
    helpers = (sys.modules.get(f"{backend}._helpers") for backend in _BACKENDS)
    return any(getattr(module, "_the_instance", None) is not None for module in helpers)


def _after_fork_in_child() -> None:
    global _inherited
    if _inherited or _used or _instance_exists():
        _inherited = True
        release_nothing()
        _skip_exit_handlers()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
