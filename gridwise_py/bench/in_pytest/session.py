"""What one process of a run of pytest knows while it measures: the files, the devices, and what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import wgpu

from ...errors import ArgumentError
from ...internals import clock_held
from ..results.context import run_header
from ..results.model import Result, Results, differences
from ..results.reader import read_results
from ..results.writer import check_results_path
from ..sampling.protocol import SamplingProtocol
from .judgement import NOT_JUDGED, Judgement
from .store import check_case, check_device, next_process


class Files:
    """The files that the options of a run name.

    Parameters
    ----------
    config : pytest.Config

    Attributes
    ----------
    json : Path or None
        Where the times go.
    appends : bool
        Whether to add to that file.
    earlier : Results or None
        What it has.
    compare : Path or None
    baseline : Results or None
        What that file has.
    fails_ambiguous : bool

    Raises
    ------
    ArgumentError
        If an option lacks another one, a file is missing, or one would be overwritten.
    BadResultsFile
    """

    def __init__(self, config: pytest.Config):
        self.json, self.compare = _path(config, "gridwise_json"), _path(config, "gridwise_compare")
        self.appends = bool(config.getoption("gridwise_append"))
        self.fails_ambiguous = bool(config.getoption("gridwise_fail_ambiguous"))
        self._check_options()
        if self.json is not None:
            self._check_new(self.json)
        self.baseline = None if self.compare is None else read_results(self.compare)
        self.earlier = read_results(self.json) if self.json is not None and self.json.exists() else None

    def _check_options(self) -> None:
        if self.fails_ambiguous and self.compare is None:
            raise ArgumentError("--gridwise-fail-ambiguous needs a file to compare with: --gridwise-compare FILE")
        if self.appends and self.json is None:
            raise ArgumentError("--gridwise-append needs the file to add to: --gridwise-json FILE")
        if self.compare is None:
            return
        if self.json == self.compare:
            raise ArgumentError(
                f"--gridwise-json and --gridwise-compare name one file, {self.compare.name}: give an old and a new one"
            )
        if not self.compare.exists():
            raise ArgumentError(
                f"--gridwise-compare: there is no file {self.compare.name}; to write it, run pytest --gridwise-json "
                f"{self.compare} on the code to compare with"
            )

    def _check_new(self, path: Path) -> None:
        if path.exists() and not self.appends:
            raise ArgumentError(
                f"--gridwise-json: {path.name} exists; name another file, or add --gridwise-append, if this run is "
                f"of the same code and a further process of its measurement"
            )
        try:
            check_results_path(path)
        except OSError as error:
            raise ArgumentError(f"--gridwise-json: {path.name} cannot be written: {error.strerror}") from error


def _path(config: pytest.Config, name: str) -> Path | None:
    """Return an option as an absolute path, and let workers have it so: they may run in other folders."""
    given = cast(str | None, config.getoption(name))
    if given is None:
        return None
    path = Path(config.invocation_params.dir, given).absolute()
    setattr(config.option, name, str(path))
    return path


@dataclass(frozen=True)
class Kept:
    """What a call of the fixture left, as JSON data: pytest-xdist takes it to the process that writes the file.

    Attributes
    ----------
    header : dict
        A results document without results.
    results : list of dict
    said, unsettled : str
        Of its `Judgement`; empty without one.
    new : bool
        Whether the stored file does not have it.
    """

    header: dict[str, Any]
    results: list[dict[str, Any]]
    said: str = ""
    unsettled: str = ""
    new: bool = False

    @property
    def name(self) -> str:
        """The name of the benchmark."""
        return str(self.results[0]["primitive"])

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict on it."""
        return self.said not in ("", NOT_JUDGED)

    @property
    def document(self) -> Results:
        """The header with the results."""
        return replace(Results.from_json(self.header), results=tuple(map(Result.from_json, self.results)))


class Session:
    """Prepares devices, and joins what is measured with what the files have.

    Parameters
    ----------
    files : Files
    process : int
        Of this process among those of the run.
    command : sequence of str
        The words of the command line.

    Attributes
    ----------
    files : Files
    kept : list of Kept
        What the current test left.
    """

    def __init__(self, files: Files, process: int, command: Sequence[str]):
        self.files = files
        self.kept: list[Kept] = []
        self._process, self._command = process, command
        self._headers: dict[wgpu.GPUDevice, Results] = {}
        self._clocks = ExitStack()

    def close(self) -> None:
        """Let go of the clocks."""
        self._clocks.close()

    def use(self, device: wgpu.GPUDevice) -> None:
        """Prepare a device, before anything is timed on it.

        Raises
        ------
        ArgumentError
            If its times would not fit the files.
        """
        if device in self._headers:
            return
        clock = self._clocks.enter_context(clock_held(device))
        header = run_header(device, protocol=SamplingProtocol().to_dict(), seed=0, command=self._command)
        header = replace(header, context=replace(header.context, clock=clock))
        self._check_baseline(header)
        if self.files.json is not None:
            if self.files.earlier is not None:
                check_device(self.files.earlier, header, self.files.json.name)
            self._check_only_one(header)
        self._headers[device] = header

    def _check_baseline(self, header: Results) -> None:
        if self.files.baseline is None or self.files.compare is None:
            return
        found = differences(self.files.baseline.machine, header.machine)
        if found:
            told = "; ".join(f"{name} {then}, now {now}" for name, then, now in found)
            raise ArgumentError(
                f"--gridwise-compare: {self.files.compare.name} was measured with {told}, and only times of one "
                f"machine can be compared: measure it again here, with pytest --gridwise-json"
            )

    def _check_only_one(self, header: Results) -> None:
        for other in self._headers.values():
            if differences(other.machine, header.machine):
                raise ArgumentError(
                    f"--gridwise-json: a results file is of one adapter, but tests measured on {other.device.title} "
                    f"and now on {header.device.title}: run pytest once for each, with a file each"
                )

    def with_earlier(self, device: wgpu.GPUDevice, results: Sequence[Result]) -> Results:
        """Return results of a case, after those of it in the file that they will be added to.

        Raises
        ------
        ArgumentError
            If those are of other shaders.
        """
        earlier = self.files.earlier
        found: list[Result] = []
        if earlier is not None and self.files.json is not None:
            found = [one for one in earlier.results if one.key == results[0].key]
            check_case(found, results[0], self.files.json.name)
        mine = [replace(result, process=next_process(earlier) + self._process) for result in results]
        return replace(self._headers[device], results=(*found, *mine))

    def keep(self, device: wgpu.GPUDevice, results: Sequence[Result], judgement: Judgement | None) -> None:
        """Keep what a call of the fixture measured."""
        right = all(result.correct for result in results)
        self.kept.append(
            Kept(
                self._headers[device].to_json(),
                [replace(result, process=self._process).to_json() for result in results],
                "" if judgement is None else judgement.said,
                "" if judgement is None else judgement.unsettled,
                new=right and judgement is None and self.files.baseline is not None,
            )
        )
