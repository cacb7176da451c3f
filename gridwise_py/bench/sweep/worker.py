"""Measures jobs in this process, or in worker processes that run one after the other.

A process has its own level of times: where its memory lies, in which state the driver is. So a run measures each case
in several processes. A worker also limits a crash to the case that caused it.

The worker is ``python -m gridwise_py.bench.sweep.worker``. It reads lines of JSON from its standard input: the
settings, then one job at a time. It answers each with a line of JSON on its standard output, and ends with its input.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import IO, Any

import wgpu

from ..cases.case import Case
from ..cases.mode import Mode
from ..cases.own_files import load_benchmarks
from ..results.entries import result_of
from ..results.model import BaselineCase, Result
from ..sampling.measure import measure_case
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from .line_process import LineProcess, ProcessEnded
from .suite import Job

#: A case that takes longer counts as hanging; so does the start of a worker.
CASE_TIMEOUT_S = 600.0


def measure_job(device: wgpu.GPUDevice, job: Job, protocol: SamplingProtocol) -> Result:
    """Measure a job in this process and return its result."""
    measured = measure_case(device, job.case, protocol, job.mode, check=job.checks)
    found = result_of(measured, position=job.position, round_number=job.round, process=job.process)
    baseline = job.case.baseline
    return replace(
        found,
        # A user's benchmark may have no reference, although this process compares.
        checked=job.checks and (measured.checked or not measured.correct),
        baseline=None if baseline is None else BaselineCase(primitive=baseline.primitive, case=baseline.axes),
    )


def failed_result(job: Job, protocol: SamplingProtocol, error: str) -> Result:
    """Return the result of a job that was not measured."""
    case = job.case
    nothing = Measurement(case.primitive, job.mode, case.n, case.axes, protocol=protocol.to_dict(), error=error)
    return result_of(nothing, position=job.position, round_number=job.round, process=job.process)


class WorkerError(Exception):
    """A worker ended or hung before it answered."""


def worker_command() -> list[str]:
    """Return the command line of a worker."""
    return [sys.executable, "-m", "gridwise_py.bench.sweep.worker"]


class Worker(LineProcess):
    """A process that measures jobs. A context manager; leaving it after an error kills the process.

    Parameters
    ----------
    adapter : int, str or None
        As `request_device` takes it.
    protocol : SamplingProtocol
    name : str
        The subject of error messages.
    files : sequence of str
        Users' files whose benchmarks it measures.

    Raises
    ------
    WorkerError
        If it does not start. The message says how it ended, with the last line of its output.
    """

    def __init__(
        self,
        adapter: int | str | None,
        protocol: SamplingProtocol,
        name: str = "the child process",
        files: Sequence[str] = (),
    ):
        self._name = name
        super().__init__(worker_command())
        try:
            self._ask({"adapter": adapter, "protocol": protocol.to_dict(), "files": list(files)})
        except BaseException:
            self.kill()
            raise

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.request(request)
        try:
            answer = self.reply(CASE_TIMEOUT_S)
        except ProcessEnded as error:
            raise WorkerError(f"{self._name} {error}") from None
        if "error" in answer:
            self.kill()
            raise WorkerError(f"{self._name} did not start: {answer['error']}")
        return answer

    def measure(self, job: Job) -> Result:
        """Measure a job and return its result; raise WorkerError if the process ends before."""
        return Result.from_json(self._ask(_job_data(job))["result"])


def measure_isolated(adapter: int | str | None, job: Job, protocol: SamplingProtocol) -> Result:
    """Measure one job in a process of its own, and return its result.

    Raises
    ------
    WorkerError
        If the process ended or hung; the message says how, with the last line of its output.
    """
    with Worker(adapter, protocol, files=files_of_cases([job.case])) as worker:
        result = worker.measure(job)
        how = worker.close()
    if how:
        warning = f"the child process wrote its result, and then {how}"
        result = replace(result, warnings=(*result.warnings, warning))
    return result


def files_of_cases(cases: Iterable[Case]) -> list[str]:
    """Return the users' files that cases come from."""
    paths = (None if case.own_workload is None else str(case.own_workload.path) for case in cases)
    return [path for path in dict.fromkeys(paths) if path is not None]


def _job_data(job: Job) -> dict[str, Any]:
    return {**asdict(job), "mode": job.mode.value}


def _job_of(data: Mapping[str, Any]) -> Job:
    case: dict[str, Any] = {**data["case"], "others": tuple((name, value) for name, value in data["case"]["others"])}
    return Job(Case(**case), Mode(data["mode"]), data["position"], data["round"], data["process"])


# ---- in the worker


def _main() -> None:
    # The parent is interrupted, too, and says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Drivers may print; only answers go to the parent.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        _serve(sys.stdin.buffer, answers)


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    from ... import request_device
    from ...internals import expect_software

    def answer(data: Mapping[str, Any]) -> None:
        answers.write(json.dumps(data, allow_nan=False).encode() + b"\n")
        answers.flush()

    settings = json.loads(requests.readline())
    protocol = SamplingProtocol(**settings["protocol"])
    expect_software()  # the command names the adapter
    try:
        for path in settings["files"]:
            load_benchmarks(path)
        device = request_device(settings["adapter"])
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"[:2000]})
        return
    answer({})
    for line in requests:
        answer({"result": measure_job(device, _job_of(json.loads(line)), protocol).to_json()})


if __name__ == "__main__":
    _main()
