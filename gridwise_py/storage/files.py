"""Reads regular files only; writes them completely or not at all, and replaces none but the one that a caller names."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

# Absent on Windows: there a link needs a privilege, and a file opened without O_BINARY gets other line ends.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_PART_SUFFIX = ".part"
# A pipe is opened at once, not when somebody writes, and a terminal does not become that of this process.
_AS_IT_IS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_MOST_BYTES = 256 << 20
#: What `standard_output` keeps.
_kept_output: list[BinaryIO] = []


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, as all that may come from strangers: a pipe or a device may never end.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, or too large.
    """
    descriptor = os.open(path, _AS_IT_IS)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    of_size = f"it has {found.st_size:,} bytes, and files have at most {_MOST_BYTES:,}"
    problem = of_size if stat.S_ISREG(found.st_mode) else "it is no regular file"
    raise OSError(errno.EINVAL, problem, str(path))


def read_file(path: Path) -> bytes:
    """Return the content of a file; see `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def is_stream(path: Path) -> bool:
    """Whether a path must be written in place: a device, a pipe, a socket, or this process's own output."""
    found = _stat(path)
    return found is not None and (not stat.S_ISREG(found.st_mode) or _own_output(found) is not None)


def is_stdout(path: Path) -> bool:
    """Whether a path is this process's own standard output, such as /dev/stdout."""
    found = _stat(path)
    with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or replaced by a test
        return found is not None and os.path.samestat(os.fstat(sys.__stdout__.fileno()), found)  # type: ignore[union-attr]
    return False


@contextlib.contextmanager
def standard_output() -> Generator[Path]:
    """Keep standard output for one file; what is printed meanwhile, also by child processes, goes to standard error.

    Yields
    ------
    Path
        Of that output.
    """
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as kept, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno() if sys.__stderr__ is None else 2, 1)
        _kept_output.append(kept)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield Path(f"/dev/fd/{kept.fileno()}")
        finally:
            _kept_output.remove(kept)
            os.dup2(kept.fileno(), 1)


@contextlib.contextmanager
def whole_file(path: Path, *, follow_links: bool = True, sync: bool = False) -> Generator[BinaryIO]:
    """Open a file for writing; it appears at `path` when the block ends, and not at all if the block raises.

    Parameters
    ----------
    path : Path
        An existing regular file is replaced; its permissions are kept. A device, a pipe or the process's own output is
        written in place, because other programs use it.
    follow_links : bool, default True
        Whether a symbolic link at `path` is followed, as by any other program; else the link is replaced.
    sync : bool, default False
        Whether the content is on the disk before it gets its name. Otherwise a machine that stops, not just this
        process, may leave an empty file in place of the older one.

    Yields
    ------
    BinaryIO

    Raises
    ------
    OSError
        If it cannot be written; ``filename`` is `path`. What the block raises for another reason passes unchanged.
    """
    others: list[OSError] = []
    try:
        if follow_links and is_stream(path):
            content = io.BytesIO()
            with _noting_others(others):
                yield content
            _write_in_place(path, content.getvalue())
            return
        target = _target(path) if follow_links else path
        descriptor, part = _new_beside(target)
        try:
            with os.fdopen(descriptor, "wb") as file, _noting_others(others):
                yield file
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(part, target)
        except BaseException:
            # On a file system that became read-only this fails, too, and would hide the first error.
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        is_other = error in others
        others.clear()  # its traceback leads back to this list
        if is_other:
            raise
        # The requested file, not the temporary one.
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


@contextlib.contextmanager
def _noting_others(others: list[OSError]) -> Generator[None]:
    """Note an error that does not come from writing to the open file: such an error has a number and no file name.

    Others name another file, or are no errors of the system at all: DeviceTimeoutError is an OSError, too.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            others.append(error)
        raise


def write_whole(path: Path, content: bytes, *, follow_links: bool = True) -> None:
    """Write a file completely or not at all; see `whole_file`."""
    with whole_file(path, follow_links=follow_links) as file:
        file.write(content)


def check_writable(path: Path) -> None:
    """Try the first steps of writing, and undo them.

    Raises
    ------
    OSError
        If the folder, the name or the permissions do not allow it.
    """
    found = _stat(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if is_stream(path):
        # A pipe is not opened: that would wait for its reader, or end it.
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    try:
        descriptor, part = _new_beside(_target(path))
        os.close(descriptor)
        os.unlink(part)
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


def _stat(path: Path) -> os.stat_result | None:
    """Return the stat of a path, links followed; None if it does not exist. A name that is too long raises."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _target(path: Path) -> Path:
    """Return the path without symbolic links: their target is replaced, not the links."""
    # A dangling link names the file to create; a link to itself raises here.
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _new_beside(target: Path) -> tuple[int, str]:
    """Create a file in the folder of `target`, with its permissions if it exists; return descriptor and name.

    The name is short, even if the target's is long; it cannot be guessed, and an existing file is not opened.
    """
    before = _stat(target)
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    while True:
        part = os.path.join(target.parent, f".{secrets.token_hex(8)}{_PART_SUFFIX}")
        try:
            # Private at first, if the mode is that of the old file: it may be stricter than the umask.
            descriptor = os.open(part, _NEW, mode if before is None else 0o600)
            break
        except FileExistsError:
            continue
    if before is not None and hasattr(os, "fchmod"):
        # A file system without permissions has none to keep.
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, mode)
    return descriptor, part


def _own_output(found: os.stat_result) -> int | None:
    """Return the descriptor of the process's own output that a path stands for (/dev/stdout); else None."""
    for stream in (*_kept_output, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            if os.path.samestat(os.fstat(stream.fileno()), found):  # type: ignore[union-attr]
                return stream.fileno()  # type: ignore[union-attr]
    return None


def _write_in_place(path: Path, content: bytes) -> None:
    own = _own_output(os.stat(path))
    if own is not None:
        # Through the same descriptor, so that earlier and later output keeps its place.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        descriptor = os.dup(own)
    else:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
