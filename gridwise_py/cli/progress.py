"""Progress of `gridwise bench` and `ab` on stderr: the current step, results so far, the time left.

On a terminal this is a live display, erased at the end. Elsewhere it is a line per finished case (`ab`: per pair of
processes), and further lines during a long one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from ..bench.ab.turns import Progress
from ..bench.report.console import make_console
from ..bench.report.table import result_line
from ..bench.results.model import Result
from ..bench.sweep.budget import Schedule
from ..bench.sweep.runner import RunProgress
from ..bench.sweep.suite import Job
from ..display.quantities import format_count
from .output import LINE_EVERY_S, note

_REFRESHES_PER_S = 4
_LINES_SHOWN = 6
_BAR_WIDTH = 30
# Shorter compilations are not mentioned.
_LONG_COMPILE_S = 2.0


def format_duration(seconds: float) -> str:
    """Return a duration for someone who waits: ``"35 s"``, ``"1 min 40 s"``, ``"2 h 5 min"``."""
    whole = max(1, round(seconds))
    if whole <= 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = round(whole / 60)
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


class BenchProgress(RunProgress):
    """Shows a run on a console. A context manager; `left_out_notes` holds the notes to print below the table.

    Parameters
    ----------
    console : rich.console.Console
        Of stderr.
    clock : callable
        Seconds since any moment.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.perf_counter):
        self._console, self._clock = console, clock
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=_LINES_SHOWN)
        self._doing = ""
        self._schedule: Schedule | None = None
        self._running: Job | None = None
        self._compile_s = 0.0
        self._to_come: Sequence[Job] = ()
        self._done, self._total = 0, 0
        self._process: int = 0
        self._live: Live | None = None
        self._ended = threading.Event()
        self._said_s = 0.0
        self._thread: threading.Thread | None = None
        self.left_out_notes: list[str] = []

    # ---- the display

    def __enter__(self) -> BenchProgress:
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._display, console=self._console, refresh_per_second=_REFRESHES_PER_S, transient=True
            )
            self._live.start()
        else:
            self._said_s = self._clock()
            self._thread = threading.Thread(target=self._say_now_and_then, name="gridwise progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _display(self) -> RenderableType:
        with self._lock:
            parts: list[RenderableType] = [Text(line, style="dim") for line in self._lines]
            if self._total:
                parts.append(ProgressBar(total=self._total, completed=self._done, width=_BAR_WIDTH))
            return Group(*parts, Text(self.status()))

    def _say_now_and_then(self) -> None:
        while not self._ended.wait(0.2):
            with self._lock:
                if self._clock() - self._said_s >= LINE_EVERY_S and (text := self.status()):
                    self._say(text)

    def _say(self, text: str) -> None:
        self._said_s = self._clock()
        self._console.print(Text(text), soft_wrap=True)

    def _line(self, text: str) -> None:
        if self._live is not None:
            self._lines.append(text)
        else:
            self._say(text)

    def status(self) -> str:
        """Return the current step, its elapsed time and the time left, in one line."""
        if self._schedule is None or self._running is None:
            return f"{self._doing} …" if self._doing else ""
        in_case_s = self._schedule.case_elapsed_s
        behind_s = self._schedule.left_s(self._to_come)
        left_s = self._schedule.left_s([self._running, *self._to_come]) - in_case_s
        words = [f"{self._place(self._done + 1)}: {self._running}, for {format_duration(in_case_s)}"]
        if self._compile_s >= _LONG_COMPILE_S:
            words[0] += " (its first use compiles its kernels)"
        words.append(f"{format_duration(self._schedule.elapsed_s)} in all")
        if self._schedule.budget_s is not None:
            # Cases that would end later are left out.
            rest_s = max(self._schedule.budget_s - self._schedule.elapsed_s, 0.0)
            left_s, behind_s = min(left_s, rest_s), min(behind_s, rest_s)
        if left_s >= behind_s and left_s > 0:
            words.append(f"about {format_duration(left_s)} left")
        else:
            words.append("longer than expected")
            if self._to_come and behind_s > 0:  # past the budget, none of them is measured
                words.append(f"about {format_duration(behind_s)} for the other cases")
        return ", ".join(words)

    def _place(self, count: int) -> str:
        """Return how far the run is: the process, unless it is the only one, and the case."""
        place = f"{count} of {self._total}"
        processes = None if self._schedule is None else self._schedule.processes
        if processes == 1:
            return place
        return f"process {self._process + 1}{f' of {processes}' if processes else ''}, {place}"

    # ---- what a run tells

    def step(self, text: str) -> None:
        """Show the step with the next line or refresh."""
        with self._lock:
            self._doing, self._running = text, None

    def planned(self, schedule: Schedule, adapter: str, chosen_n: int | None) -> None:
        """Print the number of cases and their expected time."""
        with self._lock:
            self._schedule = schedule
            self._total = self._cases_of_process()
            count = len({job.position for job in schedule.jobs})
            cases = "1 case" if count == 1 else f"{count} cases"
            if schedule.processes not in (None, 1):
                cases += f" in {schedule.processes} processes"
            if schedule.fills_budget and schedule.budget_s is not None:
                text = f"{cases} on {adapter}: one process, then more until {format_duration(schedule.budget_s)} are "
                text += "over, which narrow the intervals; Ctrl-C shows what is measured by then"
            else:
                text = f"{cases} on {adapter}, about {format_duration(schedule.left_s(schedule.jobs))}"
            if chosen_n is not None and schedule.budget_s is not None:
                n = format_count(chosen_n)
                text += (
                    f". n = {n}: the largest candidate that should end within "
                    f"{format_duration(schedule.budget_s)} on this CPU. To change it: --n 2^24, or --budget 600s"
                )
            self._console.print(Text(text + "."), soft_wrap=self._live is None)
            self._said_s = self._clock()

    def _cases_of_process(self) -> int:
        assert self._schedule is not None, "the plan is known first"
        return len([job for job in self._schedule.jobs if job.process == 0 and job.round < self._schedule.rounds])

    def process(self, number: int) -> None:
        """Count the cases from 1 again."""
        with self._lock:
            if number != self._process:
                self._process, self._done = number, 0
                self._total = self._cases_of_process()
            self._doing, self._running = f"starting process {number + 1}", None

    def kept(self, job: Job) -> None:
        """Count it."""
        with self._lock:
            if job.process == self._process:
                self._done += 1

    def began(self, job: Job, to_come: Sequence[Job]) -> None:
        """Show it."""
        with self._lock:
            self._running, self._to_come = job, to_come
            self._compile_s = 0.0 if self._schedule is None else self._schedule.compile_s(job)

    def finished(self, job: Job, result: Result) -> None:
        """Print the result of a finished case."""
        with self._lock:
            self._done, self._running, self._doing = self._done + 1, None, ""
            # The figures of the first process; those of the others are added to the table.
            if job.process == 0:
                self._line(f"{self._place(self._done)}: {result_line(result)}")
            elif self._done == self._total:
                self._line(f"process {job.process + 1}: done")

    def left_out(self, job: Job) -> None:
        """Print that a case is left out, and keep the note for the table."""
        with self._lock:
            self._done += 1
            budget_s = None if self._schedule is None else self._schedule.budget_s
            within = "" if budget_s is None else f" within {format_duration(budget_s)}"
            case, n = job.case, format_count(job.case.n).replace(",", "_")
            command = f"gridwise bench {case.primitive} --n {n} --datatype {case.datatype}"
            if case.own_workload is not None:
                axes = "".join(f" -a {name}={value}" for name, value in case.others)
                command = f"gridwise bench {case.own_workload.path.name} {case.own_workload.declared.name}{axes}"
            text = f"{job}: not measured{within}. {command} measures it."
            self.left_out_notes.append(text)
            self._line(f"{self._done} of {self._total}: {text}")


class TurnsProgress(Progress):
    """Shows how far `gridwise ab` is: on a terminal each case, else a line per pair of processes.

    Parameters
    ----------
    say : callable
        Of `showing_progress`.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say, self._is_terminal = say, make_console(stderr=True).is_terminal

    def step(self, text: str, left_s: float | None) -> None:
        """Show the step and the time left."""
        self._say(text + _left(left_s))

    def pair_done(self, pair: int, pairs: int, left_s: float) -> None:
        """Print a line, except on a terminal."""
        if not self._is_terminal:
            note(f"pair {pair} of {pairs}: measured{_left(left_s if pair < pairs else None)}")


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"; about {format_duration(seconds)} left"
