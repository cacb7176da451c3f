"""Judges the times of one benchmark against those of a stored file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...display.quantities import format_time
from ..analysis.compare import Comparison, Row, compare
from ..report.comparison import interval_text
from ..results.model import Results
from ..stats.verdict import JUDGE_BUSY, Cause, Unit, Verdict, VerdictKind

_IN_PROCESSES = (
    "measure in several processes for both files (pytest -n 5 --dist each, or five times with --gridwise-append), "
    "and then gridwise compare"
)
_IN_ROUNDS = "take more rounds than now for both files: gpu_benchmark(..., rounds=30)"
_IN_SAMPLES = "take more samples for both files: gpu_benchmark(..., protocol=gw.SamplingProtocol(timeout_s=1))"
_THRESHOLD = "give another threshold: gpu_benchmark(..., threshold=...)"
#: What is said of a benchmark without a verdict.
NOT_JUDGED = "not judged"
#: What to do in pytest.
_REMEDIES: dict[tuple[Cause, Unit | None], str] = {
    (Cause.FEW_SAMPLES, None): _IN_SAMPLES,
    (Cause.MACHINE, None): (
        f"{_IN_ROUNDS}, at a steady clock and with no other work (with pytest-xdist: -n 0); on a CPU, {JUDGE_BUSY}"
    ),
    (Cause.SINGLE, None): f"{_IN_PROCESSES}; or let gridwise calibrate --repeatability learn how processes differ",
    (Cause.CLOCK_STEP, None): "put more trials into a sample: protocol=gw.SamplingProtocol(batch_trials=1000)",
    (Cause.SPREAD, "process"): f"{_IN_PROCESSES}; or {_THRESHOLD}",
    (Cause.SPREAD, "round"): f"{_IN_ROUNDS}; if that does not do, {_IN_PROCESSES}; or {_THRESHOLD}",
    (Cause.SPREAD, "sample"): f"{_IN_SAMPLES}; if that does not do, {_IN_PROCESSES}; or {_THRESHOLD}",
    (Cause.NEAR_THRESHOLD, None): _THRESHOLD,
}


@dataclass(frozen=True)
class Judgement:
    """What a comparison says of one benchmark.

    Attributes
    ----------
    comparison : Comparison
    said : str
        In a few words: ``"same: 1.002 times (0.995 to 1.009)"``.
    failure : str
        Why the test fails; empty if it does not.
    ambiguous : str
        Why it could not be decided, with the numbers, and what would decide it; empty if it was.
    unsettled : str
        The same in general, so that many benchmarks can share it.
    """

    comparison: Comparison
    said: str
    failure: str = ""
    ambiguous: str = ""
    unsettled: str = ""


def judge(name: str, baseline: Results, new: Results, file: str, *, threshold: float, gate: float) -> Judgement | None:
    """Judge the results of one case; None if the file does not have it.

    Parameters
    ----------
    name : str
        Of the benchmark.
    baseline : Results
    new : Results
        Of this case only; all of its processes and rounds.
    file : str
        The name of the baseline.
    threshold, gate : float
        As for `compare`.
    """
    key = new.results[0].key
    old = tuple(result for result in baseline.results if result.key == key)
    if not old:
        return None
    comparison = compare(replace(baseline, results=old), new, threshold=threshold, gate=gate)
    rows = [row for row in comparison.rows if row.gated]
    if not rows:
        why = "; ".join(comparison.obstacles + comparison.notes + comparison.wrong)
        why = f"not judged: {why}; measure {file} again"
        return Judgement(comparison, NOT_JUDGED, ambiguous=why, unsettled=why)
    past = [row for row in rows if row.past_gate]
    unsettled = [row for row in rows if row.verdict is None or row.verdict.kind is VerdictKind.AMBIGUOUS]
    failure = ""
    if past:
        slower = "; ".join(_slower(row) for row in past)
        failure = f"{name} is slower than in {file} by more than {100 * gate:g} %: {slower}"
    return Judgement(comparison, _said(past or unsettled or rows), failure, *_ambiguous(unsettled))


def _said(rows: Sequence[Row]) -> str:
    row = rows[0]
    if row.verdict is None:
        return NOT_JUDGED
    v = row.verdict
    gate = ", past the gate" if row.past_gate else ""
    return f"{v.kind.value}{gate}: {v.ratio:.3f} times ({interval_text(v)})"


def _slower(row: Row) -> str:
    v = row.verdict
    assert v is not None, "a row past the gate is judged"
    part = "GPU time" if row.name == "gpu_span" else "CPU wall" if row.name == "cpu_wall" else f"kernel {row.name}"
    return f"{part} {format_time(v.old_ns)} before, {format_time(v.new_ns)} now, {v.ratio:.3f} times; {v.reason}"


def _ambiguous(rows: Sequence[Row]) -> tuple[str, str]:
    """Return why the first of ambiguous rows is that, with its numbers and without; empty if there is none."""
    for row in rows:
        if row.verdict is None:
            return row.note, row.note
        assert row.verdict.cause is not None, "an ambiguous verdict has a cause"
        remedy = f"To decide, {_remedy(row.verdict, row.verdict.cause)}"
        return f"{row.verdict.reason}. {remedy}", f"{row.verdict.statement}. {remedy}"
    return "", ""


def _remedy(verdict: Verdict, cause: Cause) -> str:
    remedy = _REMEDIES[cause, verdict.unit if cause is Cause.SPREAD else None]
    if verdict.needed is None:
        return remedy
    return f"{remedy}; about {verdict.needed:,} {verdict.units} of each side would do"
