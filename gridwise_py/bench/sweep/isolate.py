"""Measures one case, here or in a separate process, so that a crash affects only this case.

The parent calls `measure_isolated`. The child is ``python -m gridwise_py.bench.sweep.isolate OUT``. It gets the case as
JSON on its standard input, and writes the result to OUT.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import wgpu

from ...storage.files import write_whole
from ..cases.case import Case
from ..cases.mode import Mode
from ..results.entries import result_of
from ..results.model import Result
from ..sampling.measure import measure_case
from ..sampling.protocol import SamplingProtocol
from .suite import Job

__all__ = ["CHILD_TIMEOUT_S", "IsolationError", "measure_isolated", "measure_job"]

#: A case that takes longer counts as hanging.
CHILD_TIMEOUT_S = 600.0


def measure_job(device: wgpu.GPUDevice, job: Job, protocol: SamplingProtocol) -> Result:
    """Measure a job and return its result."""
    measured = measure_case(device, job.case, protocol, job.mode)
    return result_of(measured, position=job.position, round_number=job.round)


class IsolationError(Exception):
    """The child process ended without a result."""


def child_command(out: Path) -> list[str]:
    """Return the command line of the child."""
    return [sys.executable, "-m", "gridwise_py.bench.sweep.isolate", str(out)]


def measure_isolated(adapter: int | str | None, job: Job, protocol: SamplingProtocol) -> Result:
    """Measure a job in a child process, and return its result.

    Raises
    ------
    IsolationError
        If the child died or hung; the message says how, with the last lines of its output.
    """
    request = {
        "adapter": adapter,
        "case": asdict(job.case),
        "mode": job.mode.value,
        "position": job.position,
        "round": job.round,
        "protocol": protocol.to_dict(),
    }
    with tempfile.TemporaryDirectory(prefix="gridwise-") as folder:
        out = Path(folder) / "result.json"
        try:
            done = subprocess.run(
                child_command(out), input=json.dumps(request), text=True, capture_output=True,
                timeout=CHILD_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise IsolationError(f"the child process was ended after {CHILD_TIMEOUT_S:g} s without a result") from error
        how = _ending(done.returncode)
        if out.is_file():
            result = Result.from_json(json.loads(out.read_text(encoding="utf-8")))
            if done.returncode:
                warning = f"the child process wrote its result, and then {how}"
                result = replace(result, warnings=(*result.warnings, warning))
            return result
    said = done.stderr.strip().splitlines()
    raise IsolationError(f"the child process {how}" + (f": {said[-1][:500]}" if said else ""))


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"


def _child(request: Mapping[str, Any], out: Path) -> None:
    from ...runtime.device import request_device

    job = Job(Case(**request["case"]), Mode(request["mode"]), request["position"], request["round"])
    result = measure_job(request_device(request["adapter"]), job, SamplingProtocol(**request["protocol"]))
    write_whole(out, json.dumps(result.to_json(), allow_nan=False).encode())


if __name__ == "__main__":
    _child(json.load(sys.stdin), Path(sys.argv[1]))
