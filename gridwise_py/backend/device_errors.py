"""Turns errors of wgpu about a device, raised or only logged, into exceptions of this library."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Generator

import wgpu

from ..errors import BufferUsageError, DeviceError, DeviceLostError, DeviceMemoryError, GridwiseError
from .device_state import state_of
from .engine import Engine

# wgpu 0.32 raises a GPUValidationError for each of them; only the text tells.
_LOST = ("device is lost", "device lost", "] is lost")  # the last by Dawn
_NO_MEMORY = ("not enough memory", "out of memory")


def is_trouble(error: Exception) -> bool:
    """Whether an error of wgpu is about the state of the device, not about the call."""
    return lacks_memory(error) or any(words in str(error).casefold() for words in _LOST)


def lacks_memory(error: Exception) -> bool:
    """Whether an error of wgpu says that the device is out of memory."""
    return isinstance(error, wgpu.GPUOutOfMemoryError) or any(words in str(error).casefold() for words in _NO_MEMORY)


def device_error(error: Exception, doing: str) -> GridwiseError:
    """Return the exception for an error of wgpu.

    Parameters
    ----------
    error : wgpu.GPUError
    doing : str
        What failed, for the message.
    """
    text = " ".join(str(error).split())
    if any(words in text.casefold() for words in _LOST):
        return lost_error(text, doing)
    if is_trouble(error):
        return DeviceMemoryError(
            f"{doing}: the device has no memory for it ({text}). Nothing was changed; drop Arrays that are not needed "
            f"(or call destroy() on them), work on parts (gw.stream), or take an adapter with more memory"
        )
    if "while destroyed" in text:  # Dawn notices at the submission
        return BufferUsageError(f"{doing}: a buffer was destroyed before ({text}); make the Array anew")
    return DeviceError(f"{doing}: {text}")


@contextlib.contextmanager
def device_errors(doing: str, device: wgpu.GPUDevice | None = None) -> Generator[None]:
    """Turn exceptions of wgpu into those of this library.

    With `device`, also the RuntimeError or AttributeError that wgpu-py raises where another thread destroys the device.
    """
    try:
        yield
    except wgpu.GPUError as error:
        raise device_error(error, doing) from error
    except Exception as error:
        if device is not None and not isinstance(error, GridwiseError) and is_lost(device, doing):
            raise lost_error(str(error), doing) from error
        raise


def check_not_lost(device: wgpu.GPUDevice, doing: str = "waiting for the GPU") -> None:
    """Raise DeviceLostError if a device was destroyed, or if wgpu has logged its loss."""
    losses, state = watch_errors().losses, state_of(device)
    if state.end.reached:
        with state.end.lock:  # waits for a destroy in another thread
            pass
    elif state.losses_seen == losses:
        return
    # The log does not name the device.
    with device_errors(doing):
        state.engine.check_lives(device)
    if state.end.reached:  # while a caller has its mapped memory, wgpu's device is still there
        raise lost_error("destroy() was called", doing)
    state.losses_seen = losses


def is_lost(device: wgpu.GPUDevice, doing: str = "asking for the device") -> bool:
    """Whether `check_not_lost` finds that a device is lost."""
    try:
        check_not_lost(device, doing)
    except DeviceError as error:
        return isinstance(error, DeviceLostError)
    return False


def lost_error(text: str, doing: str) -> DeviceLostError:
    """Return the exception for a lost device; `text` says how the loss was noticed."""
    said = watch_errors().last_loss
    logged = f"; wgpu logged: {' '.join(said.split())}" if said else ""
    return DeviceLostError(
        f"{doing}: the device was lost or destroyed ({text}{logged}). Its Arrays are gone; make a new device with "
        f"request_device() and upload again"
    )


class _ErrorWatch(logging.Handler):
    """Keeps the last errors that wgpu only logs (device loss, errors outside calls)."""

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self._lock_messages = threading.Lock()
        self._messages: list[str] = []
        self.losses = 0
        self.last_loss = ""  # wgpu-py does not name the device

    def emit(self, record: logging.LogRecord) -> None:
        with self._lock_messages:
            message = record.getMessage()
            self._messages.append(message)
            # Two lines for each loss; wgpu-py hides the second one after ten times.
            if message == "DEVICE LOST!" or (record.name != "wgpu" and "device was lost" in message):
                self.losses += 1
                self.last_loss = self.last_loss or message
            elif "device was lost" in message:
                self.last_loss = message
            del self._messages[:-20]

    def take(self) -> list[str]:
        """Return the messages since the last call."""
        with self._lock_messages:
            messages, self._messages = self._messages, []
        return messages


@functools.lru_cache(maxsize=1)
def watch_errors() -> _ErrorWatch:
    """Return the process's watch on wgpu's logger, installing it at the first call."""
    watch = _ErrorWatch()
    logging.getLogger("wgpu").addHandler(watch)
    return watch


def watch_engine(engine: Engine) -> None:
    """Have the process's watch hear an engine, which was loaded: its package makes the logger."""
    logging.getLogger(engine.LOGGER).addHandler(watch_errors())
