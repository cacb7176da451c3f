"""Runs the jobs of a benchmark on one adapter, keeps finished cases, and continues after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

from ...errors import ArgumentError, GridwiseError
from ...runtime.context import context_of
from ...runtime.device import request_device
from ...runtime.gpu_clock import clock_held
from ...storage.records import Record
from ...types.datatype import STORAGE_DATATYPES, as_datatype
from ..calibrate.calibration import Calibration, calibrate_run
from ..calibrate.probes import copy_item_ns
from ..cases.case import YARDSTICK, array_items
from ..cases.mode import Mode
from ..results.context import run_header
from ..results.entries import result_of
from ..results.model import CaseKey, Result, Results
from ..results.reader import read_results
from ..results.shares import calibrated, with_shares
from ..results.ticks import read_ticks
from ..results.writer import ResultsWriter
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from .budget import CostModel, Schedule, choose_n
from .isolate import IsolationError, measure_isolated, measure_job
from .suite import Job

__all__ = ["Request", "RunProgress", "UnwrittenResults", "run_jobs"]

# After these errors a device may be broken, and would fail all later cases. By name, because `measure` may have caught
# them.
_DEVICE_ERRORS = ("Device", "GPU")
_SAME_DEVICE = ("adapter", "adapter_type", "backend", "driver", "subgroup_size", "tick_period_ns")


@dataclass(frozen=True)
class Request:
    """The settings of a run, for any adapter.

    Attributes
    ----------
    jobs : sequence of Job
        In the order in which they are measured.
    protocol : SamplingProtocol
    command : sequence of str or None
        The words of the command line, for the file.
    suite : str or None
    isolate : bool
        Run each job in a separate process.
    jobs_at : callable, optional
        Returns the jobs at another n. Given if the user gave no n; then `choose_n` chooses one on a CPU adapter.
    budget_s : float
        The time in which a run with a chosen n should end.
    """

    jobs: Sequence[Job]
    protocol: SamplingProtocol
    command: Sequence[str] | None = None
    suite: str | None = None
    isolate: bool = False
    jobs_at: Callable[[int], Sequence[Job]] | None = None
    budget_s: float = 60.0


class RunProgress:
    """Receives the progress of a run, and ignores it; a base class."""

    def step(self, text: str) -> None:
        """A step other than a case begins."""

    def planned(self, schedule: Schedule, adapter: str, chosen_n: int | None) -> None:
        """The plan of the run is known; `chosen_n` is None if the budget did not choose n."""

    def kept(self, job: Job) -> None:
        """A case is in the file to resume from, so it is not measured again."""

    def began(self, job: Job, to_come: Sequence[Job]) -> None:
        """A case begins; `to_come` are the later ones."""

    def finished(self, job: Job, result: Result) -> None:
        """A case is done."""

    def left_out(self, job: Job) -> None:
        """A case is left out, because it would end after the budget."""


class UnwrittenResults(Exception):
    """Everything was measured, but its file could not be written.

    Attributes
    ----------
    document : Results
        As `run_jobs` returns it.
    error : OSError
    """

    def __init__(self, document: Results, error: OSError):
        super().__init__(str(error))
        self.document = document
        self.error = error


def _failed(job: Job, protocol: SamplingProtocol, error: str) -> Result:
    """Return the result of a job that was not measured."""
    case = job.case
    nothing = Measurement(case.primitive, job.mode, case.n, case.axes, protocol=protocol.to_dict(), error=error)
    return result_of(nothing, position=job.position, round_number=job.round)


def run_jobs(
    request: Request,
    adapter: int | str | None,
    *,
    json_path: Path | None = None,
    resume_from: Path | None = None,
    progress: RunProgress | None = None,
) -> Results:
    """Run jobs on an adapter and return the document, its results in the order in which they were asked for.

    Parameters
    ----------
    request : Request
    adapter : int, str or None
        As `request_device` takes it.
    json_path : Path, optional
        The results file. Until the run is done, its partial file has the finished cases.
    resume_from : Path, optional
        A results file, whose finished cases are kept and not measured again.
    progress : RunProgress, optional

    Raises
    ------
    ArgumentError
        If the file to resume from is of another device, protocol or version.
    UnwrittenResults
        If the results file could not be written at the end. A full disk during the run does not stop it: all finished
        cases are written again after the next case.
    """
    with ExitStack() as stack:
        return _run_jobs(request, adapter, json_path, resume_from, progress or RunProgress(), stack)


def _run_jobs(
    request: Request,
    adapter: int | str | None,
    json_path: Path | None,
    resume_from: Path | None,
    progress: RunProgress,
    stack: ExitStack,
) -> Results:
    """As `run_jobs`; the stack is closed at its end."""
    begin_s = time.perf_counter()
    progress.step("finding the adapter")
    device = request_device(adapter)
    held = stack.enter_context(clock_held(device))
    protocol = request.protocol
    header = run_header(
        device, protocol=protocol.to_dict(), seed=protocol.seed, command=request.command, suite=request.suite
    )
    header = replace(header, context=replace(header.context, clock=held))
    calibration: Calibration | None = None
    is_calibrated = False
    kept = None if resume_from is None else _Kept(resume_from, header)
    if kept is not None:
        header = replace(header, context=replace(header.context, resumed=kept.resumed))
    schedule, chosen_n = _schedule(device, request, None if kept is None else kept.n, begin_s)
    progress.planned(schedule, header.device.adapter, chosen_n)
    writer = None if json_path is None else ResultsWriter(json_path, header, len(schedule.jobs))
    results: list[Result] = []

    def keep(result: Result, ticks: np.ndarray | None = None) -> None:
        results.append(result)
        if writer is not None:
            writer.add(result, ticks)

    todo: list[Job] = []
    for job in schedule.jobs:
        key = _job_key(_failed(job, protocol, "not measured yet"))
        if kept is not None and key in kept.results:
            progress.kept(job)
            keep(replace(kept.results[key], position=job.position), kept.ticks[key])
        else:
            todo.append(job)
    for i, planned in enumerate(todo):
        job = schedule.fitted(planned)
        if job is None:
            progress.left_out(planned)
            continue
        progress.began(job, todo[i + 1 :])
        schedule.began()
        try:
            if request.isolate:
                result = measure_isolated(adapter, job, protocol)
            else:
                result = measure_job(device, job, protocol)
        except IsolationError as error:
            result = _failed(job, protocol, str(error))
        except Exception as error:
            # A failure of one case does not stop the others.
            result = _failed(job, protocol, f"{type(error).__name__}: {error}"[:2000])
        if not request.isolate and (result.error or "").startswith(_DEVICE_ERRORS):
            device = request_device(adapter)
        schedule.finished(job, None if result.cold_start_ns is None else result.cold_start_ns * 1e-9)
        progress.finished(job, result)
        if not is_calibrated:
            # Not before the first case, so that the first figure comes early.
            progress.step("measuring what the device can do")
            calibration, is_calibrated = _calibration(device, todo), True
            header = replace(header, device=calibrated(header.device, calibration))
        keep(with_shares(result, calibration))
        if writer is not None:
            writer.header = header
            with suppress(OSError):
                writer.save()
    document = replace(header, results=tuple(results))
    document = replace(document, results=tuple(document.in_order()))
    if writer is not None:
        try:
            _, *beside = writer.finish()
            document = replace(document, ticks_file=beside[0].name if beside else None)
        except OSError as error:
            raise UnwrittenResults(document, error) from error
    return document


def _schedule(
    device: wgpu.GPUDevice, request: Request, resumed_n: int | None, begin_s: float
) -> tuple[Schedule, int | None]:
    """Return the schedule of the jobs, and the n if it was chosen here."""
    on_cpu = context_of(device).capabilities.is_cpu
    model = CostModel(request.protocol, copy_item_ns(device) if on_cpu else None, request.isolate)
    if not on_cpu or request.jobs_at is None:
        return Schedule(request.jobs, model, time.perf_counter, begin_s), None
    n = resumed_n or choose_n(request.jobs_at, model, request.budget_s)
    return Schedule(request.jobs_at(n), model, time.perf_counter, begin_s, request.budget_s), n


def _calibration(device: wgpu.GPUDevice, jobs: Sequence[Job]) -> Calibration | None:
    """Measure floors and ceilings for jobs; None if the device cannot, which does not stop the run."""
    sizes = {
        array_items(job.case.primitive, job.case.n) * as_datatype(job.case.datatype, STORAGE_DATATYPES).itemsize_bytes
        for job in jobs
    }
    try:
        return calibrate_run(device, sizes, cold=any(job.mode is Mode.COLD for job in jobs))
    except (GridwiseError, wgpu.GPUError, MemoryError):
        return None


def _job_key(result: Result) -> tuple[CaseKey, int]:
    return result.key, result.round


class _Kept:
    """The finished cases of an earlier run, which must be of the same kind as this one."""

    def __init__(self, path: Path, header: Results):
        document = read_results(path)
        then, now = document.context, header.context
        _need_same(path, "device", _part(document.device, _SAME_DEVICE), _part(header.device, _SAME_DEVICE))
        _need_same(path, "protocol", document.protocol, header.protocol)
        for name in ("gridwise_py", "wgpu"):
            _need_same(path, "versions", {name: then.versions.get(name)}, {name: now.versions.get(name)})
        _need_same(path, "commit", _part(then.git, ["commit"]), _part(now.git, ["commit"]))
        finished = [result for result in document.results if result.error is None]
        self.results = {_job_key(result): replace(result, ticks=None) for result in finished}
        # Only those in the second file; the others are in the results.
        self.ticks = {
            _job_key(result): None if result.ticks is None else read_ticks(path, document, result)
            for result in finished
        }  # fmt: skip
        #: The n of the run; cases that did not fit a budget are smaller.
        self.n = max((r.n for r in finished if r.primitive != YARDSTICK or len(finished) == 1), default=None)
        #: Start times of the runs that the new run continues.
        self.resumed = (*then.resumed, then.time)


def _part(record: Record | None, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def _need_same(path: Path, what: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            raise ArgumentError(
                f"--resume {path.name}: its {what} has {name} = {then.get(name)!r}, this run {now.get(name)!r}; "
                f"give the same options on the same machine, or begin a new file"
            )
