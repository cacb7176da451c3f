"""What was found out about a device and is kept on disk: a file per kind, adapter, driver and version."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from .. import settings
from .files import write_whole

__all__ = ["cache_folder", "documents", "load", "positive", "remove", "save"]


def cache_folder() -> Path | None:
    """Return the folder for what can be found again: ``GRIDWISE_CACHE_DIR``, else the user's.

    None where the user has none: a container that runs under a number without a name and without ``HOME``. Then nothing
    is kept, and everything is found out again by each process.
    """
    folder = settings.cache_dir()
    if folder is not None:
        return folder
    import platformdirs

    try:
        return platformdirs.user_cache_path("gridwise_py", appauthor=False)
    except (RuntimeError, OSError, KeyError):  # as pathlib, platformdirs and pwd say that there is no home
        return None


def _path(kind: str, key: Mapping[str, str]) -> Path | None:
    folder = cache_folder()
    digest = hashlib.sha256(json.dumps(dict(key), sort_keys=True).encode()).hexdigest()
    return None if folder is None else folder / f"{kind}-{digest[:16]}.json"


def positive(value: Any) -> float:
    """Return a number from a file as a float; raise ValueError unless it is finite and more than 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{type(value).__name__} is no number")
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{number} is not a finite number of more than 0")
    return number


def load(kind: str, key: Mapping[str, str], form: int) -> dict[str, Any] | None:
    """Return what is kept.

    Parameters
    ----------
    kind : str
        What it is, such as ``"calibration"``; the file's name begins with it.
    key : mapping from str to str
        What it holds for.
    form : int
        The number of the file's form; a file of another is not read.

    Returns
    -------
    dict or None
        None where the file is missing, broken, of another form or of something else.
    """
    path = _path(kind, key)
    data = None if path is None else _read(path)
    return data if data is not None and data.get("format") == form and data.get("device") == dict(key) else None


def _read(path: Path | None) -> dict[str, Any] | None:
    try:
        # Reading a pipe would wait for whoever made it.
        if path is None or not path.is_file():
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast(dict[str, Any], data) if isinstance(data, dict) else None


def save(kind: str, key: Mapping[str, str], form: int, content: Mapping[str, Any]) -> bool:
    """Keep `content`, whole or not at all, and return whether it was kept: a folder may be read-only."""
    document = {"format": form, "device": dict(key), **content}
    path = _path(kind, key)
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody asked for a file outside of the folder: a link in it is replaced.
        write_whole(path, (json.dumps(document, indent=1) + "\n").encode(), follow_links=False)
    except OSError:
        return False
    return True


def documents(kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every readable file of a kind, of whatever device, with its path."""
    folder = cache_folder()
    for path in () if folder is None else sorted(folder.glob(f"{kind}-*.json")):
        data = _read(path)
        if data is not None:
            yield path, data


def remove(kind: str, key: Mapping[str, str]) -> bool:
    """Remove what is kept, and return whether there was anything."""
    path = _path(kind, key)
    if path is None:
        return False
    try:
        path.unlink()
    except OSError:
        return False
    return True
