"""Writes a results file while a run goes on, so that an interrupted run leaves its finished cases.

Until the run is done they are in ``NAME.partial.json``, which is written anew, whole, after each case; then it becomes
``NAME.json``. What stood in ``NAME.json`` before stays until then. Stamps stay inside the file up to a size, and go
beside it then, as arrays in ``NAME.ticks.npz``. Where the file is a device or a pipe, nothing is beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadResultsFile
from ..storage.files import check_writable, is_stream, whole_file
from .results import array_sha256, json_text

__all__ = [
    "MAX_TICKS_INSIDE_BYTES", "ResultsWriter", "check_results_path", "final_path", "partial_path", "read_ticks",
    "ticks_path", "without_link",
]  # fmt: skip

#: Stamps beyond this much text go beside the file.
MAX_TICKS_INSIDE_BYTES = 200_000

_PARTIAL = ".partial"
_SUFFIX = ".json"


def partial_path(path: Path) -> Path:
    """Return where the finished cases of a run into `path` are until it is done."""
    suffix = _SUFFIX if path.name.endswith(_SUFFIX) else ""
    return path.with_name(path.name.removesuffix(suffix) + _PARTIAL + suffix)


def final_path(path: Path) -> Path:
    """Return where a run that is resumed from `path` ends."""
    suffix = _SUFFIX if path.name.endswith(_SUFFIX) else ""
    if path.name.endswith(_PARTIAL + suffix):
        return path.with_name(path.name.removesuffix(_PARTIAL + suffix) + suffix)
    return path


def ticks_path(path: Path) -> Path:
    """Return where the stamps of a results file are that do not fit into it."""
    return path.with_name(path.name.removesuffix(".json") + ".ticks.npz")


def without_link(path: Path) -> Path:
    """Return the file that a path is or links to; a device or a pipe as it was named."""
    return Path(os.path.realpath(path)) if path.is_symlink() and not is_stream(path) else path


def check_results_path(path: Path) -> None:
    """Raise OSError unless a run can write its results to `path`, and beside it what it writes there."""
    check_writable(path)
    path = without_link(path)
    if not is_stream(path):
        for beside in (ticks_path(path), partial_path(path), ticks_path(partial_path(path))):
            check_writable(beside)


class ResultsWriter:
    """Writes one results file.

    Parameters
    ----------
    path : Path
        Where it is in the end.
    header : mapping
        As `run_header` returns it.
    planned : int
        How many cases there will be.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], planned: int):
        # Beside the file itself, not beside a link to it.
        self.path = without_link(path)
        self._alone = is_stream(path)
        self.header: dict[str, Any] = {**header, "planned": planned}
        self._texts: list[str] = []
        self._inside_bytes = 0
        self._arrays: dict[str, np.ndarray] = {}

    def add(self, entry: Mapping[str, Any], ticks: np.ndarray | None = None) -> None:
        """Keep the result of a case, without writing; `ticks` are those that lie beside the file it comes from."""
        entry = dict(entry)
        inside = [sample.get("ticks", []) for sample in entry["samples"]]
        size = len(json.dumps(inside)) if any(inside) else 0
        if ticks is None and size and not self._alone and self._inside_bytes + size > MAX_TICKS_INSIDE_BYTES:
            ticks = np.array(inside, dtype=np.uint64)
        if ticks is not None and self._alone:
            # From a file with stamps beside it.
            pairs = zip(entry["samples"], ticks.tolist(), strict=True)
            entry |= {"ticks": None, "samples": [{**sample, "ticks": stamps} for sample, stamps in pairs]}
        elif ticks is not None:
            name = f"r{len(self._texts):05d}"
            self._arrays[name] = ticks
            entry["ticks"] = {"array": name, "sha256": array_sha256(ticks)}
            entry["samples"] = [{key: v for key, v in s.items() if key != "ticks"} for s in entry["samples"]]
        else:
            self._inside_bytes += size
        # As text, once: the file is written after each case, and a run can have hundreds.
        self._texts.append(json_text(entry))

    def save(self) -> None:
        """Write what there is into the partial file; raise OSError where it cannot be written."""
        if not self._alone:
            self._write(partial_path(self.path), complete=False)

    def finish(self) -> tuple[Path, ...]:
        """Write the file, remove the partial one, and return what was written.

        Raises
        ------
        OSError
            If it cannot be written. What was in it before, and the partial file, are as they were.
        """
        written = self._write(self.path, complete=True)
        if not self._alone:
            partial = partial_path(self.path)
            for left in (partial, ticks_path(partial)):
                left.unlink(missing_ok=True)
        return written

    def _write(self, path: Path, *, complete: bool) -> tuple[Path, ...]:
        beside = ticks_path(path) if self._arrays else None
        ticks_file = None if beside is None else beside.name
        head = {key: value for key, value in self.header.items() if key != "results"}
        opened = json_text({**head, "complete": complete, "ticks_file": ticks_file}).removesuffix("\n}")
        results = ",\n".join(self._texts)
        with whole_file(path) as file:
            file.write(f'{opened},\n "results": [\n{results}\n ]\n}}\n'.encode())
            if beside is not None:
                # When all of the JSON is on the disk, and before it has its name: without room for one of the two,
                # what both were before stays together.
                file.flush()
                with whole_file(beside) as arrays:
                    np.savez_compressed(arrays, **self._arrays)  # type: ignore[arg-type]
        return (path,) if beside is None else (path, beside)


def read_ticks(path: str | Path, document: Mapping[str, Any], entry: Mapping[str, Any]) -> np.ndarray | None:
    """Return the stamps of a result: samples × kernels × (begin, end), as uint64; None where there are none.

    Parameters
    ----------
    path : str or Path
        Of the results file.
    document, entry : mapping
        What `read_results` returned, and one of its results.

    Raises
    ------
    BadResultsFile
        If they are beside the file, and missing, changed or of another form there.
    """
    if entry["ticks"] is None:
        inside = [sample["ticks"] for sample in entry["samples"] if sample.get("ticks")]
        return np.array(inside, dtype=np.uint64) if inside else None
    path = Path(path)
    name, expected = entry["ticks"]["array"], entry["ticks"]["sha256"]
    beside = path.with_name(document["ticks_file"])
    if path.is_symlink() and not beside.exists():
        beside = Path(os.path.realpath(path)).with_name(document["ticks_file"])
    try:
        with np.load(beside, allow_pickle=False) as arrays:
            ticks = arrays[name]
    except Exception as error:  # whatever a spoilt archive makes zipfile, zlib and numpy raise: they have no one base
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} of {path.name} cannot be read from it: {error}; "
            f"keep both files together"
        ) from error
    shape = (len(entry["samples"]), len(entry["kernels"]), 2)
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
