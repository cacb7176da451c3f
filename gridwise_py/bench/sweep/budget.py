"""Estimates how long a run takes, and how large its cases may be to end in time. Uses no GPU: times are passed in.

A GPU measures the usual sizes in seconds, a CPU adapter in minutes. For a CPU adapter, a run without --n uses the
largest n at which all cases are expected to end within a budget. The copy kernel, timed first, gives the cost per item;
the cases measured so far give the cost of compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

from ..cases.case import array_items
from ..cases.mode import Mode
from ..results.model import CaseLevels
from ..sampling.protocol import SamplingProtocol
from .suite import Job

#: A run that fills its budget begins with so many processes and rounds, which show where the spread is.
PILOT_PROCESSES, PILOT_ROUNDS = 2, 2
#: With fewer processes no interval counts as narrow: levels in two modes may be equal by chance.
LEAST_PROCESSES = 7

#: Candidates, the largest first: far apart, so that a machine under other load chooses the same n again.
CHOICES_OF_N = tuple(1 << exponent for exponent in range(24, 9, -2))

# Time per item relative to the copy kernel, as measured on lavapipe.
_ITEM_COST: Mapping[str, float] = {
    "copy": 1.0, "vector_add": 1.2, "reduce": 0.9, "scan": 2.8, "sort": 200.0, "sort_pairs": 300.0, "argsort": 300.0,
}  # fmt: skip
_MATMUL_COST = 0.1  # of each of the n³ multiply-adds
_WIDE = ("u64", "i64", "f64")
_WIDE_COST = 2.5
# Compiling and first use, on a CPU adapter with a cold driver cache.
_COMPILE_S: Mapping[str, float] = {"sort": 2.0, "sort_pairs": 2.0, "argsort": 2.0, "reduce": 0.3, "scan": 0.4}
_COMPILE_OTHERS_S = 0.15
_COMPILE_GPU_S = 0.3
# Fixed cost: canaries and the first check of the clock. Per item: making, uploading and checking it on the CPU.
_CASE_S = 0.2
_HOST_ITEM_S = 5e-8
# The start of a process, and the first use of kernels that the driver has cached.
_PROCESS_S = 1.5
_CACHED_COMPILE_S = 0.1
# Share of the budget for the time before the first case and after the last.
_AROUND_S = 3.0
# Estimates may be too short by this factor: a sort compiled for 5 to 20 s with cold caches on a slow, busy machine.
_RESERVE = 0.6


class CostModel:
    """A model of the time of a case, from the times measured so far.

    Attributes
    ----------
    protocol : SamplingProtocol
    copy_item_ns : float or None
        The time of the copy kernel per item; None on a GPU, where trials are too short to count.
    isolated : bool
        Whether each case has its own process, which requests the device and makes its pipelines again.
    """

    def __init__(self, protocol: SamplingProtocol, copy_item_ns: float | None = None, isolated: bool = False):
        self.protocol = protocol
        self.copy_item_ns = copy_item_ns
        self.isolated = isolated
        self._compiled: set[tuple[str, str | None]] = set()
        self._compile_scale: tuple[float, float] = (1.0, 1.0)
        self._run_scale: dict[str, tuple[float, float]] = {}

    def trial_s(self, job: Job) -> float:
        """Return the time of one trial."""
        if self.copy_item_ns is None:
            return 0.0
        case = job.case
        if case.primitive == "matmul":
            cost = _MATMUL_COST * case.n**3
        else:
            cost = _ITEM_COST.get(case.primitive, 1.0) * array_items(case.primitive, case.n)
        return cost * (_WIDE_COST if case.datatype in _WIDE else 1.0) * self.copy_item_ns * 1e-9

    def compile_s(self, job: Job) -> float:
        """Return the time of compiling its kernels; 0 if that was done before."""
        if not self.isolated and (job.case.primitive, job.case.datatype) in self._compiled:
            return 0.0
        if self.copy_item_ns is None:
            return _COMPILE_GPU_S
        actual, expected = self._compile_scale
        # Never less than the default: a driver that has cached the kernels of some cases may still compile others.
        return _COMPILE_S.get(job.case.primitive, _COMPILE_OTHERS_S) * max(1.0, actual / expected)

    def run_s(self, job: Job) -> float:
        """Return the time of warm-up and sampling."""
        # For a primitive that was not measured yet, scaled by the ratio for all others.
        known = [self._run_scale[job.case.primitive]] if job.case.primitive in self._run_scale else []
        known = known or list(self._run_scale.values()) or [(1.0, 1.0)]
        return self._expected_run_s(job) * sum(actual for actual, _ in known) / sum(expected for _, expected in known)

    def case_s(self, job: Job) -> float:
        """Return the total time of a case."""
        return self.compile_s(job) + self.run_s(job)

    def _expected_run_s(self, job: Job) -> float:
        trial_s, protocol = self.trial_s(job), self.protocol
        # The warm-up checks times after two submissions, at least three times, or until its limit.
        warmup_s = max(protocol.warmup_s, min(6 * trial_s, protocol.max_warmup_s + 2 * trial_s))
        batch = protocol.batch_trials if job.mode is Mode.BATCH and protocol.batch_trials else 1
        sample_s = trial_s * min(batch, max(1.0, protocol.max_submission_gpu_s / trial_s)) if trial_s else 0.0
        # Sampling ends after a whole block, which untimed work precedes.
        process_s = _PROCESS_S if self.isolated else 0.0
        host_s = _CASE_S + _HOST_ITEM_S * array_items(job.case.primitive, job.case.n)
        # A CPU has no sensor.
        energy_s = protocol.energy_windows * protocol.energy_window_s if self.copy_item_ns is None else 0.0
        return process_s + host_s + 3 * trial_s + warmup_s + max(protocol.timeout_s, sample_s + trial_s) + energy_s

    def learn(self, job: Job, seconds: float, compile_s: float | None) -> None:
        """Update the model with the total time of a case, and its compile time."""
        if compile_s is not None:
            actual, expected = self._compile_scale
            self._compile_scale = (actual + compile_s, expected + _COMPILE_S.get(job.case.primitive, _COMPILE_OTHERS_S))
        self._compiled.add((job.case.primitive, job.case.datatype))
        run_s = max(seconds - (compile_s or 0.0), 0.0)
        actual, expected = self._run_scale.get(job.case.primitive, (0.0, 0.0))
        self._run_scale[job.case.primitive] = (actual + run_s, expected + self._expected_run_s(job))


def choose_n(jobs_at: Callable[[int], Sequence[Job]], model: CostModel, budget_s: float) -> int:
    """Return the largest n at which all jobs are expected to end within a budget; the smallest if none fits.

    The reserve is for the first process, which compiles. A later one that would end after the budget is left out.

    Parameters
    ----------
    jobs_at : callable
        Returns the jobs at an n.
    model : CostModel
    budget_s : float
    """
    room_s = _RESERVE * (budget_s - _AROUND_S)
    for n in CHOICES_OF_N:
        jobs = jobs_at(n)
        first_s = _total_s([job for job in jobs if job.process == 0], model)
        if first_s <= room_s and _total_s(jobs, model) <= budget_s - _AROUND_S:
            return n
    return CHOICES_OF_N[-1]


def _total_s(jobs: Sequence[Job], model: CostModel) -> float:
    """Return the time of jobs: each pair of primitive and datatype is compiled once, and cached for later processes."""
    seen: set[tuple[str, str | None]] = set()
    processes = {job.process for job in jobs}
    total_s = _PROCESS_S * len(processes) if processes - {0} else 0.0
    for job in jobs:
        key = (job.case.primitive, job.case.datatype)
        cached_s = _CACHED_COMPILE_S if job.process else 0.0
        total_s += model.run_s(job) + (cached_s if key in seen else model.compile_s(job))
        seen.add(key)
    return total_s


def _urgent_first(jobs: Sequence[Job], model: CostModel) -> list[Job]:
    """Return jobs with those of the first process in an order in which the last ones are the least important."""
    seen: dict[tuple[int, str], int] = {}
    variants: dict[Job, int] = {}
    first = [job for job in jobs if job.process == 0]
    for job in sorted(first, key=lambda job: job.position):
        key = (job.round, job.case.primitive)
        variants[job] = seen[key] = seen.get(key, -1) + 1
    ordered = sorted(first, key=lambda job: (job.round, variants[job], model.case_s(job)))
    return [*ordered, *(job for job in jobs if job.process)]


class Schedule:
    """The order of the jobs, their expected times, and the time left.

    Parameters
    ----------
    jobs : sequence of Job
    model : CostModel
    clock : callable
        Returns seconds, from any origin.
    begin_s : float
        When the run began, by that clock.
    budget_s : float, optional
        The run must end in this time. In the first process, one case of each primitive goes first, cheap ones before
        others. The second one has the cases that end in time; a later one has all, or is left out.
    leaves_out : bool
        Whether a case of the first process that would end later is left out. If not, it is measured in any case.
    fills_budget : bool
        Whether there are as many processes as end in time, so that their number is not known.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        model: CostModel,
        clock: Callable[[], float],
        begin_s: float,
        budget_s: float | None = None,
        *,
        leaves_out: bool = True,
        fills_budget: bool = False,
    ):
        self._model, self._clock, self._begin_s = model, clock, begin_s
        self.budget_s = budget_s
        self.fills_budget = fills_budget
        self._leaves_out = leaves_out and budget_s is not None
        self.jobs: list[Job] = _urgent_first(jobs, model) if self._leaves_out else list(jobs)
        #: How many processes there are; None if the budget decides.
        self.processes: int | None = None if fills_budget else len({job.process for job in jobs})
        self._case_begin_s = begin_s
        # The cases of the first process, by position: whether each was measured.
        self._measured: dict[int, bool] = {}
        # By process: its start, and its cases.
        self._start_s: dict[int, float] = {}
        self._took_s: dict[int, float] = {}
        self._visits: dict[int, int] = {}
        self._narrow: set[int] = set()
        #: Positions of the cases whose intervals are narrow: later processes leave them out.
        self.settled: frozenset[int] = frozenset()
        self._entered: tuple[int, bool] = (0, True)
        rounds = max((job.round for job in jobs), default=0) + 1
        #: Rounds of each process from now on.
        self.rounds: int = min(rounds, PILOT_ROUNDS) if fills_budget else rounds

    @property
    def elapsed_s(self) -> float:
        """Since the run began."""
        return self._clock() - self._begin_s

    @property
    def case_elapsed_s(self) -> float:
        """Since the case that is running began."""
        return self._clock() - self._case_begin_s

    def compile_s(self, job: Job) -> float:
        """Return the expected compile time of a job."""
        return self._model.compile_s(job)

    def left_s(self, jobs: Sequence[Job]) -> float:
        """Return the time of the remaining jobs."""
        return _total_s(jobs, self._model)

    def admits(self, job: Job) -> bool:
        """Return whether a job is measured: it ends in time, and its case needs it."""
        if self.budget_s is None:
            return True
        if job.round >= self.rounds or job.position in self.settled:
            return False
        room_s = self.budget_s - _AROUND_S / 2 - self.elapsed_s
        fits = self._model.case_s(job) <= room_s
        if job.process == 0:
            self._measured[job.position] = fits or not self._leaves_out
            return self._measured[job.position]
        if not self._measured.get(job.position, True) or not self._enters(job.process, room_s):
            return False
        return job.process > 1 or fits

    def _enters(self, process: int, room_s: float) -> bool:
        """Return whether a process is begun, decided at its first job."""
        if self._entered[0] != process:
            # The first process has no caches, so the later ones tell.
            left = sum(measured and position not in self.settled for position, measured in self._measured.items())
            known_s = [
                self._start_s.get(number, 0.0) + took_s / self._visits[number] * left * self.rounds
                for number, took_s in self._took_s.items()
                if number
            ]
            needed_s = _PROCESS_S if process == 1 or not known_s else max(known_s)
            self._entered = (process, needed_s <= room_s)
        return self._entered[1]

    def after_pilot(self, levels: Sequence[CaseLevels]) -> int | None:
        """Choose the rounds of the later processes, and return how many samples a visit needs; None: it is unknown.

        Parameters
        ----------
        levels : sequence of CaseLevels
            Of the first processes.
        """
        if not levels:
            return None
        most = max(job.round for job in self.jobs) + 1
        self.rounds = min(round(median(one.rounds_advised for one in levels)), most)
        return max(one.samples_advised for one in levels)

    def after_process(self, done: int, narrow: Collection[int]) -> None:
        """Note which cases need no further process: those whose interval was narrow twice in a row.

        Parameters
        ----------
        done : int
            Processes that are done.
        narrow : collection of int
            Positions of the cases with a narrow interval.
        """
        now = set(narrow) if done >= LEAST_PROCESSES else set[int]()
        self.settled |= now & self._narrow
        self._narrow = now

    def started(self, process: int, seconds: float) -> None:
        """The process of a job was started in this time."""
        self._start_s[process] = self._start_s.get(process, 0.0) + seconds

    def began(self) -> None:
        """A case begins."""
        self._case_begin_s = self._clock()

    def finished(self, job: Job, compile_s: float | None) -> None:
        """The case that began is done."""
        self._took_s[job.process] = self._took_s.get(job.process, 0.0) + self.case_elapsed_s
        self._visits[job.process] = self._visits.get(job.process, 0) + 1
        self._model.learn(job, self.case_elapsed_s, compile_s)
