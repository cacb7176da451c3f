"""What goes wrong on a worker of a fleet: functions that a test runs there, and that stay until the worker ends."""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from distributed import WorkerPlugin

from gridwise_py.bench.results.writer import ResultsWriter
from gridwise_py.bench.sweep import runner
from gridwise_py.bench.sweep.worker import WorkerError

_ORIGINAL = runner.measure_job
_ISOLATED = runner.measure_isolated


def mend():
    """Undo what was done to this worker."""
    runner.measure_job, runner.measure_isolated = _ORIGINAL, _ISOLATED


def die_in(case):
    """End this process in its next case number `case`."""
    left = [case]

    def measure(*given):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return _ORIGINAL(*given)

    runner.measure_job = measure


def hang_in(case, flag):
    """Stop in case number `case`, until the file `flag` is there."""
    left = [case]

    def measure(*given):
        left[0] -= 1
        while left[0] < 0 and not Path(flag).exists():
            time.sleep(0.05)
        return _ORIGINAL(*given)

    runner.measure_job = measure


def kill_in(case, mark, pid=None):
    """Kill a process in case number `case`, once: `pid`, or the parent, which is the Nanny's."""
    left = [case]

    def measure(*given):
        left[0] -= 1
        if left[0] < 0 and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getppid() if pid is None else pid, signal.SIGKILL)
            time.sleep(60)  # this process ends with it
        return _ORIGINAL(*given)

    runner.measure_job = measure


def be_wrong():
    """Find every result wrong."""
    runner.measure_job = lambda *given: replace(_ORIGINAL(*given), correct=False, mismatch="item 3")


def fill_disk():
    """Let no results file be written at the end."""

    def finish(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ResultsWriter.finish, ResultsWriter.finish_before = finish, ResultsWriter.finish


def free_disk():
    """Undo `fill_disk`."""
    ResultsWriter.finish = ResultsWriter.finish_before


class Poison(WorkerPlugin):
    """Ends the process of one device at one case, whenever it comes, also after the worker was started again."""

    name = "poison"

    def __init__(self, tag, primitive):
        self.tag, self.primitive = tag, primitive

    def setup(self, worker):
        """Put the poison in, on the one worker."""
        if self.tag not in worker.state.total_resources:
            return

        def measure(device, job, protocol):
            if job.case.primitive == self.primitive:
                os._exit(9)
            return _ORIGINAL(device, job, protocol)

        def isolated(adapter, job, protocol):
            if job.case.primitive == self.primitive:
                raise WorkerError("the process of the case ended with 9")
            return _ORIGINAL(runner.request_device(adapter), job, protocol)

        runner.measure_job, runner.measure_isolated = measure, isolated
