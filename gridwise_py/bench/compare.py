"""Compares two results files: joined by case, judged row by row, and gated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..display.quantities import format_time, format_uncertainty
from ..errors import ArgumentError
from . import documents as doc
from .canary import clock_log_ratio
from .names import entry_name
from .rounds import pooled_series
from .verdict import Pair, Verdict, VerdictKind, judge_all

__all__ = ["Comparison", "Rank", "Row", "compare"]


@dataclass(frozen=True)
class Row:
    """One time of one case in both files.

    Attributes
    ----------
    case : str
        Its name, with n.
    part : str
        ``"whole"`` or ``"kernel"``.
    name : str
        ``"gpu_span"``, ``"cpu_wall"``, or the kernel's label.
    verdict : Verdict or None
        None where a side has no samples.
    note : str
        Why there is no verdict.
    past_gate : bool
        Whether it is slower by more than the gate.
    old_uncertainty, new_uncertainty : float or None
        Half the interval of each median as a share of it, and never less than half a step of the clock.
    """

    case: str
    part: str
    name: str
    verdict: Verdict | None
    note: str = ""
    past_gate: bool = False
    old_uncertainty: float | None = None
    new_uncertainty: float | None = None

    def times(self) -> tuple[str, str]:
        """Return both medians, each with its uncertainty."""
        if self.verdict is None:
            return format_time(None), format_time(None)
        old = _with_uncertainty(self.verdict.old_ns, self.old_uncertainty)
        return old, _with_uncertainty(self.verdict.new_ns, self.new_uncertainty)


def _with_uncertainty(time_ns: float, uncertainty: float | None) -> str:
    return f"{format_time(time_ns)} {format_uncertainty(uncertainty)}".rstrip()


@dataclass(frozen=True)
class Rank:
    """One case on one adapter, among others.

    Attributes
    ----------
    case : str
        Its name, with n.
    file : str
        ``"OLD"`` or ``"NEW"``.
    adapter : str
    time_ns : float
    uncertainty : float or None
        Half the interval of the median as a share of it.
    rank : int
        By time, 1 is the fastest.
    speedup : float
        The time of the slowest adapter by this one's: 1 for the slowest.
    gbytes_per_s : float or None
    copy_share : float or None
        Of the speed of the copy kernel on the same adapter, at the same size and mode, in the same file.
    gbytes_per_j : float or None
        GB/s by the watts that an observer saw.
    """

    case: str
    file: str
    adapter: str
    time_ns: float
    uncertainty: float | None
    rank: int
    speedup: float
    gbytes_per_s: float | None
    copy_share: float | None
    gbytes_per_j: float | None

    def time(self) -> str:
        """Return the median with its uncertainty."""
        return _with_uncertainty(self.time_ns, self.uncertainty)


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    old_name, new_name : str
        The adapters.
    threshold, gate : float
    obstacles : tuple of str
        Why the files cannot be compared; then there are no rows.
    remedy : str
        What to do about the obstacles.
    rows : tuple of Row
    ranks : tuple of Rank
        With `across`.
    wrong : tuple of str
        Results that are wrong, in either file.
    broken : tuple of str
        Cases that ran in the old file and failed in the new one.
    notes : tuple of str
    same_measurement : bool
        Whether both files hold one measurement: all times of their common cases are equal.
    """

    old_name: str
    new_name: str
    threshold: float
    gate: float
    obstacles: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    ranks: tuple[Rank, ...] = ()
    wrong: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remedy: str = ""
    same_measurement: bool = False

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

    def counts(self) -> dict[str, int]:
        """Return how many rows got each verdict."""
        kinds = [row.verdict.kind for row in self.rows if row.verdict is not None]
        return {kind.value: kinds.count(kind) for kind in VerdictKind}


def compare(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    threshold: float = 0.02,
    gate: float = 0.05,
    force: bool = False,
    across: bool = False,
) -> Comparison:
    """Compare two results files of the same device, or rank two devices.

    Parameters
    ----------
    old, new : mapping
        Documents, as `read_results` returns them.
    threshold : float
        Differences below this share are «the same».
    gate : float
        A row that is slower by more than this share is a regression.
    force : bool
        Compare although adapter, driver, backend or modes differ. A CPU and a GPU are not compared even so.
    across : bool
        Rank the devices by case instead of judging old against new.

    Returns
    -------
    Comparison
    """
    if not 0 <= gate < math.inf:
        raise ArgumentError(f"gate is {gate!r}; it is a share of at least 0: 0.05 for 5 %")
    names = doc.device_name(old), doc.device_name(new)
    wrong = tuple(
        f"{side}: {_case_name(entry)}: {entry.get('mismatch') or 'the result is wrong'}"
        for side, document in (("OLD", old), ("NEW", new))
        for entry in document["results"]
        if doc.is_wrong(entry)
    )
    if across:
        notes = ("One of the adapters is software on the CPU: its times are the CPU's.",)
        cpu = doc.is_cpu(old) or doc.is_cpu(new)
        ranks = tuple(_ranks({"OLD": old, "NEW": new}))
        obstacles = () if ranks else ("the files have no case in common that was measured in both",)
        remedy = "" if ranks else _SAME_CASES
        return Comparison(
            *names, threshold, gate, obstacles, ranks=ranks, wrong=wrong, notes=notes if cpu else (), remedy=remedy
        )
    firm, soft = _obstacles(old, new)
    if firm:
        return Comparison(*names, threshold, gate, tuple(text for text, _ in firm), wrong=wrong, remedy=firm[-1][1])
    if soft and not force:
        return Comparison(*names, threshold, gate, tuple(soft), wrong=wrong, remedy=_SAME_CONDITIONS)
    rows, broken, notes, same = _rows(old, new, threshold, gate)
    older = (*_older("OLD", old), *_older("NEW", new))
    forced = tuple(f"compared although they differ (--force): {text}" for text in soft)
    return Comparison(
        *names,
        threshold,
        gate,
        rows=rows,
        wrong=wrong,
        broken=broken,
        notes=(*forced, *older, *notes),
        same_measurement=same,
    )


# ---- whether the files can be compared

_SAME_CASES = "measure the same primitives, sizes, datatypes and modes"
_SAME_CONDITIONS = "measure both under the same conditions, or rank them with --across, or compare them with --force"


def _obstacles(old: doc.Document, new: doc.Document) -> tuple[list[tuple[str, str]], list[str]]:
    """Return what forbids comparing, each with its remedy, and what does unless it is forced."""
    firm, soft = [], []
    if doc.is_cpu(old) != doc.is_cpu(new):
        text = f"{doc.device_name(old)} against {doc.device_name(new)}: a CPU and a GPU are never compared"
        firm.append((text, "rank them with --across"))
    if not _entries(old).keys() & _entries(new).keys():
        firm.append(("the files have no case in common", _SAME_CASES))
    for name in doc.COMPARABLE:
        values = doc.device_value(old, name), doc.device_value(new, name)
        if values[0] != values[1]:
            soft.append(f"{name}: OLD has {values[0]}, NEW has {values[1]}")
    modes = [sorted({doc.mode(entry) for entry in document["results"]}) for document in (old, new)]
    if modes[0] != modes[1]:
        soft.append(f"mode: OLD has {_words(modes[0])}, NEW has {_words(modes[1])}")
    return firm, soft


def _older(side: str, document: doc.Document) -> list[str]:
    """Return what the version of a file does not know, and what its verdicts therefore lack."""
    version = doc.schema_version(document)
    if version == document["schema_version"]:
        return []
    return [f"{side} is a file of version {version}, without a canary: whether the clock was the same is not known"]


def _words(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _entries(document: doc.Document) -> dict[doc.Key, list[doc.Entry]]:
    """Return the results by case, in the order asked for: in a file that is not complete they are in that of measuring.

    Several results of a case are rounds of it.
    """
    found: dict[doc.Key, list[doc.Entry]] = {}
    for entry in sorted(document["results"], key=lambda entry: (entry["position"], entry.get("round", 0))):
        found.setdefault(doc.case_key(entry), []).append(entry)
    return found


def _case_name(entry: doc.Entry) -> str:
    return entry_name(entry, with_n=True)


# ---- rows


@dataclass(frozen=True)
class _Part:
    """One series of a case: how to get it from an entry."""

    part: str
    name: str
    series: Callable[[doc.Entry], Mapping[str, Any] | None]

    def blocks(self, rounds: Sequence[doc.Entry]) -> list[list[float]]:
        """Return the times of each round that has any."""
        found = [doc.positive_samples_ns(series) for entry in rounds if (series := self.series(entry)) is not None]
        return [samples for samples in found if samples]

    def uncertainty(self, rounds: Sequence[doc.Entry], step_ns: float) -> float | None:
        """Return the uncertainty of the median of all rounds, as the table of a run does."""
        found = [series for entry in rounds if (series := self.series(entry)) is not None]
        summary = (found[0] if len(found) == 1 else pooled_series(found))["summary"]
        if summary is None:
            return None
        return doc.uncertainty(summary, step_ns)


def _rows(
    old: doc.Document, new: doc.Document, threshold: float, gate: float
) -> tuple[tuple[Row, ...], tuple[str, ...], tuple[str, ...], bool]:
    before, after = _entries(old), _entries(new)
    notes = [
        f"only in {side}: {', '.join(_case_name(mine[key][0]) for key in mine if key not in other)}"
        for side, mine, other in (("OLD", before, after), ("NEW", after, before))
        if mine.keys() - other.keys()
    ]
    rows: list[Row] = []
    pairs: list[Pair | None] = []
    broken = []
    for key in before:
        if key not in after:
            continue
        case = _case_name(before[key][0])
        failed = [[e for e in entries[key] if doc.error(e)] for entries in (before, after)]
        if failed[1] and not failed[0]:
            broken.append(f"{case}: {doc.error(failed[1][0])}")
        rounds = [[e for e in entries[key] if not doc.error(e) and e["correct"]] for entries in (before, after)]
        if not all(rounds):
            notes.append(f"{case}: not judged, for a side failed or is wrong")
            continue
        moved = any(map(doc.clock_moved, [*rounds[0], *rounds[1]]))
        clock_ratio = _clock_ratio(*rounds)
        for part in _parts(*rounds, case, notes):
            steps = [
                0.0 if part.name == "cpu_wall" else doc.tick_step_ns(d, e[0])
                for d, e in zip((old, new), rounds, strict=True)
            ]
            blocks = [part.blocks(side) for side in rounds]
            unsure = [part.uncertainty(side, step) for side, step in zip(rounds, steps, strict=True)]
            rows.append(Row(case, part.part, part.name, None, "", False, *unsure))
            pair = Pair(*blocks, max(steps), clock_ratio, moved, doc.is_cpu(new)) if all(blocks) else None
            pairs.append(pair)
    judged = [pair for pair in pairs if pair is not None]
    same = bool(judged) and all(pair.old == pair.new for pair in judged)
    verdicts = iter(judge_all([replace(pair, same_measurement=same) for pair in judged], threshold=threshold))
    done = []
    for row, pair in zip(rows, pairs, strict=True):
        verdict = None if pair is None else next(verdicts)
        past = verdict is not None and verdict.kind is VerdictKind.SLOWER and verdict.ratio > 1 + gate
        note = "" if verdict else "no valid samples on a side; measure it again"
        done.append(replace(row, verdict=verdict, note=note, past_gate=past))
    return tuple(done), tuple(broken), tuple(notes), same


def _parts(old: list[doc.Entry], new: list[doc.Entry], case: str, notes: list[str]) -> list[_Part]:
    """Return the series that both sides have: of the whole, and of each kernel unless a single one is the whole."""

    def whole(name: str) -> Callable[[doc.Entry], Mapping[str, Any] | None]:
        return lambda entry: entry["whole"]["series"].get(name)

    def kernel(label: str) -> Callable[[doc.Entry], Mapping[str, Any] | None]:
        return lambda entry: entry["kernels"][labels(entry).index(label)] if label in labels(entry) else None

    labels = doc.kernel_labels
    names = doc.whole_names(new[0])
    if not any(doc.whole_samples_ns(entry, "gpu_span") for entry in [*old, *new]):
        names = ["cpu_wall"]  # no timestamps
    parts = [_Part("whole", name, whole(name)) for name in names]
    sides = [list(dict.fromkeys(label for entry in side for label in labels(entry))) for side in (old, new)]
    if sides[0] == sides[1] and len(sides[0]) == 1 and all(map(_is_one_kernel, [*old, *new])):
        return parts
    for label in sides[0] + [label for label in sides[1] if label not in sides[0]]:
        if label in sides[0] and label in sides[1]:
            parts.append(_Part("kernel", label, kernel(label)))
        else:
            notes.append(f"{case}: kernel {label} only in {'OLD' if label in sides[0] else 'NEW'}; the whole is judged")
    return parts


def _is_one_kernel(entry: doc.Entry) -> bool:
    """Whether the times of an entry's kernel are those of the whole, so that they would be told twice."""
    return doc.kernel_samples_ns(entry, 0) == doc.whole_samples_ns(entry, "gpu_span")


def _clock_ratio(old: list[doc.Entry], new: list[doc.Entry]) -> float:
    """Return by how much the canary kernel's times differ beyond their own noise."""
    sides = [[time for entry in side for time in doc.canary_ns(entry)] for side in (old, new)]
    return math.exp(clock_log_ratio(*sides))


# ---- across devices


def _ranks(files: Mapping[str, doc.Document]) -> list[Rank]:
    """Rank the files by case; a case of several rounds counts with its fastest."""
    by_file = {file: _measured(document) for file, document in files.items()}
    ranks = []
    for key in next(iter(by_file.values())):
        if not all(key in entries for entries in by_file.values()):
            continue
        found = sorted((float(doc.time_ns(entries[key]) or math.inf), file) for file, entries in by_file.items())
        for rank, (time_ns, file) in enumerate(found, start=1):
            entry = by_file[file][key]
            rate, power = doc.gbytes_per_s(entry), doc.power_w(entry)
            copies = [e for k, e in by_file[file].items() if (k[0], k[1], k[2]) == ("copy", key[1], key[2])]
            copy = max((doc.gbytes_per_s(e) or 0.0 for e in copies), default=0.0)
            ranks.append(
                Rank(
                    case=_case_name(entry),
                    file=file,
                    adapter=doc.device_name(files[file]),
                    time_ns=time_ns,
                    uncertainty=_time_uncertainty(files[file], entry),
                    rank=rank,
                    speedup=found[-1][0] / time_ns,
                    gbytes_per_s=rate,
                    copy_share=rate / copy if rate and copy else None,
                    gbytes_per_j=rate / power if rate and power else None,
                )
            )
    return ranks


def _time_uncertainty(document: doc.Document, entry: doc.Entry) -> float | None:
    summary = doc.timed_summary(entry)
    if summary is None:
        return None
    on_gpu = doc.whole_summary(entry, "gpu_span") is not None
    step_ns = doc.tick_step_ns(document, entry) if on_gpu else 0.0
    return doc.uncertainty(summary, step_ns)


def _measured(document: doc.Document) -> dict[doc.Key, doc.Entry]:
    best: dict[doc.Key, doc.Entry] = {}
    for key, entries in _entries(document).items():
        timed = [(time, i) for i, e in enumerate(entries) if e["correct"] and (time := doc.time_ns(e))]
        if timed:
            best[key] = entries[min(timed)[1]]
    return best
