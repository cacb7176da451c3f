"""The outcome of `gridwise ab`: a verdict for each row, and what makes the command fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...storage.json_files import json_data
from ..analysis.compare import SAME_CODE
from ..stats.verdict import JUDGE_BUSY, Cause, Verdict, VerdictKind, judge_all
from .environments import Environment
from .taken import SIDES, Measured, MeasuredCase
from .turns import Settings

SCHEMA = "gridwise.ab"
SCHEMA_VERSION = 1

#: With fewer pairs of processes there is no spread to judge by.
LEAST_PAIRS = 2
_MOST_PAIRS = 50
#: A difference of 0 must be this unlikely, so that rows of any noise are wrong in at most so many cases.
_MOST_P = 0.01
#: What files have of a verdict.
_OF_VERDICT = ("ratio", "low", "high", "p_corrected", "between_sd", "within_sd")

_UNCHECKED = "not checked: {}: a wrong result passes; give each a reference= in its gw.Benchmark"


@dataclass(frozen=True)
class JudgedRow:
    """One time of one case.

    Attributes
    ----------
    case : str
        Its name, with n.
    name : str
        ``"gpu_span"``, ``"cpu_wall"`` or ``"kernel"`` and its label.
    old_ns, new_ns : float
        Medians of the turns, for one trial.
    verdict : Verdict
    past_gate : bool
        Whether it is slower by more than the gate.
    gated : bool
        Whether the gate applies to it: CPU walls beside GPU times pass every gate.
    """

    case: str
    name: str
    old_ns: float
    new_ns: float
    verdict: Verdict
    past_gate: bool
    gated: bool = True

    @property
    def settle(self) -> str:
        """What settles an ambiguous row: options of the command."""
        v = self.verdict
        if v.cause is Cause.NEAR_THRESHOLD:
            return "another --threshold: the difference is about as large"
        if v.cause is Cause.CLOCK_STEP:
            return "times of a finer clock, or with more digits; or more work for each time"
        if v.cause is Cause.MACHINE:
            return f"a machine with less other work; {JUDGE_BUSY}"
        if v.needed is not None and v.needed <= _MOST_PAIRS:
            return f"--pairs {v.needed}"
        return "a larger --threshold, or a machine with less other work"

    def to_json(self) -> dict[str, Any]:
        """Return it for a file."""
        v = self.verdict
        numbers = {name: getattr(v, name) for name in _OF_VERDICT}
        verdict = {"kind": v.kind, **numbers, "p_value": v.p_value, "pairs": v.old_units, "reason": v.reason}
        settle = self.settle if v.kind is VerdictKind.AMBIGUOUS else ""
        return {**asdict(self), "verdict": {**verdict, "settle": settle}}

    def to_record(self) -> dict[str, Any]:
        """Return it as a line of CSV."""
        data = self.to_json()
        return {**data, **data["verdict"], "verdict": self.verdict.kind.value}


@dataclass(frozen=True)
class Judged:
    """The outcome.

    Attributes
    ----------
    environments : mapping from str to Environment
        By side.
    measured : Measured
    settings : Settings
    threshold, gate : float
    rows : tuple of JudgedRow
    wrong : tuple of str
        Results that differ from numpy's.
    broken : tuple of str
        Cases that ran in OLD and failed in NEW.
    notes : tuple of str
        Cases that are not judged.
    """

    environments: Mapping[str, Environment]
    measured: Measured
    settings: Settings
    threshold: float
    gate: float
    rows: tuple[JudgedRow, ...]
    wrong: tuple[str, ...]
    broken: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_settled(self) -> bool:
        """Whether nothing had to be measured: all cases ask the same of the GPU."""
        return all(not self.settings.measures(case) and not case.errors for case in self.measured.cases)

    @property
    def stopped(self) -> str | None:
        """What ended the measurement before all that was asked was measured; None if nothing did."""
        error = self.measured.stopped
        if error is None:
            return None
        return str(error) or "interrupted"

    @property
    def regressed(self) -> bool:
        """Whether a gate must stop NEW: a row past the gate, or a case that no longer runs."""
        return bool(self.broken) or any(row.past_gate for row in self.rows)

    @property
    def undecided_share(self) -> float:
        """The share of the rows that the gate applies to that are ambiguous; 0 without any."""
        gated = [row.verdict.kind is VerdictKind.AMBIGUOUS for row in self.rows if row.gated]
        return sum(gated) / len(gated) if gated else 0.0

    def counts(self) -> dict[str, int]:
        """Return how many rows got each verdict."""
        kinds = [row.verdict.kind for row in self.rows]
        return {kind.value: kinds.count(kind) for kind in VerdictKind}

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return json_data(
            {
                "schema": SCHEMA,
                "schema_version": SCHEMA_VERSION,
                "sides": {side: self._side(side) for side in SIDES},
                "clock": self.measured.clock,
                "complete": self.stopped is None,
                "stopped": self.stopped,
                "settings": asdict(self.settings),
                "threshold": self.threshold,
                "gate": self.gate,
                "rows": [row.to_json() for row in self.rows],
                "wrong": self.wrong,
                "broken": self.broken,
                "notes": self.notes,
                "cases": [
                    {
                        "case": case.name,
                        "trials": case.trials,
                        "samples": case.samples,
                        "other_load": case.other_load,
                        "log_ratios": case.logs,
                        "times_ns": case.times_ns,
                    }
                    for case in self.measured.cases
                ],
            }
        )

    def _side(self, side: str) -> dict[str, Any]:
        environment, said = self.environments[side], self.measured.sides[side]
        # Without folders, which describe the machine, not the measurement.
        return {
            "kind": environment.kind,
            "given": environment.given.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1],
            "commit": environment.commit,
            "changed": environment.changed,
            **({} if environment.engine is None else {"engine": environment.engine}),
            "versions": said["versions"],
            "adapter": said["adapter"],
        }


def judge(
    environments: Mapping[str, Environment],
    measured: Measured,
    settings: Settings,
    *,
    threshold: float,
    gate: float,
) -> Judged:
    """Judge all rows.

    Parameters
    ----------
    environments : mapping from str to Environment
    measured : Measured
    settings : Settings
    threshold : float
        Differences below this share are ignored.
    gate : float
        A row that is slower by more than this share fails.

    Returns
    -------
    Judged
    """
    whole: list[tuple[MeasuredCase, str]] = []
    short: list[str] = []
    for case in (case for case in measured.cases if not case.errors):
        counts = {row: len(pairs) for row, pairs in case.logs.items()}
        whole += [(case, row) for row, count in counts.items() if count >= LEAST_PAIRS]
        short += [
            _short(f"{case.name}, {row}", count, settings) for row, count in counts.items() if count < LEAST_PAIRS
        ]
        short += [] if counts or case.same_code else [_short(case.name, 0, settings)]
    verdicts = judge_all([case.pair(row) for case, row in whole], threshold=threshold, most_p=_MOST_P)
    rows: list[JudgedRow] = []
    for (case, row), verdict in zip(whole, verdicts, strict=True):
        gated = row != "cpu_wall" or "gpu_span" not in case.logs
        past = gated and verdict.kind is VerdictKind.SLOWER and verdict.ratio > 1 + gate
        old_ns, new_ns = (case.median_ns(row, side) for side in SIDES)
        rows.append(JudgedRow(case.name, row, old_ns, new_ns, verdict, past, gated))
    failed = [case for case in measured.cases if case.errors]
    same_code = [case.name for case in measured.cases if case.same_code and not case.errors]
    findings = [f"{row.case}, {row.name}: {row.verdict.finding}" for row in rows if row.verdict.finding]
    unchecked = [case.name for case in measured.cases if case.unchecked and not case.errors]
    levels = [
        f"{case.name} ({', '.join(f'{side} {level}' for side, level in case.shader_checks.items())})"
        for case in measured.cases if len(set(case.shader_checks.values()) - {None}) > 1
    ]  # fmt: skip
    return Judged(
        environments, measured, settings, threshold, gate, tuple(rows),
        wrong=tuple(f"{side}: {case.name}: {text}" for case in failed for side, text in case.wrong.items()),
        broken=tuple(f"{case.name}: {case.errors['NEW']}" for case in failed if _is_broken(case)),
        notes=(*(
            f"{case.name}: not judged: {'; '.join(f'{side}: {text}' for side, text in case.errors.items())}"
            for case in failed
            if not _is_broken(case) and not case.wrong
        ), *short, *((_UNCHECKED.format(", ".join(unchecked)),) if unchecked else ()),
            *((SAME_CODE.format(", ".join(same_code)),) if same_code else ()), *findings,
            *((f"the run-time checks of shaders differ, and take time: {', '.join(levels)}",) if levels else ())),
    )  # fmt: skip


def _short(what: str, pairs: int, settings: Settings) -> str:
    measured = "1 pair of processes has" if pairs == 1 else f"{pairs or 'no'} pairs of processes have"
    return f"{what}: not judged: {measured} measured it, of {settings.pairs}; a verdict needs {LEAST_PAIRS}"


def _is_broken(case: MeasuredCase) -> bool:
    return set(case.errors) == {"NEW"} and not case.wrong
