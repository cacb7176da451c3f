"""What two sides measured in turns, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...internals import Code
from ..sampling.machine_load import is_busy
from ..stats.verdict import Pair
from ..sweep.suite import Job

SIDES = ("OLD", "NEW")


class Progress:
    """Is told how far the measurement is; this one ignores it."""

    def step(self, text: str, left_s: float | None) -> None:
        """Receive what comes next, and about how long everything still takes; None while nothing tells."""

    def pair_done(self, pair: int, pairs: int, left_s: float) -> None:
        """Receive that a pair of processes has measured all cases."""


@dataclass(frozen=True)
class TakenRow:
    """What one pair of processes measured of one row.

    Attributes
    ----------
    logs : list of float
        The logarithms of NEW by OLD, one per A B B A.
    times_ns : dict from str to list of float
        By side, the time of a trial in each turn.
    """

    logs: list[float]
    times_ns: dict[str, list[float]]


class MeasuredCase:
    """What is measured of a case, pair by pair.

    Attributes
    ----------
    job : Job
    name : str
    trials, samples : int
        Of a turn: dispatches in a sample, and samples.
    errors : dict from str to str
        By side, why it has no times.
    interrupted : set of str
        The sides whose processes were ended as Ctrl-C ends them.
    wrong : dict from str to str
        By side, the first wrong item.
    unchecked : bool
        Whether there is no reference to compare results with.
    shader_checks : dict from str to str or None
        By side, the run-time checks of a user's kernels.
    codes : dict from str to mapping or None
        By side, digests of what it asks of the GPU, its engine and its driver; None where a side does not tell.
    taken : list of dict from str to TakenRow
        For each pair of processes that measured all its turns, what it measured, by row.
    other_load : float
        The largest share of all processors that other processes used while a pair of processes measured it.
    on_cpu : bool
        Whether the adapter is a CPU.
    step_ns : float
        The smallest difference between two timestamps that was seen, per trial.
    """

    def __init__(self, job: Job):
        self.job: Job = job
        self.name: str = str(job)
        self.trials: int = 0
        self.samples: int = 0
        self.errors: dict[str, str] = {}
        self.interrupted: set[str] = set()
        self.wrong: dict[str, str] = {}
        self.unchecked: bool = False
        self.shader_checks: dict[str, str | None] = {}
        self.codes: dict[str, Mapping[str, Any] | None] = {}
        self.taken: list[dict[str, TakenRow]] = []
        self.other_load: float = 0.0
        self.on_cpu: bool = False
        self.step_ns: float = math.inf

    @property
    def same_code(self) -> bool:
        """Whether both sides ask the same of the GPU, as far as both tell all."""
        old, new = (self.codes.get(side) for side in SIDES)
        return old is not None and old == new and set(Code.DIGESTS) <= old.keys()

    @property
    def logs(self) -> dict[str, list[list[float]]]:
        """By row, for each pair of processes the logarithms of NEW by OLD of its A B B A."""
        found: dict[str, list[list[float]]] = {}
        for pair in self.taken:
            for row, one in pair.items():
                found.setdefault(row, []).append(one.logs)
        return found

    @property
    def times_ns(self) -> dict[str, dict[str, list[float]]]:
        """By row and side, the time of a trial in each turn."""
        found: dict[str, dict[str, list[float]]] = {}
        for pair in self.taken:
            for row, one in pair.items():
                for side, times in one.times_ns.items():
                    found.setdefault(row, {}).setdefault(side, []).extend(times)
        return found

    def median_ns(self, row: str, side: str) -> float:
        """Return the median of the turns."""
        return float(np.median(self.times_ns[row][side]))

    def pair(self, row: str) -> Pair:
        """Return the turns of a row for `judge_all`: a block for each A B B A, whose unit is the pair of processes."""
        taken = [(number, pair[row]) for number, pair in enumerate(self.taken) if row in pair]
        # Of the two turns of a side the geometric mean, so that a drift of the machine cancels.
        old, new = (
            [[math.sqrt(a * b)] for _, one in taken for a, b in zip(*[iter(one.times_ns[side])] * 2, strict=True)]
            for side in SIDES
        )
        processes = [number for number, one in taken for _ in one.logs]
        # Of the GPU's clock: CPU walls have no steps that matter.
        step_ns = self.step_ns if math.isfinite(self.step_ns) and row != "cpu_wall" else 0.0
        return Pair(
            old, new, step_ns, old_processes=processes, new_processes=processes, in_turns=True,
            on_cpu=self.on_cpu, loaded=is_busy(self.other_load), same_code=self.same_code and row != "cpu_wall",
        )  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """All that was measured.

    Attributes
    ----------
    sides : dict from str to dict
        By side, what its first process said about itself.
    clock : str
        ``"held"``, ``"not held"`` or ``"not applicable"``.
    cases : sequence of MeasuredCase
    stopped : KeyboardInterrupt or ArgumentError, optional
        What ended it before all pairs of processes had measured; None if nothing did.
    """

    sides: dict[str, dict[str, Any]]
    clock: str
    cases: Sequence[MeasuredCase]
    stopped: KeyboardInterrupt | ArgumentError | None = None

    @property
    def pairs(self) -> tuple[int, int]:
        """The fewest and the most pairs of processes that measured a case, among those without errors."""
        counts = [len(case.taken) for case in self.cases if not case.errors] or [0]
        return min(counts), max(counts)
