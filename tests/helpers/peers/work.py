"""The processes that make the calls, one at a time each: what crashes or hangs one of them is a finding, too."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

#: Addresses a worker may use: an absurd length fails at once, in numpy as well as here.
MEMORY_BYTES = 7 << 30
#: CPU time that a call may take, and time on the clock on a machine that does other work.
CPU_S, WALL_S = 20.0, 90.0


@dataclass(frozen=True)
class Task:
    """A call by its seed and index, or by its text."""

    seed: int = 0
    index: int = 0
    text: str = ""
    shrink: bool = True


@dataclass(frozen=True)
class Report:
    """What came of a task."""

    name: str
    finding: Any = None
    call: str = ""
    paste: str = ""
    refusal: str | None = None
    allowed: str | None = None
    outcome: str = ""
    #: The kind of a finding that was none when the call was made with kernels.
    doubted: str = ""


def call_of(task: Task, only: tuple[str, ...] = (), dry: bool = False) -> Any:
    """Return the call of a task."""
    from .calls import parsed
    from .chains import drawn_at

    return parsed(task.text) if task.text else drawn_at(task.seed, task.index, only, alone=dry)


def report_of(
    task: Task,
    only: tuple[str, ...] = (),
    seen: set[Any] | None = None,
    dry: bool = False,
    without_kernels: Any = None,
) -> Report:
    """Make the call, and where it has a new finding, a smaller one with the same.

    With `without_kernels` (`dry.DryRuns`) it is made in there first, and with kernels only if it has a finding there.
    """
    from .calls import text
    from .judge import Finding, judged
    from .smaller import smaller

    call, doubted = call_of(task, only, dry), ""
    try:
        if without_kernels is not None:
            with without_kernels():
                result = judged(call, items=False)
            doubted = result.finding.kind if result.finding is not None else ""
        if without_kernels is None or doubted:
            result = judged(call)
    except Exception:
        where = "".join(traceback.format_exc().splitlines(keepends=True)[-6:])
        return Report(call.name, Finding(call.name, "harness", where, where[-80:]), text(call))
    outcome = "error" if result.gridwise.error is not None else "result"
    if result.finding is None:
        return Report(call.name, None, "", "", result.refusal, result.allowed, outcome, doubted)
    finding, small = result.finding, call
    if seen is None or finding.group not in seen:
        if seen is not None:
            seen.add(finding.group)
        if task.shrink:

            def holds(candidate: Any) -> bool:
                try:
                    other = judged(candidate)
                except Exception:
                    return False
                same = (finding.name, finding.kind, finding.mark if finding.kind in ("leak", "refusal") else "")
                return (
                    other.finding is not None
                    and type(other.numpy.error) is type(result.numpy.error)
                    and "required positional" not in str(other.numpy.error)
                    and (*other.finding.group[:2], other.finding.mark if same[2] else "") == same
                )

            small = smaller(call, holds)
            if small is not call:
                finding = judged(small).finding or finding
                finding = Finding(finding.name, finding.kind, finding.detail, result.finding.mark)
    return Report(call.name, finding, text(small), pasted(small), None, None, outcome)


def pasted(call: Any) -> str:
    """Return lines of Python that show a finding."""
    from .calls import text

    lines = ["import numpy as np, gridwise_py as gw"]
    if hasattr(np, call.name) or not call.name.isidentifier():
        lines.append(f"print(repr({text(call, 'np', 200)}))")
    lines.append(f"print(repr({text(call, 'gw', 200)}))")
    return "\n".join(lines)


# ---- a process


def bounded() -> None:
    """Bound the memory of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def work(pipe: Connection, only: tuple[str, ...], dry: bool = False) -> None:
    """Take tasks from a pipe and report, until the pipe ends."""
    bounded()
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
    sys.setrecursionlimit(3000)
    import gridwise_py as gw
    from gridwise_py.internals import expect_software

    expect_software()  # a call on a slow CPU may say that it compiles
    gw.default_device()
    without_kernels = None
    if dry:
        from .dry import DryRuns

        without_kernels = DryRuns()
    pipe.send(gw.__file__)
    seen: set[Any] = set()
    calls = 0
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        report = report_of(task, only, seen, dry, without_kernels)
        try:
            pipe.send(report)
        except OSError:  # the time is over
            return
        calls += 1
        if calls % 500 == 0:
            gw.empty_cache()


class Worker:
    """A process that makes calls, and is replaced when it is lost."""

    def __init__(self, only: tuple[str, ...], dry: bool = False):
        self._only, self._dry = only, dry
        self.task: Task | None = None
        self.begun = 0.0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self._only, self._dry), daemon=True)
        self.process.start()
        theirs.close()
        self.where = self.pipe.recv()

    def give(self, task: Task) -> None:
        self.task, self.begun, self._cpu = task, time.monotonic(), self._cpu_s()
        self.pipe.send(task)

    def _cpu_s(self) -> float:
        try:
            with open(f"/proc/{self.process.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            return time.monotonic()

    def is_late(self) -> bool:
        wall = time.monotonic() - self.begun
        # Making a call smaller may take a while, too.
        return wall > CPU_S and (self._cpu_s() - self._cpu > 2 * CPU_S or wall > WALL_S)

    def restart(self) -> int | None:
        """Start a new process; return the exit code of the old one, None if it was alive."""
        self.process.join(0.5)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        self.pipe.close()
        self.task = None
        self._start()
        return code

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(5)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
