"""Compares two results files: joined by case, judged row by row, and gated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...display.quantities import format_time, format_uncertainty
from ...errors import ArgumentError
from ...internals import REGISTRY, Code
from ...settings import ShaderChecks
from ..calibrate.canary import clock_log_ratio
from ..calibrate.repeatability import Spread, spread_for
from ..cases.mode import Mode
from ..results.columns import QUANTITIES
from ..results.model import CaseKey, Result, Results, differences
from ..results.rounds import by_case, pooled, pooled_series
from ..results.shares import copy_shares
from ..results.tool_files import POSITION, UNKNOWN_MACHINE
from ..stats.levels import Repeatability
from ..stats.series import Series
from ..stats.verdict import Pair, Verdict, VerdictKind, judge_all
from .remarks import listed

#: What ranks show beside times.
RANKED = tuple(one for one in QUANTITIES if one.in_ranks)

#: What messages call the files: two versions on one device, or two devices, of which none is older.
VERSIONS, ACROSS = ("OLD", "NEW"), ("A", "B")


#: Of cases with the verdict.
SAME_CODE = "both ask the same of the GPU, so a GPU time that differs is the machine's; host code may differ: {}"
#: What verdicts on times are called of other quantities.
_OF_QUANTITIES = {"faster": "less", "slower": "more"}


@dataclass(frozen=True)
class Row:
    """One time, or another quantity, of one case in both files.

    Attributes
    ----------
    case : str
        Its name, with n.
    part : str
        ``"whole"``, ``"kernel"`` or ``"quantity"``.
    name : str
        ``"gpu_span"``, ``"cpu_wall"``, the kernel's label, or of another quantity, such as the energy.
    verdict : Verdict or None
        None if a side has no samples.
    note : str
        Why there is no verdict.
    past_gate : bool
        Whether it is slower by more than the gate, which it is subject to.
    gated : bool
        Whether the gate applies to it: CPU walls are gated only on request.
    old_uncertainty, new_uncertainty : float or None
        Half the interval of each median as a share of it, and never less than half a step of the clock; None without
        an interval.
    numbers : tuple or None
        Of another quantity than times: both numbers, each with its text.
    """

    case: str
    part: str
    name: str
    verdict: Verdict | None
    note: str = ""
    past_gate: bool = False
    gated: bool = True
    old_uncertainty: float | None = None
    new_uncertainty: float | None = None
    numbers: tuple[tuple[float, str], tuple[float, str]] | None = None

    @property
    def word(self) -> str:
        """The verdict; empty without one."""
        word = "" if self.verdict is None else self.verdict.kind.value
        return word if self.numbers is None else _OF_QUANTITIES.get(word, word)

    @property
    def values(self) -> tuple[float, float] | None:
        """Both medians in ns, or numbers; None without a verdict on times."""
        if self.numbers is not None:
            return self.numbers[0][0], self.numbers[1][0]
        return None if self.verdict is None else (self.verdict.old_ns, self.verdict.new_ns)

    def texts(self) -> tuple[str, str]:
        """Return both medians or numbers, each with its uncertainty."""
        if self.numbers is not None:
            return self.numbers[0][1], self.numbers[1][1]
        if self.verdict is None:
            return format_time(None), format_time(None)
        v = self.verdict
        old = _with_uncertainty(v.old_ns, self.old_uncertainty, v.old_count)
        return old, _with_uncertainty(v.new_ns, self.new_uncertainty, v.new_count)


def _with_uncertainty(time_ns: float, uncertainty: float | None, count: int) -> str:
    if uncertainty is None:
        return f"{format_time(time_ns)} ({count:,} sample{'s' if count != 1 else ''})"
    return f"{format_time(time_ns)} {format_uncertainty(uncertainty)}"


@dataclass(frozen=True)
class Rank:
    """One case on one adapter, ranked.

    Attributes
    ----------
    case : str
        Its name, with n.
    file : str
        ``"A"`` for the first file, ``"B"`` for the second: neither GPU is an older one.
    adapter : str
    time_ns : float
    uncertainty : float or None
        Half the interval of the median as a share of it; None without one.
    count : int
        Samples.
    rank : int
        By time, 1 is the fastest.
    speedup : float
        The time of the slowest adapter divided by this one's: 1 for the slowest.
    quantities : mapping from str to float or None
        Those of `QUANTITIES` that ranks show, by name.
    quantity_texts : tuple of str
        The same for people.
    """

    case: str
    file: str
    adapter: str
    time_ns: float
    uncertainty: float | None
    count: int
    rank: int
    speedup: float
    quantities: Mapping[str, float | None]
    quantity_texts: tuple[str, ...]

    def time(self) -> str:
        """Return the median with its uncertainty."""
        return _with_uncertainty(self.time_ns, self.uncertainty, self.count)


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    old_name, new_name : str
        The adapters.
    threshold, gate : float
    obstacles : tuple of str
        Why the files cannot be compared; then there are no rows, or none is judged.
    remedy : str
        What to do about the obstacles.
    rows : tuple of Row
    quantities : tuple of Row
        Other quantities than times that both files have.
    ranks : tuple of Rank
        With `across`.
    wrong : tuple of str
        Results that are wrong, in either file.
    broken : tuple of str
        Cases that ran in the old file and failed in the new one.
    notes : tuple of str
    same_measurement : bool
        Whether both files hold one measurement: all times of their common cases are equal.
    sides : tuple of str
        What messages call the files.
    """

    old_name: str
    new_name: str
    threshold: float
    gate: float
    obstacles: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    quantities: tuple[Row, ...] = ()
    ranks: tuple[Rank, ...] = ()
    wrong: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remedy: str = ""
    same_measurement: bool = False
    sides: tuple[str, str] = VERSIONS

    @property
    def all_rows(self) -> list[Row]:
        """The rows of times and quantities, those of a case one below the other."""
        cases = dict.fromkeys(row.case for row in self.rows)
        return [row for case in cases for row in (*self.rows, *self.quantities) if row.case == case]

    @property
    def comparable(self) -> bool:
        """Whether the files can be compared."""
        return not self.obstacles

    @property
    def regressions(self) -> tuple[Row, ...]:
        """Rows that are slower by more than the gate."""
        return tuple(row for row in self.rows if row.past_gate)

    @property
    def regressed(self) -> bool:
        """Whether a gate must stop the new version: a row past the gate, or a case that no longer runs."""
        return bool(self.regressions or self.broken)

    @property
    def undecided_share(self) -> float:
        """The share of the rows that the gate applies to that are ambiguous or not judged; 0 without any."""
        gated = [row.verdict is None or row.verdict.kind is VerdictKind.AMBIGUOUS for row in self.rows if row.gated]
        return sum(gated) / len(gated) if gated else 0.0

    def counts(self) -> dict[str, int]:
        """Return how many rows got each verdict."""
        kinds = [row.verdict.kind for row in self.rows if row.verdict is not None]
        return {kind.value: kinds.count(kind) for kind in VerdictKind}


def compare(
    old: Results,
    new: Results,
    *,
    threshold: float = 0.02,
    gate: float = 0.05,
    force: bool = False,
    across: bool = False,
    gate_walls: bool = False,
    spreads: Sequence[Spread] = (),
) -> Comparison:
    """Compare two results files of the same device, or rank two devices.

    Parameters
    ----------
    old, new : Results
        As `read_results` returns them.
    threshold : float
        Differences below this share count as same.
    gate : float
        A row that is slower by more than this share is a regression.
    force : bool
        Compare although the machines, the tools or the modes differ. A CPU and a GPU are never compared.
    across : bool
        Rank the devices by case instead of judging old against new.
    gate_walls : bool
        Whether the gate applies to CPU walls beside GPU times, too. They depend on the process and on all other work of
        the machine.
    spreads : sequence of Spread
        How much processes differ on this device, if the files do not say it.

    Returns
    -------
    Comparison
    """
    if not 0 <= gate < math.inf:
        raise ArgumentError(f"gate is {gate!r}; it is a share of at least 0: 0.05 for 5 %")
    sides = ACROSS if across else VERSIONS
    found = Comparison(
        old.device.title, new.device.title, threshold, gate, sides=sides,
        wrong=tuple(
            f"{side}: {result.name_with_n}: {result.mismatch or 'the result is wrong'}"
            for side, document in zip(sides, (old, new), strict=True)
            for result in document.results
            if result.is_wrong
        ),
    )  # fmt: skip
    if across:
        ranks = tuple(_ranks(dict(zip(sides, (old, new), strict=True))))
        if not ranks:
            obstacles = ("the files have no case in common that was measured in both",)
            found = replace(found, obstacles=obstacles, remedy=_SAME_CASES)
        return replace(found, ranks=ranks, notes=(*_software_note(old, new), *_notes_of_both(old, new, sides)))
    firm, soft = _obstacles(old, new)
    if firm:
        return replace(found, obstacles=tuple(text for text, _ in firm), remedy=firm[-1][1])
    if soft and not force:
        return replace(found, obstacles=tuple(soft), remedy=_SAME_CONDITIONS)
    forced = tuple(f"compared although they differ (--force): {text}" for text in soft)
    notes = (*forced, *_notes_of_both(old, new, sides), *_notes_of_versions(old, new))
    found = replace(found, quantities=tuple(_quantity_rows(old, new, threshold)), notes=notes)
    matched = _Matched(
        old, new, gate_walls=gate_walls, spreads=new.device.repeatability or old.device.repeatability or spreads
    )
    found = matched.judge(found)
    if found.wrong or found.broken or any(row.verdict is not None for row in found.rows):
        return found
    why = dict.fromkeys(row.note for row in found.rows)
    return replace(found, obstacles=(f"no row could be judged: {'; '.join(why)}",), remedy=_MEASURE_AGAIN)


# ---- whether the files can be compared

_SAME_CASES = "measure the same primitives, sizes, datatypes and modes"
#: Of the cases of a file, where none is common.
_MOST_NAMED = 2
_SAME_NAMES = "give the benchmarks the same names in both files (hyperfine: --command-name NAME)"
_MEASURE_AGAIN = "measure again what failed or has no times"
_SAME_CONDITIONS = "measure both under the same conditions, or rank them with --across, or compare them with --force"


def _cases(document: Results) -> str:
    """Return the first cases of a document, for a message."""
    names = list(dict.fromkeys(result.name_with_n for result in document.in_order()))
    rest = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED]) or 'none'}{rest}"


def _obstacles(old: Results, new: Results) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the obstacles to a comparison, each with its remedy, and those that `force` overrides."""
    firm: list[tuple[str, str]] = []
    soft: list[str] = []
    if old.device.is_cpu != new.device.is_cpu:
        text = f"{old.device.title} against {new.device.title}: a CPU and a GPU are never compared"
        firm.append((text, "rank them with --across"))
    if not {result.key for result in old.results} & {result.key for result in new.results}:
        by_tool = old.context.tool is not None and old.context.tool == new.context.tool
        has = "; ".join(f"{side} has {_cases(document)}" for side, document in (("OLD", old), ("NEW", new)))
        firm.append((f"the files have no case in common: {has}", _SAME_NAMES if by_tool else _SAME_CASES))
    differ = differences(old.machine, new.machine)
    soft += [f"{name}: OLD has {then}, NEW has {now}" for name, then, now in differ]
    modes = [sorted({result.mode for result in document.results}) for document in (old, new)]
    if modes[0] != modes[1]:
        soft.append(f"mode: OLD has {_words(modes[0])}, NEW has {_words(modes[1])}")
    return firm, soft


def _notes_of_both(old: Results, new: Results, sides: tuple[str, str]) -> Iterator[str]:
    """Yield notes on two files, of versions or of devices."""
    yield from _page_note(old, new, sides)
    yield from _environment_notes(old, new, sides)
    yield from _checks_notes(old, new, sides)


def _notes_of_versions(old: Results, new: Results) -> Iterator[str]:
    """Yield notes on two files of one device."""
    yield from _tool_notes(old, new)
    yield from _clock_note(old, new)
    yield from _settings_notes(old, new)
    yield from _incomplete_notes(old, new)


def _page_note(old: Results, new: Results, sides: tuple[str, str]) -> Iterator[str]:
    """Yield what can be compared, if only one file is of a page in a browser."""
    if (old.context.browser is None) != (new.context.browser is None):
        side = sides[1] if old.context.browser is None else sides[0]
        yield (
            f"{side} was measured by a page in a browser: GPU times say what the same WGSL reaches with either "
            f"compiler. They are no measure of a change of gridwise_py, because a browser keeps checks of indices and "
            f"loops in every kernel. CPU walls cannot be compared: they contain the browser's own processes"
        )


def _tool_notes(old: Results, new: Results) -> Iterator[str]:
    """Yield what nobody knows of files of other tools."""
    tools = dict.fromkeys(file.context.tool for file in (old, new) if file.context.tool is not None)
    for tool in tools:
        one = [file for file in (old, new) if file.context.tool == tool]
        if any(file.device.adapter == UNKNOWN_MACHINE for file in one):
            yield f"files of {tool} do not name the machine: whether both are of the same one, only you know"


def _software_note(old: Results, new: Results) -> tuple[str, ...]:
    on_cpu = [file.device.is_cpu for file in (old, new)]
    if not any(on_cpu):
        return ()
    who = "Both adapters are" if all(on_cpu) else "One of the adapters is"
    return (f"{who} software on the CPU: such times are the CPU's.",)


def _clock_note(old: Results, new: Results) -> Iterator[str]:
    """Yield a note if one file was measured with the GPU's clock held, and the other one without."""
    states = old.context.clock, new.context.clock
    of_page = old.context.browser or new.context.browser  # which cannot hold the clock
    if not of_page and "held" in states and states[0] != states[1]:
        held, other = ("OLD", "NEW") if states[0] == "held" else ("NEW", "OLD")
        how = "did not hold" if "not held" in states else "may not have held"
        yield (
            f"{held} held the GPU's clock, and {other} {how} it: rows of mode latency and short runs may differ by the "
            f"clock alone; measure both with one version of gridwise"
        )


def _environment_notes(old: Results, new: Results, sides: tuple[str, str]) -> Iterator[str]:
    """Yield a note if GRIDWISE_LAUNCH_BLOCKING slowed one file, and not or perhaps not the other one."""
    states = [(file.context.settings or {}).get("launch_blocking") for file in (old, new)]
    if True in states and states[0] != states[1]:
        slow, other = sides if states[0] else sides[::-1]
        how = "was measured without it" if False in states else "does not say"
        yield (
            f"{slow} was measured with GRIDWISE_LAUNCH_BLOCKING=1, and {other} {how}: all rows may differ by it (with "
            f"it, each step is submitted and waited for); measure both alike"
        )


def _level(file: Results, result: Result) -> ShaderChecks:
    """Return the run-time checks of a result; of one without them what earlier versions took."""
    settings = file.context.settings or {}
    checked = result.primitive not in REGISTRY or settings.get("shader_checks") or "dawn" in file.context.versions
    if result.shader_checks is None:
        return "all" if checked and not settings.get("dawn.disable_robustness") else "none"
    return result.shader_checks


def _checks_notes(old: Results, new: Results, sides: tuple[str, str]) -> Iterator[str]:
    """Yield a note, once, if cases have other run-time checks in one file than in the other."""
    found: dict[tuple[ShaderChecks, ShaderChecks], dict[str, None]] = {}
    levels: dict[CaseKey, ShaderChecks] = {result.key: _level(old, result) for result in old.results}
    for result in new.results:
        now = _level(new, result)
        then = levels.get(result.key, now)
        if then != now:
            found.setdefault((then, now), {})[result.name_with_n] = None
    if found:
        told = [f"{sides[0]} {then}, {sides[1]} {now}: {listed(list(cases))}" for (then, now), cases in found.items()]
        yield (
            f"not judged, because the run-time checks differ ({'; '.join(told)}; a kernel of yours in a file that does "
            f"not say has all); measure both with one shader_checks="
        )


#: Settings that change what a time is, apart from how well it is known: by name, the modes and the reason.
_SETTINGS: Mapping[str, tuple[Mode, str]] = {
    "batch_trials": (Mode.BATCH, "the trials of a pass share its overhead, some µs, so short kernels differ by that"),
    "flush_bytes": (Mode.COLD, "caches may be emptied in one and not in the other"),
}


def _settings_notes(old: Results, new: Results) -> Iterator[str]:
    """Yield a note for each setting in which the files differ, and which changes the times of their modes."""
    modes = {result.mode for result in (*old.results, *new.results)}
    for name, (mode, why) in _SETTINGS.items():
        then, now = old.protocol.get(name), new.protocol.get(name)
        if then != now and mode in modes:
            values = f"OLD has {name} = {_setting(then)}, NEW {_setting(now)}"
            yield f"{values}, so rows of mode {mode.value} may differ by it: {why}"


def _setting(value: Any) -> str:
    return "a default" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _incomplete_notes(old: Results, new: Results) -> Iterator[str]:
    """Yield a note for each file that lacks results, because its run was interrupted or is under way."""
    for side, document in (("OLD", old), ("NEW", new)):
        if not document.complete:
            of = "" if document.planned is None else f" of {document.planned:,}"
            yield (
                f"{side} is not complete: it has {len(document.results):,}{of} results of a run that was interrupted, "
                f"or is under way"
            )


def asked_of(file: Results, result: Result) -> tuple[Any, ...] | None:
    """Return what a time of a GPU depends on, but for the machine: code, trials, engine, driver; None if unknown."""
    if result.code is None or not set(Code.DIGESTS) <= result.code.keys():
        return None
    engine = [file.context.versions.get(name) for name in ("wgpu", "wgpudawn", "browser")]
    device = (file.device.adapter, file.device.backend, file.device.driver)
    protocol = [result.protocol.get(name) for name in ("restored", *_SETTINGS)]
    return (dict(result.code), result.trials, engine, device, protocol, file.context.settings, _level(file, result))


def _words(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


# ---- rows


@dataclass(frozen=True)
class _Part:
    """One series of a case."""

    part: str
    name: str

    def of(self, result: Result) -> Series | None:
        """Return it from a result."""
        series: Mapping[str, Series] = result.whole.series if self.part == "whole" else result.labelled_kernels
        return series.get(self.name)

    def series(self, rounds: Sequence[Result]) -> list[Series]:
        """Return the series of each round that has it."""
        return [series for result in rounds if (series := self.of(result)) is not None]

    @property
    def is_wall(self) -> bool:
        """Whether it is of the CPU's clock."""
        return self.part == "whole" and self.name == "cpu_wall"

    def blocks(self, rounds: Sequence[Result]) -> tuple[list[list[float]], list[int]]:
        """Return the times of each round that has any, and the process of each."""
        found = [
            (samples, result.process)
            for result in rounds
            if (series := self.of(result)) is not None and (samples := series.positive_ns)
        ]
        return [samples for samples, _ in found], [process for _, process in found]

    def uncertainty(self, rounds: Sequence[Result], step_ns: float) -> float | None:
        """Return the uncertainty of the median of all rounds, as the table of a run does."""
        series = self.series(rounds)
        if not series:
            return None
        processes = [result.process for result in rounds if self.of(result) is not None]
        summary = (series[0] if len(series) == 1 else pooled_series(series, processes)).summary
        return None if summary is None else summary.uncertainty(step_ns)


class _Matched:
    """The cases that two files have in common, as pairs of times to judge.

    Parameters
    ----------
    old, new : Results
    gate_walls : bool
        Whether the gate applies to CPU walls.
    spreads : sequence of Spread
    """

    def __init__(self, old: Results, new: Results, *, gate_walls: bool, spreads: Sequence[Spread]):
        self._files, self._spreads = (old, new), spreads
        # A visit to a page is one process, in another browser or on another day, and so is a file of another tool.
        self._of_page = any(file.context.browser is not None or file.context.tool is not None for file in self._files)
        # Other tools have no other times, and wall times of theirs are what their users gate by.
        self._of_tools = all(file.context.tool is not None for file in self._files)
        self._gate_walls = gate_walls or self._of_tools
        self._notes: list[str] = []
        self._broken: list[str] = []
        self._rows: list[tuple[Row, Pair | None]] = []
        self._by_time: list[str] = []
        # In the order that was asked for; an incomplete file has the order of measurement.
        before, after = by_case(old.in_order()), by_case(new.in_order())
        for side, mine, other in (("OLD", before, after), ("NEW", after, before)):
            if mine.keys() - other.keys():
                names = ", ".join(mine[key][0].name_with_n for key in mine if key not in other)
                self._notes.append(f"only in {side}: {names}")
        for key in before:
            if key in after:
                self._add(before[key], after[key])
        if self._by_time and not self._of_page:
            self._notes.append(
                f"judged by time alone, as a side does not tell all that it asked of the GPU (an older file, a "
                f"function, or inputs that are large): {listed(self._by_time)}"
            )

    def judge(self, found: Comparison) -> Comparison:
        """Return a comparison with the rows, judged."""
        pairs = [pair for _, pair in self._rows if pair is not None]
        old, new = self._files
        same = bool(pairs) and old.context.time == new.context.time and all(pair.old == pair.new for pair in pairs)
        alike = [replace(one, same_measurement=same) for one in pairs]
        verdicts = iter(judge_all(alike, threshold=found.threshold))
        rows: list[Row] = []
        for row, pair in self._rows:
            verdict = None if pair is None else next(verdicts)
            slower = verdict is not None and verdict.kind is VerdictKind.SLOWER and verdict.ratio > 1 + found.gate
            note = "" if verdict else row.note
            rows.append(replace(row, verdict=verdict, note=note, past_gate=slower and row.gated))
        of_code = {row.case: None for row in rows if row.verdict and row.verdict.kind is VerdictKind.SAME_CODE}
        if of_code:
            self._notes.append(SAME_CODE.format(listed([*of_code])))
        findings = [
            f"{row.case}, {row.name}: {row.verdict.finding}" for row in rows if row.verdict and row.verdict.finding
        ]
        return replace(
            found, rows=tuple(rows), broken=tuple(self._broken), notes=(*found.notes, *self._notes, *findings),
            same_measurement=same,
        )  # fmt: skip

    def _add(self, old_visits: Sequence[Result], new_visits: Sequence[Result]) -> None:
        """Add the rows of a case."""
        case = old_visits[0].name_with_n
        failed = next((result for result in new_visits if result.error), None)
        if failed is not None and not any(result.error for result in old_visits):
            self._broken.append(f"{case}: {failed.error}")
            return
        old, new = (
            [result for result in visits if not result.error and result.correct] for visits in (old_visits, new_visits)
        )
        if why := _why_unjudged(old_visits, new_visits, old, new):
            has_gpu_times = any("gpu_span" in one.whole.series for file in self._files for one in file.results)
            name = "gpu_span" if has_gpu_times or not self._of_tools else "cpu_wall"
            self._rows.append((Row(case, "whole", name, None, why), None))
            return
        alike = _level(self._files[0], old[0]) == _level(self._files[1], new[0])
        asked = [asked_of(file, one) for file, side in zip(self._files, (old, new), strict=True) for one in side]
        same_code = None not in asked and all(one == asked[0] for one in asked)
        self._by_time += [case] * (None in asked)
        note = "no valid samples on a side; measure it again" if alike else "the run-time checks differ"
        parts = _parts(old, new, case, self._notes)
        for part in parts:
            steps_ns = [
                0.0 if part.name == "cpu_wall" else file.tick_step_ns(side[0])
                for file, side in zip(self._files, (old, new), strict=True)
            ]
            row = Row(
                case, part.part, part.name, None, note, gated=self._gate_walls or not part.is_wall or part is parts[0],
                old_uncertainty=part.uncertainty(old, steps_ns[0]), new_uncertainty=part.uncertainty(new, steps_ns[1]),
            )  # fmt: skip
            pair = self._pair(part, old, new, max(steps_ns)) if alike else None
            # The wait of the caller is the host's, whose code may differ.
            if pair is not None and same_code and not part.is_wall:
                pair = replace(pair, same_code=True)
            self._rows.append((row, pair))

    def _pair(self, part: _Part, old: list[Result], new: list[Result], step_ns: float) -> Pair | None:
        """Return the times of a row; None if a side has none."""
        (old_blocks, old_processes), (new_blocks, new_processes) = part.blocks(old), part.blocks(new)
        if not old_blocks or not new_blocks:
            return None
        mode = new[0].mode
        return Pair(
            old_blocks, new_blocks, step_ns, _clock_ratio(old, new),
            clock_moved=_clock_moved(old) or _clock_moved(new),
            on_cpu=self._files[1].device.is_cpu, old_processes=old_processes, new_processes=new_processes,
            varies_by_process=part.is_wall or mode is Mode.LATENCY or self._of_page,
            loaded=any(result.is_loaded for result in (*old, *new)),
            repeatability=_repeatability(self._spreads, mode, part, [*old_blocks, *new_blocks]),
        )  # fmt: skip


def _why_unjudged(
    old_visits: Sequence[Result], new_visits: Sequence[Result], old: Sequence[Result], new: Sequence[Result]
) -> str:
    """Return why two sides of a case cannot be judged, given all visits and those that are right; empty if they can."""
    if POSITION in old_visits[0].case:
        return "a file has several benchmarks of this name, and their order may differ: give each its own name"
    errors = [next((one.error for one in visits if one.error), "") for visits in (old_visits, new_visits)]
    failed = [f"{side}: {error}" for side, error in zip(VERSIONS, errors, strict=True) if error]
    return "" if old and new else f"a side failed or is wrong{': ' * bool(failed)}{'; '.join(failed)}"


def _quantity_rows(old: Results, new: Results, threshold: float) -> Iterator[Row]:
    """Yield a row for each quantity that is judged and that a case has in both files."""
    sides = [by_case([one for one in file.in_order() if not one.error and one.correct]) for file in (old, new)]
    pools = [{result.key: result for result in pooled(file).results} for file in (old, new)]
    for key in sides[0]:
        for one in QUANTITIES if key in sides[1] else ():
            values = [one.value(pool[key], {}) for pool in pools] if one.judge is not None else []
            found = None if one.judge is None else one.judge(sides[0][key], sides[1][key], threshold)
            if found is None or None in values:
                continue
            before, after = (
                (value or 0.0, one.shown_text(pool[key], value)) for pool, value in zip(pools, values, strict=True)
            )
            verdict, note = (None, found) if isinstance(found, str) else (found, "")
            case = pools[0][key].name_with_n
            yield Row(case, "quantity", one.heading, verdict, note, gated=False, numbers=(before, after))


def _parts(old: list[Result], new: list[Result], case: str, notes: list[str]) -> list[_Part]:
    """Return the series that both sides have: of the whole, and of each kernel unless a single one is the whole."""
    # In mode latency, the caller's wait counts.
    names = ["gpu_span", "cpu_wall"] if new[0].mode is Mode.LATENCY else ["gpu_span"]
    if not any(result.positive_ns("gpu_span") for result in [*old, *new]):
        names = ["cpu_wall"]  # no timestamps
    parts = [_Part("whole", name) for name in names]
    sides = [list(dict.fromkeys(label for result in side for label in result.labelled_kernels)) for side in (old, new)]
    if sides[0] == sides[1] and len(sides[0]) == 1 and all(map(_is_one_kernel, [*old, *new])):
        return parts
    for label in sides[0] + [label for label in sides[1] if label not in sides[0]]:
        if label in sides[0] and label in sides[1]:
            parts.append(_Part("kernel", label))
        else:
            notes.append(f"{case}: kernel {label} only in {'OLD' if label in sides[0] else 'NEW'}; the whole is judged")
    return parts


def _is_one_kernel(result: Result) -> bool:
    """Whether a result has one kernel with the times of the whole, which would repeat the row."""
    return result.kernels[0].positive_ns == result.positive_ns("gpu_span")


def _repeatability(
    spreads: Sequence[Spread], mode: Mode, part: _Part, blocks: Sequence[Sequence[float]]
) -> Repeatability | None:
    times_ns = [float(np.median(block)) for block in blocks]
    if not times_ns:
        return None
    return spread_for(spreads, mode.value, "cpu_wall" if part.is_wall else "gpu_span", min(times_ns))


def _clock_moved(visits: Sequence[Result]) -> bool:
    """Whether the clock moved in most visits of several processes, or in any of one process.

    The level of a process whose clock moved differs from the others, which widens the interval.
    """
    moved = sum(result.clock_moved for result in visits)
    return 2 * moved > len(visits) if len({result.process for result in visits}) > 2 else moved > 0


def _clock_ratio(old: list[Result], new: list[Result]) -> float:
    """Return the ratio of the canary kernel's times, 1 if it is within their noise."""
    sides = [[time for result in side for time in result.settled_canary_ns] for side in (old, new)]
    return math.exp(clock_log_ratio(*sides))


# ---- across devices


def _ranks(files: Mapping[str, Results]) -> list[Rank]:
    """Rank the files by case."""
    files = {file: pooled(document) for file, document in files.items()}
    by_file = {file: _timed(document) for file, document in files.items()}
    shares = {file: copy_shares(document) for file, document in files.items()}
    ranks: list[Rank] = []
    for key in next(iter(by_file.values())):
        if not all(key in results for results in by_file.values()):
            continue
        times = sorted((results[key].time_ns or math.inf, file) for file, results in by_file.items())
        for rank, (time_ns, file) in enumerate(times, start=1):
            result = by_file[file][key]
            values = {one.name: one.value(result, shares[file]) for one in RANKED}
            ranks.append(
                Rank(
                    case=result.name_with_n,
                    file=file,
                    adapter=files[file].device.title,
                    time_ns=time_ns,
                    uncertainty=_time_uncertainty(files[file], result),
                    count=0 if result.timed is None else result.timed.count,
                    rank=rank,
                    speedup=times[-1][0] / time_ns,
                    quantities=values,
                    quantity_texts=tuple(one.shown_text(result, values[one.name]) for one in RANKED),
                )
            )
    return ranks


def _time_uncertainty(document: Results, result: Result) -> float | None:
    if result.timed is None:
        return None
    return result.timed.uncertainty(document.tick_step_ns(result) if result.is_timed_by_gpu else 0.0)


def _timed(document: Results) -> dict[CaseKey, Result]:
    """Return the cases of a pooled document that are right and have a time."""
    return {result.key: result for result in document.in_order() if result.correct and result.time_ns}
