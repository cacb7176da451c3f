"""Interrupts that arrive where nothing can be raised: in callbacks of C, and while objects are freed."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time

_AGAIN_S = 0.01


def keep_interrupts() -> None:
    """Repeat an interrupt that came where nothing can be raised, of which Python prints that it ignores it.

    Each call into an engine may run its callbacks, and drop its objects, which Python code frees. So this is for the
    whole process, from its first device on.
    """
    before = sys.unraisablehook
    if hasattr(before, "keeps_interrupts"):
        return

    is_running = False

    def hook(unraisable: sys.UnraisableHookArgs, /) -> None:
        nonlocal is_running
        if not issubclass(unraisable.exc_type, KeyboardInterrupt) or sys.is_finalizing():
            before(unraisable)
            return
        is_running = True  # nor can anything be raised in here
        try:
            number = getattr(unraisable.exc_type, "number", signal.SIGINT)
            threading.Thread(target=repeat, args=(number,), daemon=True).start()
        finally:
            is_running = False

    def repeat(number: signal.Signals) -> None:
        time.sleep(_AGAIN_S)
        while is_running:
            time.sleep(_AGAIN_S)
        _interrupt(number)

    hook.__dict__["keeps_interrupts"] = True
    sys.unraisablehook = hook


def _interrupt(number: signal.Signals) -> None:
    """Interrupt the main thread, also where it waits."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:  # Windows
        _thread.interrupt_main(number)
