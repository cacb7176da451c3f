"""Writes a results file while a run goes on, so that an interrupted run leaves its finished cases.

Until the run is done they are in ``NAME.partial.json``, which is written anew, whole, after each case; then it becomes
``NAME.json``. What stood in ``NAME.json`` before stays until then. Stamps stay inside the file up to a size, and go
beside it then, as arrays in ``NAME.ticks.npz``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadResultsFile
from .results import array_sha256, json_text, write_bytes_whole

__all__ = ["MAX_TICKS_INSIDE_BYTES", "ResultsWriter", "final_path", "partial_path", "read_ticks", "ticks_path"]

#: Stamps beyond this much text go beside the file.
MAX_TICKS_INSIDE_BYTES = 200_000

_PARTIAL = ".partial.json"


def partial_path(path: Path) -> Path:
    """Return where the finished cases of a run into `path` are until it is done."""
    return path.with_name(path.name.removesuffix(".json") + _PARTIAL)


def final_path(path: Path) -> Path:
    """Return where a run that is resumed from `path` ends."""
    if path.name.endswith(_PARTIAL):
        return path.with_name(path.name.removesuffix(_PARTIAL) + ".json")
    return path


def ticks_path(path: Path) -> Path:
    """Return where the stamps of a results file are that do not fit into it."""
    return path.with_name(path.name.removesuffix(".json") + ".ticks.npz")


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
        self.path = path
        self.header: dict[str, Any] = {**header, "planned": planned}
        self._texts: list[str] = []
        self._inside_bytes = 0
        self._arrays: dict[str, np.ndarray] = {}

    def add(self, entry: Mapping[str, Any], ticks: np.ndarray | None = None) -> None:
        """Keep the result of a case, without writing; `ticks` are those that lie beside the file it comes from."""
        entry = dict(entry)
        inside = [sample.get("ticks", []) for sample in entry["samples"]]
        size = len(json.dumps(inside)) if any(inside) else 0
        if ticks is None and size and self._inside_bytes + size > MAX_TICKS_INSIDE_BYTES:
            ticks = np.array(inside, dtype=np.uint64)
        if ticks is not None:
            name = f"r{len(self._texts):05d}"
            self._arrays[name] = ticks
            entry["ticks"] = {"array": name, "sha256": array_sha256(ticks)}
            entry["samples"] = [{key: v for key, v in s.items() if key != "ticks"} for s in entry["samples"]]
        else:
            self._inside_bytes += size
        # As text, once: the file is written after each case, and a run can have hundreds.
        self._texts.append(json_text(entry))

    def save(self) -> None:
        """Write what there is into the partial file."""
        self._write(partial_path(self.path), complete=False)

    def finish(self) -> None:
        """Write the file, and remove the partial one."""
        partial = partial_path(self.path)
        self._write(self.path, complete=True)
        partial.unlink(missing_ok=True)
        ticks_path(partial).unlink(missing_ok=True)

    def _write(self, path: Path, *, complete: bool) -> None:
        beside = ticks_path(path) if self._arrays else None
        if beside is not None:
            # First: every array has its own sum in the JSON, so that more of them than it knows do no harm.
            content = io.BytesIO()
            np.savez_compressed(content, **self._arrays)  # type: ignore[arg-type]
            write_bytes_whole(beside, content.getvalue())
        ticks_file = None if beside is None else beside.name
        head = {key: value for key, value in self.header.items() if key != "results"}
        opened = json_text({**head, "complete": complete, "ticks_file": ticks_file}).removesuffix("\n}")
        results = ",\n".join(self._texts)
        write_bytes_whole(path, f'{opened},\n "results": [\n{results}\n ]\n}}\n'.encode())


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
        If they are beside the file, and missing or changed there.
    """
    if entry["ticks"] is None:
        inside = [sample["ticks"] for sample in entry["samples"] if sample.get("ticks")]
        return np.array(inside, dtype=np.uint64) if inside else None
    beside = Path(path).with_name(Path(document["ticks_file"]).name)
    name, expected = entry["ticks"]["array"], entry["ticks"]["sha256"]
    try:
        with np.load(beside, allow_pickle=False) as arrays:
            ticks = arrays[name]
    except Exception as error:  # whatever a spoilt archive makes zipfile, zlib and numpy raise: they have no one base
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} of {Path(path).name} cannot be read from it: {error}; "
            f"keep both files together"
        ) from error
    if (found := array_sha256(ticks)) != expected:
        raise BadResultsFile(
            f"{beside.name}: the timestamps {name!r} have the sha256 {found[:12]}…, but {Path(path).name} says "
            f"{expected[:12]}…: the two files are not of the same run"
        )
    return ticks
