"""The results file of a run of pytest. A further run can be added to it: each run of pytest is a process."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ...errors import ArgumentError
from ...storage.locks import Locked, locked
from ..results.model import Result, Results, differences
from ..results.reader import read_results
from ..results.ticks import read_ticks
from ..results.writer import ResultsWriter

_STEP_S = 0.02


class StillLocked(Exception):
    """A lock did not become free in time; the message says who has it."""


@contextmanager
def waiting_for(path: Path, most_s: float) -> Generator[None]:
    """Hold the lock of a path, as `locked`, once it is free.

    Raises
    ------
    StillLocked
        If it is not free in time.
    """
    until_s = time.monotonic() + most_s
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(path))
                break
            except Locked as error:
                if time.monotonic() > until_s:
                    raise StillLocked(f"process {error.pid or '(unknown)'} has had {path} for {most_s:.0f} s") from None
            time.sleep(_STEP_S)
        yield


def check_device(earlier: Results, now: Results, file: str) -> None:
    """Raise ArgumentError if the results of this run cannot stand beside earlier ones in a file."""
    versions = [
        {name: str(document.context.versions.get(name)) for name in now.context.versions} for document in (earlier, now)
    ]
    found = [*differences(earlier.machine, now.machine), *differences(*versions)]
    if found:
        told = "; ".join(f"{name} {then}, now {here}" for name, then, here in found)
        raise ArgumentError(
            f"--gridwise-append: {file} was measured with {told}: runs in one file must be alike, so name another file"
        )


def check_case(earlier: Sequence[Result], now: Result, file: str) -> None:
    """Raise ArgumentError if a case has other kernels than in earlier runs: its times would be mixed with theirs."""
    for result in earlier:
        levels = result.shader_checks, now.shader_checks
        others = f"shader_checks={levels[1]}, not {levels[0]} as" if levels[0] != levels[1] else "other shaders than"
        if (result.shaders_sha256 != now.shaders_sha256 or levels[0] != levels[1]) and result.error is None:
            raise ArgumentError(
                f"--gridwise-append: {now.primitive} has {others} in {file}, whose times would be mixed with these: "
                f"name another file"
            )


def next_process(earlier: Results | None) -> int:
    """Return the number of the first process that is added to a file."""
    return 0 if earlier is None else 1 + max((result.process for result in earlier.results), default=-1)


def write(path: Path, header: Results, results: Sequence[Result], *, append: bool, complete: bool = True) -> None:
    """Write results, after those that the file has, completely or not at all.

    Parameters
    ----------
    path : Path
    header : Results
        Of this run.
    results : sequence of Result
        Their processes count from 0.
    append : bool
    complete : bool, default True
        Whether the run was not interrupted.

    Raises
    ------
    ArgumentError
        If the file is of another device or cannot be read.
    OSError
        If it cannot be written.
    """
    with waiting_for(path, 60.0):
        earlier = read_results(path) if append and path.exists() else None
        if earlier is not None:
            check_device(earlier, header, path.name)
            resumed = (*earlier.context.resumed, earlier.context.time)
            header = replace(header, context=replace(header.context, resumed=resumed))
        writer = ResultsWriter(path, header, None)
        positions: dict[object, int] = {}
        for result in () if earlier is None else earlier.results:
            assert earlier is not None
            positions[result.key] = result.position
            writer.add(result, read_ticks(path, earlier, result) if result.ticks is not None else None)
        first = next_process(earlier)
        after = max(positions.values(), default=-1) + 1
        for result in results:
            position = positions.setdefault(result.key, after)
            after = max(after, position + 1)
            writer.add(replace(result, process=first + result.process, position=position))
        writer.finish(complete=complete and (earlier is None or earlier.complete))
