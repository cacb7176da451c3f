"""Interrupts that arrive where nothing can be raised: in callbacks of C, and while objects are freed."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time

__all__ = ["keep_interrupts"]

_AGAIN_S = 0.01


def keep_interrupts() -> None:
    """Repeat an interrupt that came where nothing can be raised, of which Python prints that it ignores it.

    Each call into an engine may run its callbacks, and drop its objects, which Python code frees. So this is for the
    whole process, from its first device on.
    """
    before = sys.unraisablehook
    if hasattr(before, "keeps_interrupts"):
        return

    def hook(unraisable: sys.UnraisableHookArgs, /) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt) or sys.is_finalizing():
            before(unraisable)
            return
        number = getattr(unraisable.exc_type, "number", signal.SIGINT)
        threading.Thread(target=repeat, args=(number,), daemon=True).start()

    def repeat(number: signal.Signals) -> None:
        time.sleep(_AGAIN_S)
        while _is_running(hook.__code__):  # nor can anything be raised there
            time.sleep(_AGAIN_S)
        _interrupt(number)

    hook.__dict__["keeps_interrupts"] = True
    sys.unraisablehook = hook


def _is_running(code: object) -> bool:
    """Whether the main thread is inside of some code."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _interrupt(number: signal.Signals) -> None:
    """Interrupt the main thread, also where it waits."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:  # Windows
        _thread.interrupt_main(number)
