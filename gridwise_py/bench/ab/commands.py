"""Measures two commands in turns: programs that print or write the times of benchmarks.

Each run is a process, and a pair is a run of OLD and one of NEW, next to each other: OLD NEW, NEW OLD, and so on. So a
drift of the machine affects both alike, and the spread of the pairs is the spread of processes.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...errors import ArgumentError, BadResultsFile
from ..results.context import without_paths
from ..results.reader import check_form, read_tool_run
from ..results.tool_files import ToolRow, ToolRun
from ..stats.resampling import interquartile_mean
from .taken import SIDES, Measured, MeasuredRows, Progress, TakenRow

__all__ = ["OUT", "Command", "CommandSettings", "find_command", "measure_commands"]

#: What a command has in place of the name of the file that it writes.
OUT = "{out}"
_MOST_CHARACTERS = 200
_MOST_BYTES = 1 << 30  # of a run's output
_MOST_SEEN = 1000  # times of a run that are looked at for the step of its clock


@dataclass(frozen=True)
class Command:
    """One side.

    Attributes
    ----------
    given : str
        As the user wrote it.
    words : tuple of str
        The program and its arguments.
    """

    given: str
    words: tuple[str, ...]

    @property
    def writes_file(self) -> bool:
        """Whether it writes a file; else it prints."""
        return any(OUT in word for word in self.words)

    def describe(self) -> str:
        """Return what it is, in a few words."""
        return f"command {self.given}"

    def to_json(self) -> dict[str, Any]:
        """Return what a file says about it, without folders, which describe the machine."""
        return {"kind": "command", "given": shlex.join(without_paths(self.words))}


@dataclass(frozen=True)
class CommandSettings:
    """How commands are measured.

    Attributes
    ----------
    pairs : int
        Runs of each side.
    form : str or None
        A `ToolFormat`; None: that of the JSON.
    unit : str or None
        Of numbers on lines.
    timeout_s : float
        A run that takes longer is ended.
    seed : int
        Of which side begins.
    """

    pairs: int = 10
    form: str | None = None
    unit: str | None = None
    timeout_s: float = 3600.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_form(self.form, self.unit)

    def describe(self, pairs: str) -> str:
        """Return how it is measured, given the text of how many pairs."""
        return f"{pairs} of runs in turns, after one of each that does not count"


def find_command(given: str, side: str) -> Command:
    """Return the command that a user wrote; raises ArgumentError if it is none.

    No shell reads it: it is divided into words as a shell does, and quotes keep blanks.
    """
    try:
        # A backslash is part of a path on Windows.
        words = shlex.split(given) if os.name != "nt" else [w.strip('"') for w in shlex.split(given, posix=False)]
    except ValueError as error:
        raise ArgumentError(f"{side}: {given!r} is no command: {error}; close the quotes") from error
    if not words or not words[0]:
        raise ArgumentError(f"{side} is an empty command; give a program with its arguments, in quotes")
    return Command(given, tuple(words))


def measure_commands(
    commands: Mapping[str, Command], settings: CommandSettings, *, progress: Progress | None = None
) -> Measured:
    """Run both commands in turns.

    An interrupt, or a run that fails, ends the measurement; what was measured before is returned.

    Parameters
    ----------
    commands : mapping from str to Command
        By side.
    settings : CommandSettings
    progress : Progress, optional
        Is told how far it is.

    Raises
    ------
    ArgumentError
        If a command fails, prints nothing that can be read, or has no benchmark in common with the other one, before
        two runs of each were measured.
    KeyboardInterrupt
        If it is interrupted before anything was measured.
    """
    run = _Runs(commands, settings, progress or Progress())
    try:
        run.measure()
    except (KeyboardInterrupt, ArgumentError) as error:
        if not any(case.taken or case.errors for case in run.cases):
            raise
        return run.measured(error)
    return run.measured()


class _Runs:
    """One measurement; `cases` has what is there so far."""

    def __init__(self, commands: Mapping[str, Command], settings: CommandSettings, progress: Progress):
        self._commands, self._settings, self._progress = commands, settings, progress
        self._begin_s = time.monotonic()
        self._done = 0
        #: By title of the benchmark and side, that of the side's own.
        self._titles: dict[str, dict[str, str]] = {}
        self._seen: dict[str, list[float]] = {}
        self.cases: list[MeasuredRows] = []
        self.notes: list[str] = []

    def measured(self, stopped: KeyboardInterrupt | ArgumentError | None = None) -> Measured:
        """Return what there is."""
        nothing: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
        return Measured(nothing, "not applicable", self.cases, stopped, tuple(self.notes))

    def measure(self) -> None:
        """Run everything."""
        pairs = self._settings.pairs
        order = random.Random(self._settings.seed).sample(SIDES, 2)
        self._match({side: self._run(side, "a first run, which does not count") for side in order})
        for pair in range(1, pairs + 1):
            found = {side: self._run(side, f"pair {pair} of {pairs}") for side in order}
            order = order[::-1]
            for case in self.cases:
                if not case.errors:
                    self._take(case, found)
            self._progress.pair_done(pair, pairs, self._left_s() or 0.0)

    def _left_s(self) -> float | None:
        runs = 2 * (self._settings.pairs + 1)
        return (time.monotonic() - self._begin_s) / self._done * (runs - self._done) if self._done > 1 else None

    def _run(self, side: str, place: str) -> dict[str, ToolRow]:
        """Run a side, and return its rows by title."""
        self._progress.step(f"{place}: {side}", self._left_s())
        run = _run(self._commands[side], side, self._settings)
        self._done += 1
        return {row.title: row for row in run.rows}

    def _match(self, found: Mapping[str, Mapping[str, ToolRow]]) -> None:
        """Find the benchmarks that both sides have."""
        old, new = (found[side] for side in SIDES)
        if len(old) == len(new) == 1:
            # A program with one benchmark is often named by its file, which differs.
            titles = next(iter(old)), next(iter(new))
            name = titles[0] if titles[0] == titles[1] else " → ".join(titles)
            self._titles[name] = dict(zip(SIDES, titles, strict=True))
        else:
            self._titles = {title: dict.fromkeys(SIDES, title) for title in old if title in new}
        if not self._titles:
            raise ArgumentError(
                f"the commands have no benchmark in common: OLD has {_listed(old)}; NEW has {_listed(new)}; give them "
                f"the same names"
            )
        self.cases += [MeasuredRows(name) for name in self._titles]
        for side, mine in zip(SIDES, (old, new), strict=True):
            judged = {titles[side] for titles in self._titles.values()}
            alone = {title: row for title, row in mine.items() if title not in judged}
            if alone:
                self.notes.append(f"only in {side}: {_listed(alone)}")
        for case in self.cases:
            for side, title in self._titles[case.name].items():
                self._note(case, side, found[side][title])

    def _note(self, case: MeasuredRows, side: str, row: ToolRow) -> None:
        if row.error is not None:
            case.errors.setdefault(side, row.error)

    def _take(self, case: MeasuredRows, found: Mapping[str, Mapping[str, ToolRow]]) -> None:
        """Keep what a pair measured of a case."""
        times: dict[str, float] = {}
        rows: dict[str, ToolRow] = {}
        for side in SIDES:
            row = found[side].get(self._titles[case.name][side])
            if row is None:
                case.errors.setdefault(side, "a later run of the command had no such benchmark")
                return
            self._note(case, side, row)
            rows[side] = row
        if case.errors:
            return
        for side, row in rows.items():
            times[side] = float(interquartile_mean(np.array(row.times_ns, dtype=np.float64)))
        old, new = (rows[side] for side in SIDES)
        if old.series != new.series:
            case.errors.setdefault(SIDES[1], f"it has a time of another kind: {new.series}, and OLD {old.series}")
            return
        case.trials, case.samples = new.iterations, len(new.times_ns)
        self._note_step(case, [*old.times_ns, *new.times_ns])
        log = math.log(times[SIDES[1]] / times[SIDES[0]])
        case.taken.append({new.series: TakenRow([log], {side: [times[side]] for side in SIDES})})

    def _note_step(self, case: MeasuredRows, times_ns: Sequence[float]) -> None:
        """Note the smallest difference between two times, if some are equal: they are then counts of a step."""
        seen = self._seen.setdefault(case.name, [])
        seen += times_ns[:_MOST_SEEN]
        values = np.unique(np.array(seen, dtype=np.float64))
        if 1 < values.size < len(seen):
            case.step_ns = min(case.step_ns, float(np.diff(values).min()))


def _listed(titles: Mapping[str, ToolRow]) -> str:
    names = list(titles)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


# ---- one run


def _run(command: Command, side: str, settings: CommandSettings) -> ToolRun:
    """Run a command once, and return what it wrote.

    Raises
    ------
    ArgumentError
        If it does not start, fails, takes too long, or writes nothing that can be read.
    """

    def fail(problem: str) -> NoReturn:
        raise ArgumentError(f"{side} ({command.given}) {problem}")

    with tempfile.TemporaryDirectory(prefix="gridwise-ab-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        out, stdout, stderr = (folder / name for name in ("out.json", "stdout", "stderr"))
        words = [word.replace(OUT, str(out)) for word in command.words]
        try:
            code = _wait(words, stdout, stderr, settings.timeout_s)
        except subprocess.TimeoutExpired:
            fail(f"did not end within {settings.timeout_s:g} s; raise --timeout")
        except OSError as error:
            fail(f"does not start: {error.strerror or error}; write the program and its arguments in quotes")
        if code:
            ended = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
            fail(f"{ended}: {_last_line(stderr) or _last_line(stdout) or 'it printed nothing'}")
        written = out if command.writes_file else stdout
        size_bytes = written.stat().st_size if written.is_file() else 0
        if not size_bytes:
            if command.writes_file:
                if {">", "|"} & set(command.words):
                    in_shell = f"sh -c {shlex.quote(command.given)}"
                    fail(f"wrote no file to {OUT}: no shell reads it; write it as {in_shell}, in quotes")
                fail(f"wrote no file to {OUT}, which stands for {out.name}: is it the name that its option takes?")
            fail(f"printed nothing: give it its option that writes a file of JSON, with {OUT} as the name")
        if size_bytes > _MOST_BYTES:
            fail(f"wrote {size_bytes:,} bytes, and at most {_MOST_BYTES:,} are read: let it measure less, or say less")
        content = written.read_bytes()
        if not command.writes_file and settings.form is None:
            _refuse_text(content, fail)
        try:
            return read_tool_run(content, f"the output of {side}", settings.form, settings.unit, folder=folder)
        except BadResultsFile as error:
            raise ArgumentError(f"{error} ({command.given})") from error


def _refuse_text(content: bytes, fail: Any) -> None:
    """End with a message if a command printed neither JSON nor numbers: most programs write JSON only if asked to."""
    line = content.decode("utf-8-sig", "replace").strip().partition("\n")[0]
    with contextlib.suppress(ValueError):
        float(line)
        return
    if not line.startswith("{"):
        fail(
            f"printed {line[:60]!r}, not JSON: give it its option that writes a file of JSON, with {OUT} as the name, "
            f"or let it print one time per line, for --format numbers"
        )


def _wait(words: list[str], stdout: Path, stderr: Path, timeout_s: float) -> int:
    """Run a program to its end, and return its exit code; what it started is ended with it."""
    own_group: Mapping[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
    with stdout.open("wb") as out, stderr.open("wb") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, **own_group)
        try:
            return process.wait(timeout_s)
        finally:
            _end(process)


def _end(process: subprocess.Popen[Any]) -> None:
    """End a program, and what is left of its group: that would run beside the next turn."""
    if os.name == "nt":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: where only its zombie is left
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 4096, 0))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_MOST_CHARACTERS] if lines else ""
