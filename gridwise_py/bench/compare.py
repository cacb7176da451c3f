"""Compares two results files: joined by case, judged row by row, and gated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from . import documents as doc
from .canary import clock_log_ratio
from .statistics import significant
from .verdict import Pair, Verdict, VerdictKind, judge_all

__all__ = ["Comparison", "Rank", "Row", "compare"]


@dataclass(frozen=True)
class Row:
    """One time of one case in both files.

    Attributes
    ----------
    case : str
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
    tick_step_ns : float
    """

    case: str
    part: str
    name: str
    verdict: Verdict | None
    note: str = ""
    past_gate: bool = False
    tick_step_ns: float = 0.0

    def times(self) -> tuple[str, str]:
        """Return both medians, with the digits that mean something."""
        if self.verdict is None:
            return "–", "–"
        # Half the interval of the ratio, shared by two medians.
        share = (self.verdict.high - self.verdict.low) / 2 / math.sqrt(2)
        values = (self.verdict.old_ns, self.verdict.new_ns)
        old, new = (significant(v, tick_step_ns=max(self.tick_step_ns, min(share, 0.5) * v)) for v in values)
        return old, new


@dataclass(frozen=True)
class Rank:
    """One case on one adapter, among others.

    Attributes
    ----------
    case, adapter : str
    time_ns : float
    rank : int
        By time, 1 is the fastest.
    gbytes_per_s : float or None
    copy_share : float or None
        Of the speed of the copy kernel on the same adapter, at the same size and mode, in the same file.
    gbytes_per_j : float or None
        GB/s by the watts that an observer saw.
    """

    case: str
    adapter: str
    time_ns: float
    rank: int
    gbytes_per_s: float | None
    copy_share: float | None
    gbytes_per_j: float | None


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
    rows : tuple of Row
    ranks : tuple of Rank
        With `across`.
    wrong : tuple of str
        Results that are wrong, in either file.
    broken : tuple of str
        Cases that ran in the old file and failed in the new one.
    notes : tuple of str
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
        f"{side}: {doc.case_name(doc.case_key(entry))}: {entry.get('mismatch') or 'the result is wrong'}"
        for side, document in (("OLD", old), ("NEW", new))
        for entry in document["results"]
        if doc.is_wrong(entry)
    )
    if across:
        notes = ("One of the adapters is software on the CPU: its times are the CPU's.",)
        cpu = doc.is_cpu(old) or doc.is_cpu(new)
        ranks = tuple(_ranks([old, new]))
        obstacles = () if ranks else ("the files have no case in common that was measured in both",)
        return Comparison(*names, threshold, gate, obstacles, (), ranks, wrong, (), notes if cpu else ())
    firm, soft = _obstacles(old, new)
    if firm or (soft and not force):
        return Comparison(*names, threshold, gate, (*firm, *soft), wrong=wrong)
    rows, broken, notes = _rows(old, new, threshold, gate)
    forced = tuple(f"compared all the same, by force: {text}" for text in soft)
    older = tuple(_older("OLD", old) + _older("NEW", new))
    return Comparison(*names, threshold, gate, (), rows, (), wrong, broken, (*forced, *older, *notes))


# ---- whether the files can be compared


def _obstacles(old: doc.Document, new: doc.Document) -> tuple[list[str], list[str]]:
    """Return what forbids comparing, and what does unless it is forced."""
    firm, soft = [], []
    if doc.is_cpu(old) != doc.is_cpu(new):
        firm.append(
            f"{doc.device_name(old)} against {doc.device_name(new)}: a CPU and a GPU are not compared, not even by "
            f"force; rank them with --across"
        )
    remedy = "measure both on the same, or use --force, or rank them with --across"
    for name in doc.COMPARABLE:
        values = doc.device_value(old, name), doc.device_value(new, name)
        if values[0] != values[1]:
            soft.append(f"{name}: OLD has {values[0]}, NEW has {values[1]}; {remedy}")
    modes = [sorted({doc.mode(entry) for entry in document["results"]}) for document in (old, new)]
    if modes[0] != modes[1]:
        soft.append(f"mode: OLD has {_words(modes[0])}, NEW has {_words(modes[1])}; measure in the same modes")
    if not _entries(old).keys() & _entries(new).keys():
        firm.append("the files have no case in common; measure the same primitives, sizes, datatypes and modes")
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
    """Return the results by case. Several of a case are rounds of it."""
    found: dict[doc.Key, list[doc.Entry]] = {}
    for entry in document["results"]:
        found.setdefault(doc.case_key(entry), []).append(entry)
    return found


# ---- rows


def _rows(
    old: doc.Document, new: doc.Document, threshold: float, gate: float
) -> tuple[tuple[Row, ...], tuple[str, ...], tuple[str, ...]]:
    before, after = _entries(old), _entries(new)
    rows: list[Row] = []
    pairs: list[Pair | None] = []
    broken, notes = [], []
    for key in [*before, *(key for key in after if key not in before)]:
        case = doc.case_name(key)
        if key not in before or key not in after:
            notes.append(f"{case}: only in {'OLD' if key in before else 'NEW'}")
            continue
        failed = [[e for e in entries[key] if doc.error(e)] for entries in (before, after)]
        if failed[1] and not failed[0]:
            broken.append(f"{case}: {doc.error(failed[1][0])}")
        rounds = [[e for e in entries[key] if not doc.error(e) and e["correct"]] for entries in (before, after)]
        if not all(rounds):
            notes.append(f"{case}: not judged, for a side failed or is wrong")
            continue
        for part, name, samples in _parts(*rounds, case, notes):
            step = max(doc.tick_step_ns(old, rounds[0][0]), doc.tick_step_ns(new, rounds[1][0]))
            step = 0.0 if name == "cpu_wall" else step
            blocks = [[s for s in map(samples, side) if s] for side in rounds]
            row = Row(case, part, name, None, tick_step_ns=step)
            pair = None
            if all(blocks):
                moved = any(map(doc.clock_moved, [*rounds[0], *rounds[1]]))
                pair = Pair(*blocks, step, _clock_ratio(*rounds), moved)
            rows.append(row)
            pairs.append(pair)
    verdicts = iter(judge_all([pair for pair in pairs if pair is not None], threshold=threshold))
    done = []
    for row, pair in zip(rows, pairs, strict=True):
        verdict = None if pair is None else next(verdicts)
        past = verdict is not None and verdict.kind is VerdictKind.SLOWER and verdict.ratio > 1 + gate
        note = "" if verdict else "no valid samples on a side; measure it again"
        done.append(Row(row.case, row.part, row.name, verdict, note, past, row.tick_step_ns))
    return tuple(done), tuple(broken), tuple(notes)


def _parts(
    old: list[doc.Entry], new: list[doc.Entry], case: str, notes: list[str]
) -> list[tuple[str, str, Callable[[doc.Entry], list[float]]]]:
    """Return part, name, and how to get its samples of an entry."""

    def whole(name: str) -> Callable[[doc.Entry], list[float]]:
        return lambda entry: doc.whole_samples_ns(entry, name)

    def kernel(label: str) -> Callable[[doc.Entry], list[float]]:
        return lambda entry: doc.kernel_samples_ns(entry, labels(entry).index(label)) if label in labels(entry) else []

    labels = doc.kernel_labels
    names = doc.whole_names(new[0])
    if not any(doc.whole_samples_ns(entry, "gpu_span") for entry in [*old, *new]):
        names = ["cpu_wall"]  # no timestamps
    parts = [("whole", name, whole(name)) for name in names]
    sides = [list(dict.fromkeys(label for entry in side for label in labels(entry))) for side in (old, new)]
    for label in sides[0] + [label for label in sides[1] if label not in sides[0]]:
        if label in sides[0] and label in sides[1]:
            parts.append(("kernel", label, kernel(label)))
        else:
            notes.append(f"{case}: kernel {label} only in {'OLD' if label in sides[0] else 'NEW'}; the whole is judged")
    return parts


def _clock_ratio(old: list[doc.Entry], new: list[doc.Entry]) -> float:
    """Return by how much the canary kernel's times differ beyond their own noise."""
    sides = [[time for entry in side for time in doc.canary_ns(entry)] for side in (old, new)]
    return math.exp(clock_log_ratio(*sides))


# ---- across devices


def _ranks(files: Sequence[doc.Document]) -> list[Rank]:
    """Rank the files by case; a case of several rounds counts with its fastest."""
    by_file = [_measured(document) for document in files]
    ranks = []
    for key in by_file[0]:
        if not all(key in entries for entries in by_file):
            continue
        found = sorted(
            ((entries[key], i) for i, entries in enumerate(by_file)), key=lambda pair: doc.time_ns(pair[0]) or math.inf
        )
        for rank, (entry, i) in enumerate(found, start=1):
            rate, power = doc.gbytes_per_s(entry), doc.power_w(entry)
            copies = [e for k, e in by_file[i].items() if (k[0], k[1], k[2]) == ("copy", key[1], key[2])]
            copy = max((doc.gbytes_per_s(e) or 0.0 for e in copies), default=0.0)
            ranks.append(
                Rank(
                    doc.case_name(key),
                    doc.device_name(files[i]),
                    float(doc.time_ns(entry) or math.nan),
                    rank,
                    rate,
                    rate / copy if rate and copy else None,
                    rate / power if rate and power else None,
                )
            )
    return ranks


def _measured(document: doc.Document) -> dict[doc.Key, doc.Entry]:
    best: dict[doc.Key, doc.Entry] = {}
    for key, entries in _entries(document).items():
        timed = [(time, i) for i, e in enumerate(entries) if e["correct"] and (time := doc.time_ns(e))]
        if timed:
            best[key] = entries[min(timed)[1]]
    return best
