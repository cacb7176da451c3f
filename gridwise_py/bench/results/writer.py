"""Writes a results file during a run, so that an interrupted run leaves its finished cases.

During the run they are in ``NAME.partial.json``, which is rewritten after each case, or after some cases if that takes
long, and becomes ``NAME.json`` at the end; an old ``NAME.json`` stays until then. Timestamps are in the file up to a
size; further ones are arrays in ``NAME.ticks.npz``. For a device or a pipe there are no other files.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import wgpu

from ...errors import ArgumentError
from ...storage.files import check_writable, is_stream, whole_file
from ...storage.json_files import json_text, write_json
from ..sampling.compare_kernels import KernelComparison
from ..sampling.measurement import Measurement
from .entries import results_document
from .model import Result, Results, TicksReference
from .ticks import array_sha256, ticks_path

#: Timestamps beyond this much text go to the second file.
MAX_TICKS_INSIDE_BYTES = 200_000

#: Of a run, at most: the GPU idles while the partial file is written, and that takes longer with every case.
_SHARE_OF_TIME = 0.1

_PARTIAL = ".partial"
_SUFFIX = ".json"


def partial_path(path: Path) -> Path:
    """Return the path of the partial file of a run that writes `path`."""
    suffix = _SUFFIX if path.name.endswith(_SUFFIX) else ""
    return path.with_name(path.name.removesuffix(suffix) + _PARTIAL + suffix)


def final_path(path: Path) -> Path:
    """Return the final path of a run that is resumed from `path`."""
    suffix = _SUFFIX if path.name.endswith(_SUFFIX) else ""
    if path.name.endswith(_PARTIAL + suffix):
        return path.with_name(path.name.removesuffix(_PARTIAL + suffix) + suffix)
    return path


def without_link(path: Path) -> Path:
    """Return the target of a path, links followed; for a device or a pipe the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() and not is_stream(path) else path


def check_results_path(path: Path) -> None:
    """Raise OSError unless a run can write `path` and its other files."""
    check_writable(path)
    path = without_link(path)
    if not is_stream(path):
        for beside in (ticks_path(path), partial_path(path), ticks_path(partial_path(path))):
            check_writable(beside)


def write_results(
    path: str | Path,
    results: Results | KernelComparison | Measurement | Sequence[Measurement],
    *,
    device: wgpu.GPUDevice | None = None,
    overwrite: bool = False,
) -> None:
    """Write measurements as a results file, completely or not at all.

    Parameters
    ----------
    path : str or Path
    results : Results, KernelComparison, Measurement or sequence of Measurement
        Measurements of one name, n and mode are rounds.
    device : wgpu.GPUDevice, optional
        Of measurements.
    overwrite : bool, default False

    Raises
    ------
    ArgumentError
        If the file exists, or the device is missing.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw, tempfile
    >>> device = gw.request_device()
    >>> short = gw.SamplingProtocol(min_samples=10, block_trials=10, warmup_s=0.001, max_warmup_s=0.01, timeout_s=0.01)
    >>> m = gw.measure(gw.Reduce(device), protocol=short, input=np.ones(1000, np.uint32))
    >>> path = tempfile.mkdtemp() + "/reduce.json"
    >>> gw.write_results(path, [m], device=device)
    >>> [result.primitive for result in gw.read_results(path).results]
    ['reduce']
    """
    if Path(path).exists() and not overwrite:
        raise ArgumentError(f"{path} exists; give another name, or overwrite=True")
    if isinstance(results, KernelComparison):
        device, results = results.device, [m for taken in results.measurements.values() for m in taken]
    if not isinstance(results, Results):
        if device is None:
            raise ArgumentError("gw.write_results() of measurements needs the device that they were taken on: device=")
        results = results_document(device, [results] if isinstance(results, Measurement) else results)
    write_json(path, results.to_json())


class ResultsWriter:
    """Writes one results file.

    Parameters
    ----------
    path : Path
        The final path.
    header : Results
        As `run_header` returns it. It may be replaced until `finish`.
    planned : int or None
        The number of measurements of a complete run; None if it is not known.
    clock : callable
        Seconds since any moment.
    """

    def __init__(
        self, path: Path, header: Results, planned: int | None, clock: Callable[[], float] = time.perf_counter
    ):
        # In the folder of the file itself, not of a link to it.
        self.path = without_link(path)
        self._alone = is_stream(path)
        self.header = header
        #: It may be replaced until `finish`.
        self.planned = planned
        self._texts: list[str] = []
        self._inside_bytes = 0
        self._arrays: dict[str, np.ndarray] = {}
        self._clock = clock
        self._next_s = clock()
        self._is_saved = True

    def add(self, result: Result, ticks: np.ndarray | None = None) -> None:
        """Keep the result of a case, without writing; `ticks` are its timestamps, if they come from a second file."""
        inside = [sample.ticks or () for sample in result.samples]
        size = len(json.dumps(inside)) if any(inside) else 0
        if ticks is None and size and not self._alone and self._inside_bytes + size > MAX_TICKS_INSIDE_BYTES:
            ticks = np.array(inside, dtype=np.uint64)
        if ticks is not None and self._alone:
            # From a file with a second file.
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
        # Converted to text once: the file is rewritten after each of maybe hundreds of cases.
        self._texts.append(json_text(result.to_json()))
        self._is_saved = False

    def save(self) -> None:
        """Write the results so far into the partial file; raise OSError if it cannot be written."""
        if not self._alone:
            begin_s = self._clock()
            try:
                self._write(partial_path(self.path), complete=False)
                self._is_saved = True
            finally:
                end_s = self._clock()
                self._next_s = end_s + (end_s - begin_s) / _SHARE_OF_TIME

    def save_in_turn(self) -> None:
        """As `save`, unless that would take too much of the time of the run; `close` then saves at the latest."""
        if self._clock() >= self._next_s:
            self.save()

    def close(self) -> None:
        """After a run that did not finish: save what is not saved yet."""
        if not self._is_saved:
            with suppress(OSError):
                self.save()

    def finish(self, *, complete: bool = True) -> tuple[Path, ...]:
        """Write the file, remove the partial one, and return what was written.

        Parameters
        ----------
        complete : bool, default True
            Whether the file says that its run was not interrupted.

        Raises
        ------
        OSError
            If it cannot be written. The old file and the partial file are then unchanged.
        """
        written = self._write(self.path, complete=complete)
        self._is_saved = True
        if not self._alone:
            partial = partial_path(self.path)
            for left in (partial, ticks_path(partial)):
                left.unlink(missing_ok=True)
        return written

    def _write(self, path: Path, *, complete: bool) -> tuple[Path, ...]:
        beside = ticks_path(path) if self._arrays else None
        ticks_file = None if beside is None else beside.name
        header = replace(self.header, planned=self.planned, complete=complete, ticks_file=ticks_file)
        head = {key: value for key, value in header.to_json().items() if key != "results"}
        opened = json_text(head).removesuffix("\n}")
        results = ",\n".join(self._texts)
        # Synced: a driver that stops the machine is one of the ways in which a long run ends.
        with whole_file(path, sync=True) as file:
            file.write(f'{opened},\n "results": [\n{results}\n ]\n}}\n'.encode())
            if beside is not None:
                # After all of the JSON is on disk, and before it gets its name: if the disk is full, the two old files
                # still belong together.
                file.flush()
                with whole_file(beside, sync=True) as arrays:
                    np.savez_compressed(arrays, **self._arrays)  # type: ignore[arg-type]
        return (path,) if beside is None else (path, beside)
