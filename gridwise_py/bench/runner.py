"""Runs the jobs of a benchmark on one adapter, keeps what is finished, and goes on after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wgpu

from ..errors import ArgumentError, GridwiseError
from ..runtime.context import context_of
from ..runtime.device import request_device
from ..types.datatype import STORAGE_DATATYPES, as_datatype
from .budget import CostModel, Schedule, choose_n
from .calibration import Calibration, calibrate_run
from .case import array_items
from .isolate import IsolationError, measure_isolated, measure_job
from .measurement import Measurement, Mode
from .probes import copy_item_ns
from .protocol import SamplingProtocol
from .results import case_key, json_data, result_entry, run_header
from .results_reader import read_results
from .results_writer import ResultsWriter, read_ticks
from .shares import described, shares
from .suite import YARDSTICK, Job

__all__ = ["Request", "RunProgress", "UnwrittenResults", "run_jobs"]

# After these a device may be broken, and would fail all cases to come. By name: what measures may have caught it.
_DEVICE_ERRORS = ("Device", "GPU")
_SAME_DEVICE = ("adapter", "adapter_type", "backend", "driver", "subgroup_size", "tick_period_ns")


@dataclass(frozen=True)
class Request:
    """What a run does, on whichever adapter.

    Attributes
    ----------
    jobs : sequence of Job
        In the order in which they are measured.
    protocol : SamplingProtocol
    command : sequence of str or None
        The words of the command line, for the file.
    suite : str or None
    isolate : bool
        Each job in a process of its own.
    jobs_at : callable, optional
        Returns the jobs at another n. Given where nobody asked for an n: on a CPU adapter `choose_n` chooses one then.
    budget_s : float
        In which time a run should end whose n is chosen.
    """

    jobs: Sequence[Job]
    protocol: SamplingProtocol
    command: Sequence[str] | None = None
    suite: str | None = None
    isolate: bool = False
    jobs_at: Callable[[int], Sequence[Job]] | None = None
    budget_s: float = 60.0


class RunProgress:
    """Is told what a run does, and does nothing with it."""

    def step(self, text: str) -> None:
        """Something other than a case comes next."""

    def planned(self, schedule: Schedule, adapter: str, chosen_n: int | None) -> None:
        """What will be done is known; `chosen_n` is None where the n was not chosen by the budget."""

    def kept(self, job: Job) -> None:
        """A case is in the file to resume from, and not measured again."""

    def began(self, job: Job, to_come: Sequence[Job]) -> None:
        """A case begins; `to_come` are those behind it."""

    def finished(self, job: Job, entry: Mapping[str, Any]) -> None:
        """A case is done."""

    def left_out(self, job: Job) -> None:
        """A case is not measured, as it would end after the budget."""


class UnwrittenResults(Exception):
    """Everything was measured, but its file could not be written.

    Attributes
    ----------
    document : dict
        As `run_jobs` returns it.
    error : OSError
    """

    def __init__(self, document: dict[str, Any], error: OSError):
        super().__init__(str(error))
        self.document = document
        self.error = error


def _identity(job: Job, protocol: SamplingProtocol, error: str | None = None) -> dict[str, Any]:
    """Return the entry of a job without times."""
    case = job.case
    nothing = Measurement(case.primitive, job.mode, case.n, case.axes, protocol=protocol.to_dict(), error=error)
    return result_entry(nothing, position=job.position, round_number=job.round)


def run_jobs(
    request: Request,
    adapter: int | str | None,
    *,
    json_path: Path | None = None,
    resume_from: Path | None = None,
    progress: RunProgress | None = None,
) -> dict[str, Any]:
    """Run jobs on an adapter and return the document, its results in the order in which they were asked for.

    Parameters
    ----------
    request : Request
    adapter : int, str or None
        As `request_device` takes it.
    json_path : Path, optional
        The results file. Finished cases are beside it until the run is done.
    resume_from : Path, optional
        A results file, whose finished cases are kept and not measured again.
    progress : RunProgress, optional

    Raises
    ------
    ArgumentError
        If the file to resume from is of another device, protocol or version.
    UnwrittenResults
        If the results file could not be written at the end. A full disk in between stops nothing: all that is finished
        is written again after the next case.
    """
    progress = progress or RunProgress()
    begin_s = time.perf_counter()
    progress.step("finding the adapter")
    device = request_device(adapter)
    protocol = request.protocol
    header = run_header(
        device, protocol=protocol.to_dict(), seed=protocol.seed, command=request.command, suite=request.suite
    )
    calibrated: Calibration | None = None
    is_calibrated = False
    kept = _Kept(resume_from, header) if resume_from is not None else None
    schedule, chosen_n = _schedule(device, request, None if kept is None else kept.n, begin_s)
    progress.planned(schedule, header["device"]["adapter"], chosen_n)
    writer = None if json_path is None else ResultsWriter(json_path, header, len(schedule.jobs))
    entries: list[dict[str, Any]] = []

    def keep(entry: dict[str, Any], ticks: Any = None) -> None:
        entries.append(entry)
        if writer is not None:
            writer.add(entry, ticks)

    todo: list[Job] = []
    for job in schedule.jobs:
        key = _job_key(_identity(job, protocol))
        if kept is not None and key in kept.entries:
            progress.kept(job)
            keep({**kept.entries[key], "position": job.position}, kept.ticks[key])
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
                entry = measure_isolated(adapter, job, protocol)
            else:
                entry = measure_job(device, job, protocol)
        except IsolationError as error:
            entry = _identity(job, protocol, error=str(error))
        except Exception as error:
            # Whatever one case does, the others are measured.
            entry = _identity(job, protocol, error=f"{type(error).__name__}: {error}"[:2000])
        if not request.isolate and (entry["error"] or "").startswith(_DEVICE_ERRORS):
            device = request_device(adapter)
        schedule.finished(job, None if entry["cold_start_ns"] is None else entry["cold_start_ns"] * 1e-9)
        progress.finished(job, entry)
        if not is_calibrated:
            # Not before the first case: someone waits for a first figure.
            progress.step("measuring what the device can do")
            calibrated, is_calibrated = _calibrated(device, todo), True
            header["device"] |= json_data(described(calibrated))
        entry["rates"] |= shares(entry, calibrated)
        keep(entry)
        if writer is not None:
            with suppress(OSError):
                writer.save()
    document = {**header, "results": sorted(entries, key=lambda entry: (entry["position"], entry["round"]))}
    if writer is not None:
        try:
            _, *beside = writer.finish()
            document["ticks_file"] = beside[0].name if beside else None
        except OSError as error:
            raise UnwrittenResults(document, error) from error
    return document


def _schedule(
    device: wgpu.GPUDevice, request: Request, resumed_n: int | None, begin_s: float
) -> tuple[Schedule, int | None]:
    """Return what is measured, in which order, and the n if it was chosen here."""
    on_cpu = context_of(device).capabilities.is_cpu
    model = CostModel(request.protocol, copy_item_ns(device) if on_cpu else None, request.isolate)
    if not on_cpu or request.jobs_at is None:
        return Schedule(request.jobs, model, time.perf_counter, begin_s), None
    n = resumed_n or choose_n(request.jobs_at, model, request.budget_s)
    return Schedule(request.jobs_at(n), model, time.perf_counter, begin_s, request.budget_s), n


def _calibrated(device: wgpu.GPUDevice, jobs: Sequence[Job]) -> Calibration | None:
    """Measure floors and ceilings for jobs; a device that cannot do so is no reason not to measure them."""
    sizes = {
        array_items(job.case.primitive, job.case.n) * as_datatype(job.case.datatype, STORAGE_DATATYPES).itemsize_bytes
        for job in jobs
    }
    try:
        return calibrate_run(device, sizes, cold=any(job.mode is Mode.COLD for job in jobs))
    except (GridwiseError, wgpu.GPUError, MemoryError):
        return None


def _job_key(entry: Mapping[str, Any]) -> tuple[str, int]:
    return case_key(entry), entry.get("round", 0)


class _Kept:
    """The finished cases of an earlier run, which must be of the same kind as this one."""

    def __init__(self, path: Path, header: Mapping[str, Any]):
        document = read_results(path)
        then, now = document["context"], header["context"]
        _need_same(path, "device", _part(document["device"], _SAME_DEVICE), _part(header["device"], _SAME_DEVICE))
        _need_same(path, "protocol", document["protocol"], header["protocol"])
        versions = ("gridwise_py", "wgpu")
        _need_same(path, "versions", _part(then["versions"], versions), _part(now["versions"], versions))
        _need_same(path, "commit", _part(then["git"] or {}, ["commit"]), _part(now["git"] or {}, ["commit"]))
        finished = [entry for entry in document["results"] if entry["error"] is None]
        self.entries = {_job_key(entry): {**entry, "ticks": None} for entry in finished}
        # Only those that lie beside the file; the others are in the entries.
        self.ticks = {
            _job_key(entry): None if entry["ticks"] is None else read_ticks(path, document, entry)
            for entry in finished
        }  # fmt: skip
        #: That of the run; cases that did not fit a budget are smaller.
        self.n = max((e["n"] for e in finished if e["primitive"] != YARDSTICK or len(finished) == 1), default=None)
        now["resumed"] = [*then.get("resumed", []), then["time"]]


def _part(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: values.get(key) for key in keys}


def _need_same(path: Path, what: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in {**then, **now}:
        if then.get(key) != now.get(key):
            raise ArgumentError(
                f"--resume {path.name}: its {what} has {key} = {then.get(key)!r}, this run {now.get(key)!r}; "
                f"give the same options on the same machine, or begin a new file"
            )
