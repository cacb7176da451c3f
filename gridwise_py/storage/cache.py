"""Findings about devices on disk: one file per kind, adapter, driver and version."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from .. import settings
from .files import read_file, write_whole


def cache_folder() -> Path | None:
    """Return the cache folder: ``GRIDWISE_CACHE_DIR``, else the user's.

    None if the user has no home: a container whose user ID has no name, without ``HOME``. Then nothing is cached, and
    each process measures again.
    """
    folder = settings.cache_dir()
    if folder is not None:
        return folder
    import platformdirs

    try:
        return platformdirs.user_cache_path("gridwise_py", appauthor=False)
    except (RuntimeError, OSError, KeyError):  # raised by pathlib, platformdirs and pwd if there is no home
        return None


def code_folder(name: str) -> Path | None:
    """Return a folder of the cache that code is read from, made if need be; None where others could change it.

    Whoever can write there decides what this process does. So it belongs to the user, and nobody else may write in it,
    nor replace it in the folder above.
    """
    parent = cache_folder()
    if parent is None:
        return None
    folder = parent / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found, above = folder.lstat(), parent.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if not hasattr(os, "geteuid"):
        return folder
    is_own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    is_stuck = not above.st_mode & stat.S_IWOTH or above.st_mode & stat.S_ISVTX
    return folder if is_own and is_stuck and above.st_uid in (0, os.geteuid()) else None


def _path(kind: str, key: Mapping[str, str]) -> Path | None:
    folder = cache_folder()
    digest = hashlib.sha256(json.dumps(dict(key), sort_keys=True).encode()).hexdigest()
    return None if folder is None else folder / f"{kind}-{digest[:16]}.json"


def positive(value: Any) -> float:
    """Return a number from a file as a float; raise ValueError unless it is finite and more than 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{type(value).__name__} is not a number")
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{number} is not a finite number over 0")
    return number


def load(kind: str, key: Mapping[str, str], form: int) -> dict[str, Any] | None:
    """Return cached content.

    Parameters
    ----------
    kind : str
        Such as ``"calibration"``; the file's name begins with it.
    key : mapping from str to str
        The device, driver and versions that the content is valid for.
    form : int
        The format number of the file; a file of another format is ignored.

    Returns
    -------
    dict or None
        None if the file is missing, broken, of another format or for another key.
    """
    path = _path(kind, key)
    data = None if path is None else _read(path)
    return data if data is not None and data.get("format") == form and data.get("device") == dict(key) else None


def _read(path: Path | None) -> dict[str, Any] | None:
    try:
        data = None if path is None else json.loads(read_file(path))
    except (OSError, ValueError, RecursionError):
        return None
    return cast(dict[str, Any], data) if isinstance(data, dict) else None


def save(kind: str, key: Mapping[str, str], form: int, content: Mapping[str, Any]) -> bool:
    """Write `content` completely or not at all, and return whether it was written: the folder may be read-only."""
    document = {"format": form, "device": dict(key), **content}
    path = _path(kind, key)
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link in the folder is replaced, not followed: the cache writes no files elsewhere.
        write_whole(path, (json.dumps(document, indent=1) + "\n").encode(), follow_links=False)
    except OSError:
        return False
    return True


def documents(kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every readable file of a kind, for all devices, with its path."""
    folder = cache_folder()
    for path in () if folder is None else sorted(folder.glob(f"{kind}-*.json")):
        data = _read(path)
        if data is not None:
            yield path, data


def remove(kind: str, key: Mapping[str, str]) -> bool:
    """Remove cached content, and return whether there was any."""
    path = _path(kind, key)
    if path is None:
        return False
    try:
        path.unlink()
    except OSError:
        return False
    return True
