"""Runs the jobs of a benchmark on one adapter, keeps finished cases, and continues after a failure."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import wgpu

from ... import request_device
from ...errors import ArgumentError, GridwiseError
from ...internals import clock_held, context_of
from ...storage.records import Record
from ..calibrate.calibration import Calibration, calibrate_run
from ..calibrate.probes import copy_item_ns
from ..cases.case import YARDSTICK
from ..cases.mode import Mode
from ..results.context import run_header
from ..results.model import CaseKey, CaseLevels, Result, Results
from ..results.precision import TARGET, half_interval, levels_of
from ..results.reader import read_results
from ..results.rounds import by_case
from ..results.shares import array_bytes, calibrated, with_shares
from ..results.ticks import read_ticks
from ..results.writer import ResultsWriter
from ..sampling.protocol import SamplingProtocol
from .budget import PILOT_PROCESSES, PILOT_ROUNDS, CostModel, Schedule, choose_n
from .suite import Job, in_processes
from .worker import Worker, WorkerError, failed_result, files_of_cases, measure_isolated, measure_job

#: Of a run whose n is chosen.
DEFAULT_BUDGET_S = 60.0

#: Of the energy sensor, in all visits of a case together.
ENERGY_WINDOWS = 6

#: Processes of a run whose request leaves the number open: on a GPU, and on a CPU adapter, where each takes longer.
PROCESSES, PROCESSES_ON_CPU = 5, 3
#: The most that a run starts to fill its budget.
MOST_PROCESSES = 50

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
        Of one process, in the order in which they are measured.
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
    processes : int or None
        In how many processes all jobs are measured. With one, it is this process; further ones are workers that run one
        after the other. None: `PROCESSES`, or `PROCESSES_ON_CPU`.
    fills_budget : bool
        Whether to start further processes while they are expected to end within the budget, for the cases whose
        intervals are not narrow yet.
    order_seed : int or None
        Of the order of the jobs in the second and later processes; None: the same order.
    """

    jobs: Sequence[Job]
    protocol: SamplingProtocol
    command: Sequence[str] | None = None
    suite: str | None = None
    isolate: bool = False
    jobs_at: Callable[[int], Sequence[Job]] | None = None
    budget_s: float = DEFAULT_BUDGET_S
    processes: int | None = 1
    fills_budget: bool = False
    order_seed: int | None = None


class RunProgress:
    """Receives the progress of a run, and ignores it; a base class. `made` returns what is measured so far."""

    made: Callable[[], Results] | None = None

    def step(self, text: str) -> None:
        """A step other than a case begins."""

    def planned(self, schedule: Schedule, adapter: str, chosen_n: int | None) -> None:
        """The plan of the run is known; `chosen_n` is None if the budget did not choose n."""

    def kept(self, job: Job) -> None:
        """A case is in the file to resume from, so it is not measured again."""

    def process(self, number: int) -> None:
        """A worker process starts; its number counts from 0."""

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
        run = _Run(request, adapter, resume_from, progress or RunProgress(), stack)
        if json_path is not None:
            planned = None if request.fills_budget else len(run.schedule.jobs)
            run.writer = ResultsWriter(json_path, run.header, planned)
            stack.callback(run.writer.close)
        run.measure_all(run.take_kept())
        return run.finish()


class _Run:
    """A run on one adapter, and what it has measured so far; the stack is closed at its end."""

    def __init__(
        self,
        request: Request,
        adapter: int | str | None,
        resume_from: Path | None,
        progress: RunProgress,
        stack: ExitStack,
    ):
        begin_s = time.perf_counter()
        progress.step("finding the adapter")
        device = request_device(adapter)
        clock = stack.enter_context(clock_held(device))
        self._request = request = _in_numbers(request, on_cpu=context_of(device).capabilities.is_cpu)
        self._progress = progress
        protocol = request.protocol
        header = run_header(
            device, protocol=protocol.to_dict(), seed=protocol.seed, command=request.command, suite=request.suite
        )
        self._kept = kept = None if resume_from is None else _Kept(resume_from, header)
        resumed = () if kept is None else kept.resumed
        self.header: Results = replace(header, context=replace(header.context, clock=clock, resumed=resumed))
        self.schedule, chosen_n = _schedule(device, request, None if kept is None else kept.n, begin_s)
        if kept is not None:
            kept.need_all_in(self.schedule.jobs)
        progress.planned(self.schedule, header.device.adapter, chosen_n)
        self.writer: ResultsWriter | None = None
        self._results: list[Result] = []
        self._calibration: Calibration | None = None
        self._is_calibrated = False
        self._measuring = stack.enter_context(_Measuring(request, adapter, device, progress))

    def take_kept(self) -> list[Job]:
        """Take the results of jobs that an earlier run finished; return the other jobs."""
        todo: list[Job] = []
        for job in self.schedule.jobs:
            found = None if self._kept is None else self._kept.of(job)
            if found is None:
                todo.append(job)
            else:
                self._progress.kept(job)
                self._keep(*found)
        return todo

    def _keep(self, result: Result, ticks: np.ndarray | None = None) -> None:
        self._results.append(result)
        if self.writer is not None:
            self.writer.add(result, ticks)

    def document(self) -> Results:
        """Return what is measured so far."""
        found = replace(self.header, levels=self._levels(), results=tuple(self._results))
        return replace(found, results=tuple(found.in_order()))

    def _levels(self) -> tuple[CaseLevels, ...]:
        return levels_of(self._results, self._measuring.start_s)

    def measure_all(self, todo: Sequence[Job]) -> None:
        """Measure jobs, as the schedule lets them."""
        fills_budget, schedule, progress = self._request.fills_budget, self.schedule, self._progress
        progress.made = self.document
        for i, job in enumerate(todo):
            if fills_budget and job.process >= PILOT_PROCESSES and self._measuring.samples is None:
                self._measuring.samples = schedule.after_pilot(self._levels())
            if fills_budget and i and job.process > todo[i - 1].process:
                schedule.after_process(job.process, _narrow(self._results, schedule.settled))
            if not schedule.admits(job):
                if job.process == job.round == 0:
                    progress.left_out(job)
                continue
            schedule.started(job.process, self._measuring.prepare(job))
            progress.began(job, todo[i + 1 :])
            schedule.began()
            result = self._measuring.measure(job)
            schedule.finished(job, None if result.cold_start_ns is None else result.cold_start_ns * 1e-9)
            progress.finished(job, result)
            try:
                if not self._is_calibrated:
                    self._calibrate(todo)
            finally:  # Ctrl-C in between does not lose the case
                self._keep(with_shares(result, self._calibration))
            if self.writer is not None:
                self.writer.header = self.header
                with suppress(OSError):
                    self.writer.save_in_turn()

    def _calibrate(self, todo: Sequence[Job]) -> None:
        # Not before the first case, so that the first figure comes early.
        self._progress.step("measuring what the device can do")
        self._calibration, self._is_calibrated = _calibration(self._measuring.device, todo), True
        self.header = replace(self.header, device=calibrated(self.header.device, self._calibration))

    def finish(self) -> Results:
        """Write the file, and return the document."""
        document, writer = self.document(), self.writer
        if writer is None:
            return document
        writer.header = replace(self.header, levels=document.levels)
        writer.planned = len(self._results) if self._request.fills_budget else writer.planned
        try:
            _, *beside = writer.finish()
        except OSError as error:
            raise UnwrittenResults(document, error) from error
        return replace(document, ticks_file=beside[0].name if beside else None)


def _narrow(results: Sequence[Result], settled: Collection[int]) -> list[int]:
    """Return the positions of the cases whose intervals are narrow, but for those that are known."""
    return [
        visits[0].position
        for visits in by_case(results).values()
        if visits[0].position not in settled and half_interval(visits) <= TARGET
    ]


def _in_numbers(request: Request, *, on_cpu: bool) -> Request:
    """Return a request with its number of processes, which share the time of a case."""
    processes = request.processes or (PROCESSES_ON_CPU if on_cpu else PROCESSES)
    rounds = 1 + max((job.round for job in request.jobs), default=0)
    windows = math.ceil(request.protocol.energy_windows / (processes * rounds))
    protocol = replace(request.protocol, timeout_s=request.protocol.timeout_s / processes, energy_windows=windows)
    if on_cpu:
        # Each process of a GPU must raise its clock again; here there is none to raise.
        protocol = replace(protocol, warmup_s=protocol.warmup_s / processes)
    return replace(request, processes=processes, protocol=protocol)


class _Measuring:
    """Measures jobs where the request says: here, in a process per job, or in a worker per process of the run.

    A context manager; its worker ends with it.
    """

    def __init__(self, request: Request, adapter: int | str | None, device: wgpu.GPUDevice, progress: RunProgress):
        self._request, self._adapter, self._progress = request, adapter, progress
        self.device = device
        self._worker: Worker | None = None
        self._of_process: int | None = None
        #: What the start of a worker took, the last one.
        self.start_s: float = 0.0
        #: Samples that a visit needs at most, once the pilot has shown it.
        self.samples: int | None = None
        self._problem: str | None = None
        self._files = files_of_cases(job.case for job in request.jobs)

    def __enter__(self) -> _Measuring:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.__exit__(kind, error, trace)

    @property
    def _here(self) -> bool:
        return self._request.processes == 1 and not self._request.fills_budget and not self._request.isolate

    def prepare(self, job: Job) -> float:
        """Start the worker of a job if it does not run, and return how many seconds that took."""
        if self._here or self._request.isolate or (self._worker is not None and self._of_process == job.process):
            return 0.0
        begin_s = time.perf_counter()
        self._end_worker()
        name = f"process {job.process + 1}"
        self._progress.process(job.process)
        self._problem = None
        try:
            self._worker, self._of_process = Worker(self._adapter, self._protocol, name, self._files), job.process
        except WorkerError as error:
            self._problem = str(error)
        self.start_s = time.perf_counter() - begin_s
        return self.start_s

    @property
    def _protocol(self) -> SamplingProtocol:
        protocol = self._request.protocol
        if self.samples is None or self.samples >= protocol.max_samples:
            return protocol
        return replace(protocol, max_samples=self.samples, block_trials=min(protocol.block_trials, self.samples))

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def measure(self, job: Job) -> Result:
        """Measure a job; a failure of one does not stop the others."""
        protocol = self._request.protocol
        try:
            if self._request.isolate:
                return measure_isolated(self._adapter, job, protocol)
            if self._here:
                result = measure_job(self.device, job, protocol)
            elif self._worker is not None:
                result = self._worker.measure(job)
            else:
                return failed_result(job, protocol, self._problem or "its process does not run")
        except WorkerError as error:
            # The next job gets another worker.
            self._worker = None
            return failed_result(job, protocol, str(error))
        except Exception as error:
            result = failed_result(job, protocol, f"{type(error).__name__}: {error}"[:2000])
        if (result.error or "").startswith(_DEVICE_ERRORS):
            if self._here:
                self.device = request_device(self._adapter)
            else:
                self._end_worker()
        return result


def _schedule(
    device: wgpu.GPUDevice, request: Request, resumed_n: int | None, begin_s: float
) -> tuple[Schedule, int | None]:
    """Return the schedule of the jobs, and the n if it was chosen here."""
    on_cpu = context_of(device).capabilities.is_cpu
    model = CostModel(request.protocol, copy_item_ns(device) if on_cpu else None, request.isolate)
    processes = PILOT_PROCESSES if request.fills_budget else request.processes or 1

    def of_all(jobs: Sequence[Job], processes: int) -> list[Job]:
        return in_processes(jobs, processes, request.order_seed)

    chosen_n, jobs, jobs_at = None, request.jobs, request.jobs_at
    if on_cpu and jobs_at is not None:
        chosen_n = resumed_n or choose_n(lambda n: of_all(jobs_at(n), processes), model, request.budget_s)
        jobs = jobs_at(chosen_n)
    if request.fills_budget and request.budget_s >= DEFAULT_BUDGET_S and not any(job.round for job in jobs):
        # The pilot shows how many of these rounds are worth their time.
        jobs = [replace(job, round=number) for number in range(PILOT_ROUNDS + 1) for job in jobs]
    all_jobs = of_all(jobs, MOST_PROCESSES if request.fills_budget else processes)
    budget_s = request.budget_s if request.fills_budget or chosen_n is not None else None
    schedule = Schedule(
        all_jobs, model, time.perf_counter, begin_s, budget_s,
        leaves_out=chosen_n is not None, fills_budget=request.fills_budget,
    )  # fmt: skip
    return schedule, chosen_n


def _calibration(device: wgpu.GPUDevice, jobs: Sequence[Job]) -> Calibration | None:
    """Measure floors and ceilings for jobs; None if the device cannot, which does not stop the run."""
    sizes = {
        array_bytes(job.case.primitive, job.case.n, job.case.datatype) for job in jobs if job.case.own_workload is None
    }
    if len(sizes) < len({job.case for job in jobs}) and any(job.case.own_workload for job in jobs):
        # What a user's benchmark moves is known when it has run: from caches to memory.
        sizes.update(4 << exponent for exponent in range(10, 25, 2))
    try:
        return calibrate_run(device, sizes, cold=any(job.mode is Mode.COLD for job in jobs))
    except (GridwiseError, wgpu.GPUError, MemoryError):
        return None


def _job_key(result: Result) -> tuple[CaseKey, int, int]:
    return result.key, result.process, result.round


def _job_key_of(job: Job) -> tuple[CaseKey, int, int]:
    return _job_key(failed_result(job, SamplingProtocol(), "not measured yet"))


class _Kept:
    """The finished cases of an earlier run, which must be of the same kind as this one."""

    def __init__(self, path: Path, header: Results):
        document = read_results(path)
        self._path = path
        then, now = document.context, header.context
        _need_same(path, "device", _part(document.device, _SAME_DEVICE), _part(header.device, _SAME_DEVICE))
        _need_same(path, "protocol", document.protocol, header.protocol)
        for name in ("gridwise_py", "wgpu", "dawn"):
            _need_same(path, "versions", {name: then.versions.get(name)}, {name: now.versions.get(name)})
        if then.settings is not None and now.settings is not None:
            _need_same(path, "settings", then.settings, now.settings)
        _need_same(path, "commit", _part(then.git, ["commit"]), _part(now.git, ["commit"]))
        if then.user_git is not None and now.user_git is not None:
            _need_same(path, "repository", _part(then.user_git, ["commit"]), _part(now.user_git, ["commit"]))
        finished = [result for result in document.results if result.error is None]
        self.results = {_job_key(result): replace(result, ticks=None) for result in finished}
        # Only those in the second file; the others are in the results.
        self.ticks = {
            _job_key(result): None if result.ticks is None else read_ticks(path, document, result)
            for result in finished
        }  # fmt: skip
        #: The n of the run.
        self.n = max((r.n for r in finished if r.primitive != YARDSTICK or len(finished) == 1), default=None)
        #: Start times of the runs that the new run continues.
        self.resumed = (*then.resumed, then.time)
        self._command = then.command

    def of(self, job: Job) -> tuple[Result, np.ndarray | None] | None:
        """Return the result of a job and its timestamps in the second file; None if it is to be measured."""
        key = _job_key_of(job)
        if key not in self.results:
            return None
        return replace(self.results[key], position=job.position), self.ticks[key]

    def need_all_in(self, jobs: Sequence[Job]) -> None:
        """Raise ArgumentError if a finished case is in no job: it would be lost with the partial file."""
        asked = set(map(_job_key_of, jobs))
        lost = [result.name_with_n for key, result in self.results.items() if key not in asked]
        if lost:
            again = f": gridwise {shlex.join(self._command)}" if self._command else ""
            raise ArgumentError(
                f"--resume {self._path.name}: {len(lost)} of its {len(self.results)} finished cases would be lost, "
                f"since this command does not measure them, such as {lost[0]}; repeat the command of that run{again}"
            )


def _part(record: Record | None, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def _need_same(path: Path, what: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            raise ArgumentError(
                f"--resume {path.name}: its {what} has {name} = {then.get(name)!r}, this run {now.get(name)!r}; "
                f"give the same options on the same machine, or begin a new file"
            )
