"""The timestamps of a result, in the results file or in the second file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from ...errors import BadResultsFile
from ...storage.files import open_regular
from .model import Result, Results


def ticks_path(path: Path) -> Path:
    """Return the path of the second file, with the timestamps that do not fit into a results file."""
    return path.with_name(path.name.removesuffix(".json") + ".ticks.npz")


def array_sha256(array: np.ndarray) -> str:
    """Return the sha256 of an array's content, independent of the machine."""
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<u8").tobytes()).hexdigest()


def read_ticks(path: str | Path, document: Results, result: Result) -> np.ndarray | None:
    """Return the timestamps of a result: samples × kernels × (begin, end), as uint64; None if there are none.

    Parameters
    ----------
    path : str or Path
        Of the results file.
    document : Results
        As `read_results` returned it.
    result : Result
        One of its results.

    Raises
    ------
    BadResultsFile
        If they are in the second file, and missing, changed or malformed.
    """
    if result.ticks is None or document.ticks_file is None:
        inside = [sample.ticks for sample in result.samples if sample.ticks]
        return np.array(inside, dtype=np.uint64) if inside else None
    path = Path(path)
    name, expected = result.ticks.array, result.ticks.sha256
    beside = path.with_name(document.ticks_file)
    if path.is_symlink() and not beside.exists():
        beside = Path(os.path.realpath(path)).with_name(document.ticks_file)
    try:
        with open_regular(beside) as file, np.load(file, allow_pickle=False) as arrays:
            ticks = arrays[name]
    except Exception as error:  # a broken archive makes zipfile, zlib and numpy raise various exceptions
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} of {path.name} cannot be read from it: {error}; "
            f"keep both files together"
        ) from error
    shape = (len(result.samples), len(result.kernels), 2)
    if ticks.dtype != np.uint64 or ticks.shape != shape:
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} are {ticks.dtype} of shape {ticks.shape}, but {path.name} has "
            f"samples, kernels and ends for uint64 of shape {shape}"
        )
    if (found := array_sha256(ticks)) != expected:
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} have the sha256 {found[:12]}…, but {path.name} says "
            f"{expected[:12]}…: the two files are not of the same run"
        )
    return ticks
