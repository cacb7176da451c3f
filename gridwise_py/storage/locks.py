"""Locks of files between processes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_PID_AT = 1  # behind the byte that is locked, which Windows lets no other process read


class Locked(Exception):
    """Another process has the lock.

    Attributes
    ----------
    pid : int or None
        Its number, if it is known.
    """

    def __init__(self, pid: int | None):
        super().__init__(pid)
        self.pid = pid


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Let no other process, or other caller in this one, lock the same path meanwhile.

    The lock is the system's, on the file ``.NAME.lock`` beside `path`. It goes with the process, however that ends;
    what is left of the file then locks nobody out. Where the file system has no locks, nobody is locked out.

    Raises
    ------
    Locked
        If it is locked.
    """
    lock = path.with_name(f".{path.name}.lock")
    descriptor = _try_to_lock(lock)
    try:
        yield
    finally:
        if descriptor is not None:
            _unlock(descriptor, lock)


def _try_to_lock(lock: Path) -> int | None:
    """Return the descriptor of the lock's file, locked; None where there are no locks."""
    while True:
        try:
            descriptor = os.open(lock, _OPEN, 0o666)
        except OSError:
            return None
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError):
            os.lseek(descriptor, _PID_AT, os.SEEK_SET)
            pid = os.read(descriptor, 20)
            os.close(descriptor)
            raise Locked(int(pid) if pid.isdigit() else None) from None
        except OSError:
            os.close(descriptor)
            return None
        if _is_still_there(descriptor, lock):
            with contextlib.suppress(OSError):  # a full disk; the number is for messages
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, _PID_AT, os.SEEK_SET)
                os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)


def _is_still_there(descriptor: int, lock: Path) -> bool:
    """Whether the owner before has not removed the file since it was opened: others would lock a new one."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock))
    except FileNotFoundError:
        return False


def _unlock(descriptor: int, lock: Path) -> None:
    # The file goes before the lock: then it is nobody else's.
    try:
        lock.unlink(missing_ok=True)
    except OSError:  # Windows removes no open file, and afterwards none that another process has opened meanwhile
        os.close(descriptor)
        with contextlib.suppress(OSError):
            lock.unlink()
    else:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
