"""A fleet document, written by `gridwise fleet` and read by `gridwise report`. docs/howto/fleet.md describes it.

The names of the fields are the keys of the file, and their types say what a file may have. What is not known is None. A
document has of each device the medians of its cases and no more, so fleets are put together and judged again without
the devices' own results files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal

from ..bench.cases.mode import Mode
from ..bench.results.model import Sha256
from ..bench.stats.series import Count
from ..storage.files import write_whole
from ..storage.json_files import json_text
from ..storage.records import Record, left_out
from ..storage.schemas import Limits

SCHEMA: Final = "gridwise.fleet"
SCHEMA_VERSION: Final = 1

_Text40 = Annotated[str, Limits(most=40)]
_Text300 = Annotated[str, Limits(most=300)]
_Text500 = Annotated[str, Limits(most=500)]
_ShortSha256 = Annotated[str, Limits(pattern="^[0-9a-f]{16}$")]
_Least0 = Annotated[float, Limits(at_least=0)]
#: A time or a ratio.
_Above0 = Annotated[float, Limits(above=0)]
_Reasons = Annotated[tuple[_Text300, ...], Limits(most=32)]
_MOST_CASES = 100_000


class Status(StrEnum):
    """How the run of a device ended."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  #: some cases are missing
    FAILED = "failed"  #: no case was measured, or its file cannot be read
    LOST = "lost"  #: the device did not answer any more


class Verdict(StrEnum):
    """What a device is among its peers."""

    PEERS = "as peers"
    SLOW = "slow"
    FAST = "fast"
    WRONG = "wrong"  #: a result of it was wrong
    UNSTEADY = "unsteady"  #: its rounds differ by more than those of its peers
    ALONE = "alone"  #: too few peers, and no baseline


#: The verdicts that a device is reported for.
ACCUSED = (Verdict.WRONG, Verdict.SLOW, Verdict.UNSTEADY)


@dataclass(frozen=True, kw_only=True)
class FleetCase(Record):
    """A case that some device ran.

    Attributes
    ----------
    name : str
        Its name with n.
    mode : str
    form : str
        Short sha256 of the texts and shapes of its kernels: cases of another form are other cases.
    moved_bytes : int or None
        Bytes that must be read or written.
    """

    name: _Text500
    mode: Annotated[str, Limits(one_of=Mode)]
    form: _ShortSha256
    moved_bytes: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Measured(Record):
    """A case on a device.

    Attributes
    ----------
    case : int
        Its place among the cases of the document.
    rounds_ns : tuple of float
        The median of each visit; empty if none was timed.
    half : float or None
        Half of the 95 % interval of a visit's median, as a share of it; the median over the visits.
    wrong : bool
        Whether a result was wrong.
    error : str or None
        Why it was not measured.
    alone_ns : float or None
        Its time while no other device of the host was at work, where the run measured both.
    code : str or None
        Short sha256 of what it asked of the GPU, by which devices know the same code; None if its file does not tell.
    """

    case: Count
    rounds_ns: Annotated[tuple[_Above0, ...], Limits(most=10_000)] = ()
    half: _Least0 | None = None
    wrong: bool = left_out(False)
    error: _Text300 | None = left_out()
    alone_ns: _Above0 | None = left_out()
    code: _ShortSha256 | None = left_out()


@dataclass(frozen=True, kw_only=True)
class Member(Record):
    """A device of a fleet.

    Attributes
    ----------
    id : str
        Unique in the fleet: ``HOST/ADDRESS``, or what its file is called.
    host : str
    adapter, adapter_type, backend, driver, gridwise_py : str or None
    group : str or None
        Of the devices that it is compared with.
    status : Status
    attempts : int
        How often its run was begun.
    error : str or None
    file : str or None
        Its results file, relative to the folder of the document.
    sha256 : str or None
        Of the file.
    wall_s : float or None
        How long its run took.
    canary_ns : float or None
        The median time of the canary, a kernel whose time changes only with the clock.
    throttle_reasons : tuple of str
        Why the GPU ran below its highest clock, as its driver said while it was at work.
    measured : tuple of Measured
    verdict : Verdict or None
        None if nothing was measured.
    ratio, low, high : float or None
        Its time over that of its peers, with the 95 % interval: of the slow cases where it is slow, else of all.
    cases : int
        How many were judged.
    cases_slow, cases_wrong : int
    because : tuple of str
        What the measurements say about the cause; the first is ``clock``, ``memory``, ``host``, ``shared``, ``code``
        or ``unknown``.
    """

    id: _Text300
    host: _Text300
    adapter: _Text300 | None = None
    adapter_type: _Text300 | None = None
    backend: _Text300 | None = None
    driver: _Text300 | None = None
    gridwise_py: _Text300 | None = None
    group: _ShortSha256 | None = None
    status: Status
    attempts: Count = 1
    error: _Text300 | None = None
    file: Annotated[str, Limits(most=1000)] | None = None
    sha256: Sha256 | None = None
    wall_s: _Least0 | None = None
    canary_ns: _Above0 | None = None
    throttle_reasons: _Reasons = left_out(())
    measured: Annotated[tuple[Measured, ...], Limits(most=_MOST_CASES)] = ()
    verdict: Verdict | None = None
    ratio: _Above0 | None = None
    low: _Above0 | None = None
    high: _Above0 | None = None
    cases: Count = 0
    cases_slow: Count = 0
    cases_wrong: Count = 0
    because: _Reasons = ()

    @property
    def is_accused(self) -> bool:
        """Whether a report names it: a bad verdict, or a run that did not end well."""
        return self.verdict in ACCUSED or self.status is not Status.COMPLETE

    @property
    def errors(self) -> int:
        """How many cases ended in an error."""
        return sum(each.error is not None for each in self.measured)


@dataclass(frozen=True, kw_only=True)
class GroupCase(Record):
    """A case on the devices of a group.

    Attributes
    ----------
    case, form : str
    count : int
        How many devices measured it.
    median_ns : float
        Median over the devices.
    mad : float
        1.4826 times the median absolute deviation of the logarithms, which is the standard deviation of normal ones.
    low, high : float
        The 1st and the 99th percentile of the ratios to the median.
    code : str or None
        What most devices asked of the GPU; a device with another one is no sick device.
    """

    case: _Text500
    form: _ShortSha256
    count: Count
    median_ns: _Above0
    mad: _Least0
    low: _Above0
    high: _Above0
    code: _ShortSha256 | None = left_out()


@dataclass(frozen=True, kw_only=True)
class Group(Record):
    """Devices that may be compared with each other.

    Attributes
    ----------
    group : str
        Short sha256 of adapter, adapter_type, backend, driver and gridwise_py together.
    adapter, adapter_type, backend, driver, gridwise_py : str
    count : int
        Its devices.
    has_baseline : bool
        Whether they were judged against a baseline.
    expected_false : float
        How many cases of healthy devices chance alone puts beyond the limit.
    canary_ns : float or None
        The median of the devices.
    cases : tuple of GroupCase
    """

    group: _ShortSha256
    adapter: _Text300
    adapter_type: _Text300
    backend: _Text300
    driver: _Text300
    gridwise_py: _Text300
    count: Count
    has_baseline: bool = False
    expected_false: _Least0 = 0.0
    canary_ns: _Above0 | None = None
    cases: Annotated[tuple[GroupCase, ...], Limits(most=_MOST_CASES)] = ()


@dataclass(frozen=True, kw_only=True)
class Fleet(Record):
    """A fleet document.

    Attributes
    ----------
    schema, schema_version
    run : str or None
        Its start and a random part; None for a fleet from files.
    suite : str or None
        None if its members ran different ones.
    rounds : int
        The most visits of a case.
    complete : bool
        Whether every device that was planned is complete.
    planned : tuple of str
        The ids of the devices.
    gate : float
        Slower by less than this share is no accusation.
    baseline : str or None
        The sha256 of the baseline.
    request : str or None
        Short sha256 of what was measured and how; only a run with the same one can be resumed.
    cases : tuple of FleetCase
    members : tuple of Member
        In the order of their ids.
    groups : tuple of Group
    """

    schema: Literal["gridwise.fleet"] = SCHEMA
    schema_version: Literal[1] = SCHEMA_VERSION
    run: _Text300 | None = None
    suite: _Text300 | None = None
    rounds: Count = 1
    complete: bool = True
    planned: tuple[_Text300, ...] = ()
    gate: Annotated[float, Limits(at_least=0, below=1)] = 0.03
    baseline: Sha256 | None = None
    request: _Text40 | None = left_out()
    cases: Annotated[tuple[FleetCase, ...], Limits(most=_MOST_CASES)] = ()
    members: tuple[Member, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def outliers(self) -> list[Member]:
        """The members that a report names, the worst first."""
        return sorted((each for each in self.members if each.is_accused), key=_badness)

    def write(self, path: str | Path) -> None:
        """Write the document, whole or not at all.

        Parameters
        ----------
        path : str or Path
        """
        content = (json_text(self.to_json()) + "\n").encode("utf-8", "replace")
        write_whole(Path(path), content)


def _badness(member: Member) -> tuple[int, float, str]:
    """Sort key, the worst first: by what is listed, then the slower first, then by id."""
    order = [
        member.verdict is Verdict.WRONG, member.status is Status.LOST, member.status is Status.FAILED,
        member.verdict is Verdict.SLOW, member.status is Status.INCOMPLETE,
    ]  # fmt: skip
    return order.index(True) if True in order else len(order), -(member.ratio or 0.0), member.id
