"""Measures two environments in turns on one GPU: A B B A, in several pairs of processes."""

from __future__ import annotations

import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import Capabilities, Primitive
from ...errors import ArgumentError
from ...internals import Code, clock_held
from ..cases.case import Case
from ..cases.mode import Mode
from ..checks.check import mismatch
from ..sampling.machine_load import LoadWatch
from ..stats.resampling import interquartile_mean
from ..sweep.suite import Job
from .environments import Environment
from .process import SideError, Worker
from .taken import SIDES, Measured, MeasuredCase, Progress, TakenRow

__all__ = ["SIDES", "Measured", "MeasuredCase", "NotComparable", "Progress", "Settings", "TakenRow", "measure_in_turns"]

#: A pass of mode batch is about so long, which makes the clock's step and the pass's overhead small.
_PASS_NS = 5e5
_MOST_SUBMISSION_NS = 1e8  # as of `gw.measure`: watchdogs end longer ones
_LEAST_SAMPLES, _MOST_SAMPLES = 5, 200
_MOST_BATCH = 1000
_MOST_KEPT_BYTES = 4 << 30  # of inputs in files: making them again for the next pair takes some seconds per GiB
_MOST_TOGETHER = 5  # pairs of processes that start at once: each has a device, and some of the GPU's memory
#: Each side finds out itself what its device lacks.
_ANY_DEVICE = Capabilities(features=frozenset({"shader-f16"}), limits={"max-buffer-size": 1 << 62})
#: What must be equal on both sides; and where they run on different engines, which name the others each in its way.
_SAME = ("device", "adapter_type", "backend_type", "vendor", "description")
_SAME_ON_ENGINES = _SAME[:3]


@dataclass(frozen=True)
class Settings:
    """How it is measured.

    Attributes
    ----------
    pairs : int
        Pairs of processes, each of one process per side.
    rounds : int
        Times A B B A for each case and pair of processes.
    turn_s : float
        About how long the GPU works in a turn.
    lead_s : float
        Untimed work of the same kind before each turn.
    warmup_s : float
        Untimed work of each side before the first turn of a case.
    seed : int
        Of the data and of the order of processes, cases and turns.
    adapter : int, str or None
        As `request_device` takes it.
    kernels : bool
        Whether each kernel has a row, too.
    all : bool
        Whether cases are measured that ask the same of the GPU on both sides, too.
    """

    pairs: int = 5
    rounds: int = 4
    turn_s: float = 0.02
    lead_s: float = 0.005
    warmup_s: float = 0.1
    seed: int = 0
    adapter: int | str | None = None
    kernels: bool = False
    all: bool = False

    def measures(self, case: MeasuredCase) -> bool:
        """Whether there is anything to measure: in mode latency the host's code counts, too."""
        return self.all or not case.same_code or case.job.mode is Mode.LATENCY

    def describe(self, pairs: str) -> str:
        """Return how it is measured, given the text of how many pairs."""
        return f"{pairs} of processes, each with {self.rounds} × A B B A of a case"


class NotComparable(Exception):
    """The sides run on different adapters."""


def _is_cpu(adapter: Mapping[str, Any]) -> bool:
    return adapter.get("adapter_type") == "CPU"


def measure_in_turns(
    environments: Mapping[str, Environment],
    jobs_at: Callable[[bool], Sequence[Job]],
    settings: Settings,
    *,
    progress: Progress | None = None,
) -> Measured:
    """Measure both sides.

    An interrupt, or a process that does not start again, ends the measurement; what was measured before is returned.

    Parameters
    ----------
    environments : mapping from str to Environment
        By side.
    jobs_at : callable
        Returns the cases, given whether the adapter is a CPU.
    settings : Settings
    progress : Progress, optional
        Is told how far it is.

    Raises
    ------
    NotComparable
        If the sides run on different adapters.
    ArgumentError
        If a side does not start, and nothing was measured before.
    KeyboardInterrupt
        If it is interrupted before anything was measured.
    """
    run = _Run(environments, jobs_at, settings, progress or Progress())
    try:
        run.measure()
    except (KeyboardInterrupt, ArgumentError) as error:
        if run.measured is None or not any(case.taken or case.errors for case in run.measured.cases):
            raise
        return replace(run.measured, stopped=error)
    assert run.measured is not None, "there is at least one pair"
    return run.measured


class _Run:
    """One measurement; `measured` has what is there so far."""

    def __init__(
        self,
        environments: Mapping[str, Environment],
        jobs_at: Callable[[bool], Sequence[Job]],
        settings: Settings,
        progress: Progress,
    ):
        self._environments, self._jobs_at, self._settings = environments, jobs_at, settings
        self._progress = progress
        self._pace = _Pace(settings.pairs, _together())
        self.measured: Measured | None = None

    def measure(self) -> None:
        """Measure all pairs of processes."""
        settings = self._settings
        rng = random.Random(settings.seed)
        cases: list[MeasuredCase] = []
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gridwise-ab-")))
            inputs = _Inputs(folder, settings.seed)
            pairs = stack.enter_context(closing(_pairs(self._environments, settings, rng, self._progress, self._pace)))
            for pair, both in enumerate(pairs, start=1):
                with both:
                    if self.measured is None:
                        adapter = both.said[SIDES[0]]["adapter"]
                        cases = [MeasuredCase(job) for job in self._jobs_at(_is_cpu(adapter))]
                        pci = next((pci for said in both.said.values() if (pci := said.get("pci"))), None)
                        # In this process, which only waits.
                        held = stack.enter_context(clock_held(adapter, pci))
                        self.measured = Measured(both.said, held, cases)
                    self._measure_pair(pair, both, cases, inputs, rng)
                    if all(case.errors or not settings.measures(case) for case in cases):
                        break

    def _measure_pair(
        self, pair: int, both: _Both, cases: Sequence[MeasuredCase], inputs: _Inputs, rng: random.Random
    ) -> None:
        settings, pace = self._settings, self._pace
        order = rng.sample(cases, len(cases))
        for i, case in enumerate(order):
            if case.errors or not settings.measures(case):
                continue
            place = f"pair {pair} of {settings.pairs}, case {i + 1} of {len(cases)}: {case.job}"
            self._progress.step(place, pace.left_s(pair, order[i:], cases))
            begin_s = time.monotonic()
            try:
                _measure_case(both, case, inputs, settings, rng, check=pair == 1)
            except KeyboardInterrupt:
                # Ctrl-C ends the processes, too, which is no fault of the case.
                case.errors = {side: error for side, error in case.errors.items() if side not in case.interrupted}
                raise
            pace.took(case, time.monotonic() - begin_s)
            inputs.forget_beyond(_MOST_KEPT_BYTES)
        self._progress.pair_done(pair, settings.pairs, pace.left_s(pair, (), cases) or 0.0)


class _Pace:
    """Tells how long the rest takes, from what cases and starts of processes took last.

    Parameters
    ----------
    pairs : int
        Of processes, in all.
    together : int
        Pairs that start at once.
    """

    def __init__(self, pairs: int, together: int):
        self._pairs, self._together = pairs, together
        self._case_s: dict[MeasuredCase, float] = {}
        self._start_s = 0.0

    def started(self, seconds: float) -> None:
        """Note how long some pairs of processes took to start."""
        self._start_s = seconds

    def took(self, case: MeasuredCase, seconds: float) -> None:
        """Note how long a case took."""
        self._case_s[case] = seconds

    def left_s(self, pair: int, to_come: Sequence[MeasuredCase], cases: Sequence[MeasuredCase]) -> float | None:
        """Return about how long everything still takes; None before the first case is done.

        Parameters
        ----------
        pair : int
            That measures now, from 1.
        to_come : sequence of MeasuredCase
            Of this pair.
        cases : sequence of MeasuredCase
            Of the pairs to come.
        """
        if not self._case_s:
            return None
        usual_s = sum(self._case_s.values()) / len(self._case_s)
        rest = [case for case in (*to_come, *(self._pairs - pair) * list(cases)) if not case.errors]
        starts = sum(first >= pair for first in range(0, self._pairs, self._together))
        return starts * self._start_s + sum(self._case_s.get(case, usual_s) for case in rest)


# ---- a pair of processes


class _Both:
    """The two processes of a pair; leaving it ends them."""

    def __init__(self, environments: Mapping[str, Environment], adapter: int | str | None):
        self.environments, self._adapter = environments, adapter
        self._stack = ExitStack()
        self.workers: dict[str, Worker] = {}
        self.said: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> _Both:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def start(self, side: str) -> None:
        """Start the process of a side, and do not wait for its device."""
        with _starting(self.environments[side], side):
            self.workers[side] = self._stack.enter_context(Worker(self.environments[side]))
            self.workers[side].send("hello", adapter=self._adapter)

    def check_same(self) -> None:
        """Raise NotComparable if the sides run on different adapters."""
        one_engine = len({environment.engine for environment in self.environments.values()}) == 1
        _check_same(self.said, _SAME if one_engine else _SAME_ON_ENGINES)

    def wait(self, side: str) -> None:
        """Wait until a side has its device."""
        with _starting(self.environments[side], side):
            self.said[side] = self.workers[side].answer()

    def replace(self, side: str) -> None:
        """Start the process of a side again."""
        self.start(side)
        self.wait(side)
        try:
            self.check_same()
        except NotComparable as error:  # the GPU of this process is gone: what was measured before is right
            given = self.environments[side].given
            raise ArgumentError(f"{side} ({given}) does not start again on the same adapter: {error}") from error

    def ask(self, side: str, do: str, **options: Any) -> dict[str, Any]:
        return self.workers[side].ask(do, **options)


def _together() -> int:
    """Return how many pairs of processes start at once."""
    return min(max((os.cpu_count() or 1) // 2, 1), _MOST_TOGETHER)


def _pairs(
    environments: Mapping[str, Environment], settings: Settings, rng: random.Random, progress: Progress, pace: _Pace
) -> Generator[_Both]:
    """Yield pairs of processes, each to be left before the next.

    As many as the machine has cores for start at once: to start one takes longer than its turns of a case. Those whose
    turn has not come only wait.
    """
    together = _together()
    for first in range(0, settings.pairs, together):
        count = min(together, settings.pairs - first)
        last = f" to {first + count}" if count > 1 else ""
        progress.step(f"pair of processes {first + 1}{last} of {settings.pairs}: starting", None)
        begin_s = time.monotonic()
        with ExitStack() as stack:
            group = [stack.enter_context(_Both(environments, settings.adapter)) for _ in range(count)]
            for both in group:
                for side in rng.sample(SIDES, 2):
                    both.start(side)
            for both in group:
                for side in SIDES:
                    both.wait(side)
                both.check_same()
            pace.started(time.monotonic() - begin_s)
            yield from group


@contextmanager
def _starting(environment: Environment, side: str) -> Generator[None]:
    try:
        yield
    except (SideError, OSError) as error:
        raise ArgumentError(f"{side} ({environment.given}) does not start: {error}") from error


def _check_same(said: Mapping[str, Mapping[str, Any]], facts: Sequence[str]) -> None:
    old, new = (said[side]["adapter"] for side in SIDES)
    for name in facts:
        if name in old and name in new and old[name] != new[name]:
            raise NotComparable(f"{name}: OLD runs on {old[name]!r}, NEW on {new[name]!r}")
    if said[SIDES[0]]["has_timestamps"] != said[SIDES[1]]["has_timestamps"]:
        raise NotComparable("only one side has GPU timestamps")


# ---- one case in a pair of processes


class _Inputs:
    """The data of cases in files, so that both sides read the same, and the checks of their results."""

    def __init__(self, folder: Path, seed: int):
        self._folder, self._seed = folder, seed
        self._files: dict[Case, dict[str, str]] = {}  # the one used last at the end
        self._made: int = 0

    def _planned(self, case: Case) -> Primitive:
        """Return the primitive without a device: its reference and the datatypes of its arguments are all it is for."""
        return case.make(None, _ANY_DEVICE)

    def files(self, case: Case) -> dict[str, str]:
        """Return the files with the inputs of a case."""
        if case in self._files:
            self._files[case] = self._files.pop(case)  # used last
        else:
            self._made += 1
            made: dict[str, str] = {}
            try:
                for name, items in case.inputs(self._planned(case), self._seed).items():
                    made[name] = str(self._folder / f"{self._made}-{name}.npy")
                    np.save(made[name], items)
            except OSError:
                for path in made.values():
                    Path(path).unlink(missing_ok=True)
                raise
            self._files[case] = made
        return self._files[case]

    def forget_beyond(self, most_bytes: int) -> None:
        """Remove the files of the cases used longest ago, until the others have so many bytes at most."""
        sizes = {case: sum(os.path.getsize(path) for path in files.values()) for case, files in self._files.items()}
        for case in list(self._files):
            if sum(sizes[kept] for kept in self._files) <= most_bytes:
                return
            for path in self._files.pop(case).values():
                os.unlink(path)

    def command(self, case: Case) -> dict[str, Any]:
        """Return how a worker makes the primitive."""
        return {**recipe(case), "inputs": self.files(case)}

    @contextmanager
    def outputs_folder(self) -> Generator[str]:
        """Yield a folder for outputs."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            yield folder

    def wrong(self, case: Case, outputs: Mapping[str, str]) -> str | None:
        """Return the first wrong item of outputs; None if all are right, or nothing tells."""
        primitive = self._planned(case)
        inputs = {name: np.load(path, allow_pickle=False) for name, path in self.files(case).items()}
        found = mismatch(primitive, inputs, {name: np.load(path, allow_pickle=False) for name, path in outputs.items()})
        return None if found is None else str(found)


def recipe(case: Case) -> dict[str, Any]:
    """Return what a worker makes the primitive of a case of."""
    options = {name: getattr(value, "name", value) for name, value in case.options.items()}  # operators by name
    datatype = options.pop("dtype", "u32")
    return {
        "primitive": case.workload.kind.__name__,
        "workload": case.primitive,
        "datatype": datatype,
        "options": options,
    }


def _measure_case(
    both: _Both, case: MeasuredCase, inputs: _Inputs, settings: Settings, rng: random.Random, *, check: bool
) -> None:
    """Prepare a case on both sides, and measure it in turns; a failure is kept in the case."""
    try:
        if case.job.case.own_workload is None:
            inputs.files(case.job.case)
    except (OSError, MemoryError) as error:  # of this machine, not of a side
        for side in SIDES:
            case.errors[side] = f"its inputs cannot be kept: {error or 'no memory'}"
        return
    order = rng.sample(SIDES, 2)
    for side in order:
        with _failing(both, case, side), inputs.outputs_folder() as folder:
            wrong = _prepare(both, case, side, inputs, folder, settings, check=check)
            if wrong is not None:
                case.wrong[side] = case.errors[side] = wrong
    trial_ns: list[float] = []
    for side in order if settings.measures(case) else ():
        with _failing(both, case, side):
            if side not in case.errors:
                trial_ns.append(both.ask(side, "warm", seconds=settings.warmup_s)["trial_ns"])
    if not case.errors and settings.measures(case):
        if not case.trials:
            _size(case, min(trial_ns), settings)
        _take_turns(both, case, settings, rng)
    for side in order:
        if side in both.workers:
            with _failing(both, case, side):
                both.ask(side, "release")


def _prepare(
    both: _Both, case: MeasuredCase, side: str, inputs: _Inputs, folder: str, settings: Settings, *, check: bool
) -> str | None:
    """Prepare a case on a side; return the first wrong item of its result."""
    job = case.job
    own = job.case.own_workload
    if own is None:
        prepared = both.ask(side, "prepare", **inputs.command(job.case), outputs_to=folder if check else None)
        if check and prepared.get("plan") is not None:
            # Both sides read the same files.
            _note_code(both, case, side, Code.of([prepared["plan"]], {}).digests)
        return inputs.wrong(job.case, prepared["outputs"]) if check else None
    environment = both.environments[side]
    assert environment.file is not None, "each side of a user's benchmark has its file"
    prepared = both.ask(
        side, "prepare_own", file=str(environment.file), name=environment.benchmark or own.declared.name,
        n=job.case.n, mode=job.mode.value, axes=dict(job.case.others), seed=settings.seed, check=check,
    )  # fmt: skip
    if check:
        _note_code(both, case, side, prepared.get("code"))
    case.unchecked |= check and not prepared["checked"]
    case.shader_checks[side] = prepared["shader_checks"]
    return prepared["wrong"]


def _note_code(both: _Both, case: MeasuredCase, side: str, digests: Mapping[str, str] | None) -> None:
    """Note what a side asks of the GPU, and by what: without timestamps there are times of the host alone."""
    said = both.said[side]
    if digests is not None and said["has_timestamps"]:
        engine = [said["versions"].get(name) for name in ("wgpu", "wgpudawn")]
        case.codes[side] = {**digests, "engine": engine, "adapter": said["adapter"]}


@contextmanager
def _failing(both: _Both, case: MeasuredCase, side: str) -> Generator[None]:
    """Keep the error of a side in the case; a dead process is replaced for the cases to come."""
    try:
        yield
    except SideError as error:
        case.errors.setdefault(side, str(error))
        if error.is_interrupted:
            case.interrupted.add(side)
        if error.is_dead:
            both.replace(side)


def _size(case: MeasuredCase, trial_ns: float, settings: Settings) -> None:
    """Choose dispatches in a sample and samples in a turn, for all pairs of processes."""
    if case.job.mode is Mode.BATCH:
        # 1, 2, 5, 10 …: a round number.
        wanted = min(max(_PASS_NS / trial_ns, 1.0), _MOST_BATCH)
        power = 10 ** math.floor(math.log10(wanted))
        case.trials = int(next(power * k for k in (1, 2, 5, 10) if power * k >= 0.99 * wanted))
        case.trials = max(1, min(case.trials, int(_MOST_SUBMISSION_NS / trial_ns)))
    else:
        case.trials = 1
    samples = settings.turn_s * 1e9 / (trial_ns * case.trials)
    case.samples = int(min(max(samples, _LEAST_SAMPLES), _MOST_SAMPLES))


def _take_turns(both: _Both, case: MeasuredCase, settings: Settings, rng: random.Random) -> None:
    """Measure A B B A, or B A A B, some times."""
    taken: dict[str, TakenRow] = {}
    watch = LoadWatch([worker.pid for worker in both.workers.values()])
    for _ in range(settings.rounds):
        first, second = rng.sample(SIDES, 2)
        found: dict[str, dict[str, list[float]]] = {}
        for side in (first, second, second, first):
            with _failing(both, case, side):
                if not case.errors:
                    answer = both.ask(
                        side, "turn", mode=case.job.mode.value, trials=case.trials, samples=case.samples,
                        lead_s=settings.lead_s,
                    )  # fmt: skip
                    _note_step(case, answer)
                    for row, time_ns in _row_times(case, answer, settings.kernels).items():
                        found.setdefault(row, {}).setdefault(side, []).append(time_ns)
        if case.errors:
            return
        for row, sides in found.items():
            if all(len(sides.get(side, ())) == 2 for side in SIDES):  # a kernel may be on one side only
                old, new = (float(np.mean(np.log(sides[side]))) for side in SIDES)
                one = taken.setdefault(row, TakenRow([], {side: [] for side in SIDES}))
                one.logs.append(new - old)
                for side in SIDES:
                    one.times_ns[side].extend(sides[side])
    case.other_load = max(case.other_load, watch.share() or 0.0)
    case.on_cpu = _is_cpu(both.said[SIDES[0]]["adapter"])
    if taken:
        case.taken.append(taken)  # in one step: an interrupt leaves no half of a pair
    else:
        case.errors.setdefault(SIDES[1], "no valid timestamps")


def _row_times(case: MeasuredCase, answer: Mapping[str, Any], kernels: bool) -> dict[str, float]:
    """Return the time of a trial by row, in one turn: means of the middle half of the samples."""
    series: dict[str, list[float | None]] = {"gpu_span": answer["gpu_span"]}
    if case.job.mode is Mode.LATENCY or not any(answer["gpu_span"]):
        series["cpu_wall"] = answer["cpu_wall"]
    labels: list[str] = answer["labels"]
    if kernels and len(labels) > 1:
        for i, label in enumerate(labels):
            number = f" {labels[:i].count(label) + 1}" if labels.count(label) > 1 else ""  # passes of one kernel
            series[f"kernel {label}{number}"] = [sample[i] for sample in answer["kernels"] if sample]
    found: dict[str, float] = {}
    for row, samples in series.items():
        valid = [sample for sample in samples if sample]
        if 2 * len(valid) > len(samples):
            found[row] = float(interquartile_mean(np.array(valid, dtype=np.float64))) / case.trials
    return found


def _note_step(case: MeasuredCase, answer: Mapping[str, Any]) -> None:
    """Note the smallest difference between two spans, which the clock's step is at most."""
    spans = np.unique(np.array([span for span in answer["gpu_span"] if span], dtype=np.float64))
    if spans.size > 1:
        case.step_ns = min(case.step_ns, float(np.diff(spans).min()) / case.trials)
