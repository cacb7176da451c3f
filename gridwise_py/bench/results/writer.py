"""Writes a results file while a run goes on, so that an interrupted run leaves its finished cases.

Until the run is done they are in ``NAME.partial.json``, which is written anew, whole, after each case; then it becomes
``NAME.json``. What stood in ``NAME.json`` before stays until then. Stamps stay inside the file up to a size, and go
beside it then, as arrays in ``NAME.ticks.npz``. Where the file is a device or a pipe, nothing is beside it.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...storage.files import check_writable, is_stream, whole_file
from ...storage.json_files import json_text, write_json
from .model import Result, Results, TicksReference
from .ticks import array_sha256, ticks_path

__all__ = [
    "MAX_TICKS_INSIDE_BYTES", "ResultsWriter", "check_results_path", "final_path", "partial_path", "without_link",
    "write_results",
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


def write_results(path: str | Path, document: Results) -> None:
    """Write a document whole or not at all; raise OSError where it cannot be written."""
    write_json(path, document.to_json())


class ResultsWriter:
    """Writes one results file.

    Parameters
    ----------
    path : Path
        Where it is in the end.
    header : Results
        As `run_header` returns it. It may be replaced until the end.
    planned : int
        How many cases there will be.
    """

    def __init__(self, path: Path, header: Results, planned: int):
        # Beside the file itself, not beside a link to it.
        self.path = without_link(path)
        self._alone = is_stream(path)
        self.header = header
        self._planned = planned
        self._texts: list[str] = []
        self._inside_bytes = 0
        self._arrays: dict[str, np.ndarray] = {}

    def add(self, result: Result, ticks: np.ndarray | None = None) -> None:
        """Keep the result of a case, without writing; `ticks` are those that lie beside the file it comes from."""
        inside = [sample.ticks or () for sample in result.samples]
        size = len(json.dumps(inside)) if any(inside) else 0
        if ticks is None and size and not self._alone and self._inside_bytes + size > MAX_TICKS_INSIDE_BYTES:
            ticks = np.array(inside, dtype=np.uint64)
        if ticks is not None and self._alone:
            # From a file with stamps beside it.
            pairs = zip(result.samples, ticks.tolist(), strict=True)
            result = replace(result, ticks=None, samples=tuple(replace(sample, ticks=own) for sample, own in pairs))
        elif ticks is not None:
            name = f"r{len(self._texts):05d}"
            self._arrays[name] = ticks
            reference = TicksReference(array=name, sha256=array_sha256(ticks))
            without = tuple(replace(sample, ticks=None) for sample in result.samples)
            result = replace(result, ticks=reference, samples=without)
        else:
            self._inside_bytes += size
        # As text, once: the file is written after each case, and a run can have hundreds.
        self._texts.append(json_text(result.to_json()))

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
        header = replace(self.header, planned=self._planned, complete=complete, ticks_file=ticks_file)
        head = {key: value for key, value in header.to_json().items() if key != "results"}
        opened = json_text(head).removesuffix("\n}")
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
