"""Fleet runs: one suite on every GPU of a cluster, by the library's own runner, judged when it is done.

A device is a task that only the device's worker can run. The worker keeps finished cases in a file of its host, so a
worker that dies goes on where it was: Dask gives the task to the worker that takes its place, and the runner resumes.
After a death each case runs in a process of its own, so a case that ends its process costs that case alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from distributed import Client, KilledWorker, get_worker

from .. import settings
from ..bench.cases.mode import Mode
from ..bench.results.model import Result, Results
from ..bench.results.reader import content_of, parse, parse_json
from ..bench.results.writer import partial_path
from ..bench.sweep.budget import Schedule
from ..bench.sweep.runner import Request, RunProgress, UnwrittenResults, run_jobs
from ..bench.sweep.suite import BENCH_PROTOCOL, Job, Sweep, in_rounds, load_suite, plan_jobs
from ..dask.worker import RESOURCE, DeviceIdentity, identities, run_on_gpu
from ..errors import ArgumentError, BadResultsFile, ClusterError
from ..storage.cache import cache_folder
from ..storage.files import write_whole
from ..storage.json_files import json_text
from .files import check_size, member_path, parse_fleet
from .judge import judge
from .members import fleet_of, merge
from .model import Fleet, Member, Status

_TOPIC = "gridwise-fleet"
_POLL_S = 0.1
#: Without a scheduler for so long, a run ends; it can be resumed.
_GONE_S = 10.0
#: The document is written after each device, but not for more of the time than this.
_WRITING_SHARE = 0.1
_ALONE, _TOGETHER = "alone", "together"


@dataclass(frozen=True)
class DeviceState:
    """How far a device is, for those who show it.

    Attributes
    ----------
    id, host : str
    state : str
        ``"waiting"``, ``"running"``, or how it ended.
    phase : str
        ``"alone"`` or ``"together"``.
    done, of : int
        Cases.
    case : str
        The one that runs.
    attempts : int
    """

    id: str
    host: str
    state: str = "waiting"
    phase: str = _TOGETHER
    done: int = 0
    of: int = 0
    case: str = ""
    attempts: int = 0


def request_of(suite: str | Sequence[Sweep] = "quick", *, rounds: int = 1, seed: int = 0) -> Request:
    """Return what a fleet measures: a suite by name or file, or sweeps.

    Parameters
    ----------
    suite : str or sequence of Sweep
    rounds : int
        Visits to each case.
    seed : int
        Of the data and of the order of cases.
    """
    if isinstance(suite, str):
        found = load_suite(suite)
        sweeps, given, name = found.sweeps, found.protocol, Path(suite).stem
    else:
        sweeps, given, name = tuple(suite), {}, None
    protocol = replace(BENCH_PROTOCOL, **{**given, "seed": seed})
    return Request(jobs=in_rounds(plan_jobs(sweeps), rounds, seed), protocol=protocol, suite=name)


def run_fleet(
    client: Client,
    suite: str | Sequence[Sweep] | Request = "quick",
    *,
    rounds: int = 1,
    seed: int = 0,
    devices: Iterable[str] = (),
    at_once: int | None = None,
    contention: bool = False,
    device_timeout_s: float = 900.0,
    path: str | Path | None = None,
    resume: str | Path | None = None,
    gate: float = 0.03,
    baseline: Fleet | None = None,
    progress: Callable[[Sequence[DeviceState]], None] = lambda states: None,
) -> Fleet:
    """Measure one suite on every GPU of a cluster, and judge the devices.

    Parameters
    ----------
    client : distributed.Client
        From `connect`.
    suite : str, sequence of Sweep, or Request, default "quick"
    rounds : int, default 1
        Visits to each case. With one, a device that is slow at times may be missed.
    seed : int, default 0
    devices : iterable of str
        Parts of ids or of names of adapters; by default all.
    at_once : int, optional
        How many devices of a host measure at the same time. By default one if a case waits for its caller (mode
        latency), else all.
    contention : bool, default False
        Measure each device twice: first one at a time on each host, then all together. Tells a bad GPU from a bad host.
    device_timeout_s : float, default 900
        Without a sign of life for so long, a device is lost.
    path : str or Path, optional
        Where the fleet document is written after each device; the devices' results files go into the folder of the same
        name without ``.json``.
    resume : str or Path, optional
        A document that an earlier run with the same request wrote: only devices that are not complete are measured.
    gate, baseline
        As in ``gridwise fleet``.
    progress : callable
        Called with the states of all devices a few times per second.

    Returns
    -------
    Fleet

    Raises
    ------
    ClusterError
        If there is no GPU, two workers have one device, or the scheduler is gone; what was measured is in `path`.
    ArgumentError
        If no device has one of the names, or the document to resume is of another request.
    """
    request = suite if isinstance(suite, Request) else request_of(suite, rounds=rounds, seed=seed)
    found = _choose(identities(client), tuple(devices))
    target = None if path is None else Path(path)
    earlier = None if resume is None else _read_earlier(Path(resume), request)
    run = _Run(_Asked(client, request, target, device_timeout_s, gate, baseline, progress), found, earlier)
    usual = _least_at_once(request) if at_once is None else at_once
    return run.measure([(_ALONE, 1), (_TOGETHER, None)] if contention else [(_TOGETHER, usual)])


def _least_at_once(request: Request) -> int | None:
    """Return how many devices of a host measure at once where the caller says nothing: None for all."""
    return 1 if any(job.mode is Mode.LATENCY for job in request.jobs) else None


def _choose(found: Sequence[DeviceIdentity], wanted: Sequence[str]) -> list[DeviceIdentity]:
    counts = Counter(device.id for device in found)
    for device in found:
        if counts[device.id] > 1:
            names = ", ".join(f"{each.worker} ({each.address})" for each in found if each.id == device.id)
            raise ClusterError(f"{counts[device.id]} workers have the device {device.id}: {names}; stop all but one")
    if not wanted:
        return list(found)
    chosen = [
        device
        for device in found
        if any(text.casefold() in f"{device.id} {device.adapter}".casefold() for text in wanted)
    ]
    if not chosen:
        there = ", ".join(f"{device.id} ({device.adapter})" for device in found)
        raise ArgumentError(f"no device has {' or '.join(map(repr, wanted))} in its id or name; there are {there}")
    return chosen


def _digest(request: Request) -> str:
    """Return what tells two requests apart: their cases and how they are measured."""
    jobs = [(asdict(job.case), job.mode.value, job.round) for job in request.jobs]
    said = json.dumps([sorted(map(repr, jobs)), request.protocol.to_dict()], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _read_earlier(path: Path, request: Request) -> tuple[Fleet, Path]:
    fleet = parse_fleet(parse_json(content_of(path), path.name), path.name)
    if fleet.request != _digest(request):
        raise ArgumentError(
            f"--resume {path.name}: it is of another suite, or of other options; give those of before, or begin anew"
        )
    return fleet, path


# ---- on the client


@dataclass
class _Device:
    """A device of a run."""

    identity: DeviceIdentity
    shown: DeviceState
    future: Any = None  # Dask's futures have no types
    seen_s: float = 0.0
    wall_s: float = 0.0
    documents: dict[str, tuple[Results, bytes]] = field(default_factory=dict[str, tuple[Results, bytes]])
    member: Fleet | None = None

    def show(self, **changes: Any) -> None:
        """Change what is shown, as a whole: the client's thread does so, too."""
        self.shown = replace(self.shown, **changes)


@dataclass(frozen=True)
class _Asked:
    """What a caller of `run_fleet` asked for."""

    client: Any  # of Dask's client few methods have types
    request: Request
    path: Path | None
    timeout_s: float
    gate: float
    baseline: Fleet | None
    progress: Callable[[Sequence[DeviceState]], None]


class _Run:
    """The state of a run on the client."""

    def __init__(self, asked: _Asked, found: Sequence[DeviceIdentity], earlier: tuple[Fleet, Path] | None):
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        before = None if earlier is None else earlier[0]
        #: Files on the workers' hosts are found again under the run's name.
        self.name = f"{now}-{secrets.token_hex(2)}" if before is None or before.run is None else before.run
        self._asked, self._client, self._path = asked, asked.client, asked.path
        self._kept = _keep_complete(earlier, asked.path) if earlier is not None else []
        complete = {member.id for fleet in self._kept for member in fleet.members}
        self._planned = tuple({device.id for device in found} | set(() if before is None else before.planned))
        self._devices = {
            device.id: _Device(device, DeviceState(device.id, device.host))
            for device in found
            if device.id not in complete
        }
        self._written_s, self._writing_s = 0.0, 0.0
        self._files = _file_names(self._planned)
        self._last_contact_s = time.monotonic()

    def measure(self, phases: Sequence[tuple[str, int | None]]) -> Fleet:
        """Measure all devices in each phase, and return the judged fleet."""
        self._client.subscribe_topic(_TOPIC, self._heard)
        try:
            for phase, at_once in phases:
                self._measure_phase(phase, at_once, is_last=phase == phases[-1][0])
        finally:
            self._end()
        fleet = self._judge()
        if fleet.complete:
            self._clean()
        return fleet

    def _end(self) -> None:
        """Cancel what runs, and write what there is."""
        with contextlib.suppress(Exception):  # without a scheduler there is nothing to end
            self._client.unsubscribe_topic(_TOPIC)
        for device in self._devices.values():
            if device.future is not None:
                with contextlib.suppress(Exception):
                    device.future.cancel()
                device.future = None
        self._write(now=True)

    def _measure_phase(self, phase: str, at_once: int | None, *, is_last: bool) -> None:
        waiting = [device for device in self._devices.values() if device.member is None]
        for device in waiting:
            device.show(phase=phase, state="waiting", done=0)
        running: list[_Device] = []
        while waiting or running:
            for device in list(waiting):
                busy = sum(other.identity.host == device.identity.host for other in running)
                if at_once is None or busy < at_once:
                    self._submit(device, phase)
                    waiting.remove(device)
                    running.append(device)
            self._check_scheduler()
            for device in list(running):
                if self._has_ended(device, phase, is_last=is_last):
                    running.remove(device)
                    self._write()
            self._asked.progress([device.shown for device in self._devices.values()])
            if running:
                time.sleep(_POLL_S)

    def _submit(self, device: _Device, phase: str) -> None:
        identity = device.identity
        where: dict[str, Any] = (
            {"workers": [identity.address], "resources": {RESOURCE: 1}}
            if identity.tag is None
            else {"resources": {identity.tag: 1, RESOURCE: 1}}
        )
        task = _Task(self._asked.request, self.name, identity.id, self._files[identity.id], phase)
        key = f"{_TOPIC}-{self.name}-{identity.id}-{phase}-{secrets.token_hex(2)}"
        device.future = self._client.submit(_measure_device, task, key=key, pure=False, retries=2, **where)
        device.seen_s = time.monotonic()
        device.show(state="running")

    def _check_scheduler(self) -> None:
        now_s = time.monotonic()
        if self._client.status == "running":
            self._last_contact_s = now_s
        elif now_s - self._last_contact_s > _GONE_S:
            where = "" if self._path is None else f"; what was measured is in {self._path}, --resume goes on with it"
            raise ClusterError(f"the scheduler does not answer any more ({self._client.status}){where}")

    def _has_ended(self, device: _Device, phase: str, *, is_last: bool) -> bool:
        """Whether a device's task is over; takes what it gave."""
        future = device.future
        status = future.status
        if status == "pending":
            if time.monotonic() - device.seen_s <= self._asked.timeout_s:
                return False
            self._fail(device, Status.LOST, f"no sign of life for {self._asked.timeout_s:g} s")
        elif status == "finished":
            self._take(device, phase, future.result(), is_last=is_last)
        elif status == "error":
            self._fail(device, *_explain(future.exception()))
        elif self._client.status == "running":
            self._fail(device, Status.LOST, f"its task was {status}: no worker with this device came back")
        else:  # the scheduler is gone, and so is what it knew
            time.sleep(_POLL_S)
            return False
        with contextlib.suppress(Exception):
            future.cancel()
        device.future = None
        return True

    def _take(self, device: _Device, phase: str, given: dict[str, Any], *, is_last: bool) -> None:
        """Take the document of a device, as a file of a stranger."""
        content, name = given["content"], f"{device.identity.id} ({phase})"
        device.wall_s += given["wall_s"]
        device.show(attempts=max(device.shown.attempts, given["attempts"]))
        try:
            check_size(content, name)
            device.documents[phase] = parse(content, name), content
        except BadResultsFile as error:
            self._fail(device, Status.FAILED, str(error))
            return
        if not is_last:
            return
        results, content = device.documents[_TOGETHER]
        alone = device.documents.get(_ALONE)
        file = self._write_member(device, "", content)
        if alone is not None:
            self._write_member(device, ".alone", alone[1])
        device.member = fleet_of(
            results, identifier=device.identity.id, host=device.identity.host, file=file,
            sha256=hashlib.sha256(content).hexdigest(), attempts=max(1, device.shown.attempts), wall_s=device.wall_s,
            alone=None if alone is None else alone[0],
        )  # fmt: skip
        device.show(state=device.member.members[0].status.value, case="", done=device.shown.of)

    def _write_member(self, device: _Device, suffix: str, content: bytes) -> str | None:
        """Write a results file; return its name relative to the document's folder."""
        if self._path is None:
            return None
        folder = _member_folder(self._path)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self._files[device.identity.id]}{suffix}.json"
        write_whole(file, content, follow_links=False)
        return f"{folder.name}/{file.name}"

    def _fail(self, device: _Device, status: Status, error: str) -> None:
        identity = device.identity
        member = Member(
            id=identity.id, host=identity.host, adapter=identity.adapter, adapter_type=identity.type,
            backend=identity.backend, driver=identity.driver, status=status, attempts=max(1, device.shown.attempts),
            error=" ".join(error.split())[:200], wall_s=None,
        )  # fmt: skip
        device.member = Fleet(planned=(identity.id,), members=(member,))
        device.show(state=status.value)

    # ---- what workers say

    def _heard(self, event: tuple[float, Any]) -> None:
        """Take an event of a worker; called in the client's thread."""
        if not isinstance(event[1], dict):
            return
        said = cast(dict[str, Any], event[1])
        if said.get("run") != self.name:
            return
        device = self._devices.get(str(said.get("id")))
        if device is None or device.member is not None:
            return
        try:
            numbers = {name: int(said[name]) for name in ("done", "of", "attempt")}
        except (KeyError, TypeError, ValueError):
            return
        device.seen_s = time.monotonic()
        attempts = max(device.shown.attempts, numbers["attempt"])
        device.show(done=numbers["done"], of=numbers["of"], case=str(said.get("case"))[:80], attempts=attempts)

    # ---- the document

    def _judge(self) -> Fleet:
        parts = [*self._kept, *(device.member for device in self._devices.values() if device.member is not None)]
        whole = merge([*parts, Fleet(planned=self._planned)])
        suite = self._asked.request.suite
        fleet = replace(whole, run=self.name, suite=suite, request=_digest(self._asked.request))
        return judge(fleet, gate=self._asked.gate, baseline=self._asked.baseline)

    def _write(self, *, now: bool = False) -> None:
        """Write the document, if that does not take too much of the time."""
        if self._path is None:
            return
        begin_s = time.monotonic()
        if not now and (begin_s - self._written_s) * _WRITING_SHARE < self._writing_s:
            return
        self._judge().write(self._path)
        self._written_s = time.monotonic()
        self._writing_s = self._written_s - begin_s

    def _clean(self) -> None:
        """Remove the files of the run on the workers' hosts."""
        with contextlib.suppress(Exception):  # a worker that left keeps its files
            self._client.run(_forget, self.name, on_error="ignore")


def _keep_complete(earlier: tuple[Fleet, Path], path: Path | None) -> list[Fleet]:
    """Return the members of an earlier run that are complete, their files copied to where those of this run are."""
    fleet, before = earlier
    found: list[Fleet] = []
    for member in fleet.members:
        if member.status is not Status.COMPLETE:
            continue
        file = member.file
        if file is not None and path is not None and _member_folder(path).resolve() != _member_folder(before).resolve():
            content = content_of(member_path(before, file))
            _member_folder(path).mkdir(parents=True, exist_ok=True)
            target = _member_folder(path) / Path(file).name
            write_whole(target, content, follow_links=False)
            file = f"{target.parent.name}/{target.name}"
        found.append(replace(fleet, members=(replace(member, file=file),), planned=(member.id,), groups=()))
    return found


def _member_folder(path: Path) -> Path:
    """Return the folder of the members of a document: ``today.fleet`` of ``today.fleet.json``."""
    name = path.name.removesuffix(".json")
    return path.with_name(name if name != path.name else f"{name}.members")


def _file_names(identifiers: Iterable[str]) -> dict[str, str]:
    """Return a file name for each id: letters, digits and hyphens, whatever a host calls itself."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for identifier in sorted(identifiers):
        name = re.sub(r"[^A-Za-z0-9_]+", "-", identifier).strip("-")[:100] or "device"
        unique, number = name, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{name}-{number}"
        taken.add(unique.casefold())
        found[identifier] = unique
    return found


def _explain(error: Any) -> tuple[Status, str]:
    """Return what became of a device whose task raised."""
    if isinstance(error, KilledWorker):
        return Status.FAILED, "its worker died again and again, at the same task"
    if type(error).__name__ == "NoValidWorkerError":
        return Status.LOST, "no worker with this device came back"
    return Status.FAILED, f"{type(error).__name__}: {error}"


# ---- on a worker


@dataclass(frozen=True)
class _Task:
    """What a worker measures.

    Attributes
    ----------
    request : Request
    run, device, file : str
        The run, the id of the device, and what its files are called.
    phase : str
    """

    request: Request
    run: str
    device: str
    file: str
    phase: str


class _Events(RunProgress):
    """Tells the client of each case."""

    def __init__(self, task: _Task, attempt: int):
        self._task, self._attempt = task, attempt
        self._done = 0
        self._of = len(task.request.jobs)

    def _say(self, case: str) -> None:
        said = {
            "run": self._task.run, "id": self._task.device, "phase": self._task.phase, "attempt": self._attempt,
            "done": self._done, "of": self._of, "case": case,
        }  # fmt: skip
        get_worker().log_event(_TOPIC, said)

    def step(self, text: str) -> None:
        """Tell what comes before the first case, and between cases."""
        self._say(text)

    def planned(self, schedule: Schedule, adapter: str, chosen_n: int | None) -> None:
        """Take the number of cases."""
        self._of = len(schedule.jobs)

    def kept(self, job: Job) -> None:
        """Count a case of an earlier attempt."""
        self._done += 1

    def began(self, job: Job, to_come: Sequence[Job]) -> None:
        """Tell that a case begins."""
        self._say(str(job))

    def finished(self, job: Job, result: Result) -> None:
        """Count a case."""
        self._done += 1


def _measure_device(task: _Task) -> dict[str, Any]:
    """Measure the suite on this worker's GPU, or go on with it; return the document."""
    return run_on_gpu(_measure, task)


def _measure(_: Any, task: _Task) -> dict[str, Any]:
    # The runner makes a device of its own, so that it can make another after a loss.
    begin_s = time.perf_counter()
    folder = _host_folder(task.run)
    path = None if folder is None else folder / f"{task.file}-{task.phase}.json"
    attempt = _count_attempt(path)
    # What killed the process before, kills only its own from now on.
    request = task.request if attempt == 1 else replace(task.request, isolate=True)
    partial = None if path is None else partial_path(path)
    resume = partial if partial is not None and partial.is_file() else None
    try:
        document = run_jobs(request, None, json_path=path, resume_from=resume, progress=_Events(task, attempt))
    except UnwrittenResults as error:  # the disk is full; the client gets what was measured
        document = error.document
    except (ArgumentError, BadResultsFile):  # the file is of another version, or broken
        if resume is None:
            raise
        resume.unlink(missing_ok=True)
        document = run_jobs(request, None, json_path=path, progress=_Events(task, attempt))
    content = json_text(_without_stamps(document).to_json()).encode("utf-8", "replace")
    return {"content": content, "wall_s": time.perf_counter() - begin_s, "attempts": attempt}


def _without_stamps(document: Results) -> Results:
    """Return a document without timestamps, which are in a second file on the worker's host."""
    results = tuple(
        replace(result, ticks=None, samples=tuple(replace(sample, ticks=None) for sample in result.samples))
        for result in document.results
    )
    return replace(document, ticks_file=None, results=results)


def _host_folder(run: str) -> Path | None:
    """Return the folder of a run on this host; None if none can be made: a device then begins anew after a death."""
    base = settings.fleet_dir() or ((cache := cache_folder()) and cache / "fleet")
    if base is None:
        return None
    folder = base / re.sub(r"[^A-Za-z0-9_-]+", "-", run)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def _count_attempt(path: Path | None) -> int:
    """Count the attempts of a task on this host; the first is 1."""
    if path is None:
        return 1
    file = path.with_suffix(".attempts")
    try:
        count = int(file.read_text()) if file.is_file() else 0
        file.write_text(f"{count + 1}")
    except (OSError, ValueError):
        return 1
    return count + 1


def _forget(run: str) -> None:
    """Remove the files of a run from this host."""
    folder = _host_folder(run)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
