"""What is told about a case beside its times: each quantity is a column of every table, and is declared here only.

The table of `gridwise bench` and its markdown, CSV and `to_dataframe`, the report's page, the ranks and the rows of
`gridwise compare`, and the remarks on what is missing are all made from `QUANTITIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...display.quantities import format_energy, format_number, format_percent, format_uncertainty
from ..stats.energy import LEAST_WINDOWS, EnergyResult, judge_energy, pooled_energy
from ..stats.verdict import Verdict
from .model import CaseKey, Result, Results
from .shares import copy_shares, peak_problem

Shares: TypeAlias = Mapping[CaseKey, float | None]


@dataclass(frozen=True)
class Quantity:
    """A number about a case.

    Attributes
    ----------
    heading : str
        Of its column.
    name : str
        In CSV, `to_dataframe` and JSON, with its unit.
    value : callable
        Returns the number of a result, or None; the second argument is `copy_shares`.
    text : callable
        Returns it for people.
    priority : int
        Of its column in a narrow terminal: the largest is left out first.
    always : bool
        Whether its column is there without a number in it.
    legend : str
        What it is, below a table.
    problem : callable, optional
        Returns why the numbers of a document must not be shown.
    uncertainty : callable, optional
        Returns half of its 95 % interval as a share of it.
    reason : callable, optional
        Returns why a result has no number although one was asked for.
    judge : callable, optional
        Returns the verdict on the visits of a case in two files, or why there is none; None where a file has no number.
    in_runs, in_records, in_ranks : bool
        Whether it is in tables of results; in CSV and `to_dataframe`; in the ranks of devices.
    rank_heading : str
        Of its column of ranks, if that is another one.
    """

    heading: str
    name: str
    value: Callable[[Result, Shares], float | None]
    text: Callable[[float | None], str] = format_number
    priority: int = 2
    always: bool = False
    legend: str = ""
    problem: Callable[[Results], str | None] | None = None
    uncertainty: Callable[[Result], float | None] | None = None
    reason: Callable[[Result], str | None] | None = None
    judge: Callable[[Sequence[Result], Sequence[Result], float], Verdict | str | None] | None = None
    in_runs: bool = True
    in_records: bool = True
    in_ranks: bool = False
    rank_heading: str = ""

    def shown_text(self, result: Result, value: float | None) -> str:
        """Return the text of a result's number, with its uncertainty if it has one."""
        error = None if self.uncertainty is None or value is None else self.uncertainty(result)
        return self.text(value) if error is None else f"{self.text(value)} {format_uncertainty(error)}"


def _gbytes_per_j(result: Result, _: Shares) -> float | None:
    rate, power_w = result.rates.gbytes_per_s, result.power_w
    return rate / power_w if rate and power_w else None


def _judged_energy(old: Sequence[Result], new: Sequence[Result], threshold: float) -> Verdict | str | None:
    sides = [pooled_energy(_energies(side)) for side in (old, new)]
    if any(side is None or side.joules is None for side in sides):
        return None
    before, after = (side for side in sides if side is not None)
    fewest = min(len(before.windows), len(after.windows))
    found = judge_energy(before, after, threshold)
    return found or f"{fewest} windows of a side, and a verdict needs {LEAST_WINDOWS}"


def _energies(visits: Sequence[Result]) -> list[EnergyResult]:
    return [visit.energy for visit in visits if visit.energy is not None]


QUANTITIES: tuple[Quantity, ...] = (
    Quantity(
        "GB/s", "gbytes_per_s", lambda result, _: result.rates.gbytes_per_s, always=True, in_ranks=True,
    ),
    Quantity("G items/s", "gitems_per_s", lambda result, _: result.rates.gitems_per_s, priority=5, always=True),
    Quantity(
        "of copy", "copy_share", lambda result, shares: shares[result.key], format_percent, priority=4,
        legend="Of copy: GB/s over that of the copy kernel with an array of as many bytes.",
        in_records=False, in_ranks=True, rank_heading="of own copy",
    ),
    Quantity(
        "of peak", "share_of_peak", lambda result, _: result.rates.share_of_peak, format_percent, priority=6,
        legend="Of peak: over the fastest copy or triad of this size.", problem=peak_problem,
    ),
    Quantity(
        "energy", "joules", lambda result, _: None if result.energy is None else result.energy.joules, format_energy,
        priority=1, legend="Energy: of the whole GPU per trial, its idle power included.",
        uncertainty=lambda result: None if result.energy is None else result.energy.uncertainty(),
        reason=lambda result: None if result.energy is None else result.energy.reason,
        judge=_judged_energy, in_ranks=True,
    ),
    Quantity("GB/s per W", "gbytes_per_j", _gbytes_per_j, in_runs=False, in_records=False, in_ranks=True),
)  # fmt: skip


def shown(document: Results) -> list[tuple[Quantity, Shares]]:
    """Return the quantities of tables of a pooled document, without those that no result has."""
    shares = copy_shares(document)
    return [
        (one, shares)
        for one in QUANTITIES
        if one.in_runs
        and (one.problem is None or one.problem(document) is None)
        and (one.always or any(one.value(result, shares) is not None for result in document.results))
    ]
