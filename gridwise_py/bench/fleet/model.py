"""A fleet document, written by `gridwise fleet` and read by `gridwise report`. docs/howto/fleet.md describes it.

The names of the fields are the keys of the file; `gridwise.fleet.schema.json` defines their values. What is not known
is None. A document has of each device the medians of its cases and no more, so fleets are put together and judged again
without the devices' own results files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ...storage.files import write_whole
from ...storage.json_files import json_text
from ...storage.records import Record, left_out

__all__ = [
    "ACCUSED", "SCHEMA", "SCHEMA_VERSION", "Fleet", "FleetCase", "Group", "GroupCase", "Measured", "Member", "Status",
    "Verdict",
]  # fmt: skip

SCHEMA = "gridwise.fleet"
SCHEMA_VERSION = 1


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

    name: str
    mode: str
    form: str
    moved_bytes: int | None = None


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
        Half of the 95 % interval of a visit's median, as a share of it.
    wrong : bool
        Whether a result was wrong.
    error : str or None
        Why it was not measured.
    alone_ns : float or None
        Its time while no other device of the host was at work, where the run measured both.
    """

    case: int
    rounds_ns: tuple[float, ...] = ()
    half: float | None = None
    wrong: bool = left_out(False)
    error: str | None = left_out()
    alone_ns: float | None = left_out()


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
        What the measurements say about the cause; the first is a word of ``CAUSES``.
    """

    id: str
    host: str
    adapter: str | None = None
    adapter_type: str | None = None
    backend: str | None = None
    driver: str | None = None
    gridwise_py: str | None = None
    group: str | None = None
    status: Status
    attempts: int = 1
    error: str | None = None
    file: str | None = None
    sha256: str | None = None
    wall_s: float | None = None
    canary_ns: float | None = None
    throttle_reasons: tuple[str, ...] = left_out(())
    measured: tuple[Measured, ...] = ()
    verdict: Verdict | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    cases: int = 0
    cases_slow: int = 0
    cases_wrong: int = 0
    because: tuple[str, ...] = ()

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
        Of the devices.
    mad : float
        1.4826 times the median absolute deviation of the logarithms, which is the standard deviation of normal ones.
    low, high : float
        The 1st and the 99th percentile of the ratios to the median.
    """

    case: str
    form: str
    count: int
    median_ns: float
    mad: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Group(Record):
    """Devices that may be compared with each other.

    Attributes
    ----------
    group : str
        Short sha256 of the other texts.
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

    group: str
    adapter: str
    adapter_type: str
    backend: str
    driver: str
    gridwise_py: str
    count: int
    has_baseline: bool = False
    expected_false: float = 0.0
    canary_ns: float | None = None
    cases: tuple[GroupCase, ...] = ()


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

    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    run: str | None = None
    suite: str | None = None
    rounds: int = 1
    complete: bool = True
    planned: tuple[str, ...] = ()
    gate: float = 0.03
    baseline: str | None = None
    request: str | None = left_out()
    cases: tuple[FleetCase, ...] = ()
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
    order = [
        member.verdict is Verdict.WRONG, member.status is Status.LOST, member.status is Status.FAILED,
        member.verdict is Verdict.SLOW, member.status is Status.INCOMPLETE,
    ]  # fmt: skip
    return order.index(True) if True in order else len(order), -(member.ratio or 0.0), member.id
