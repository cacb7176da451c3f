"""Compares what two versions ask of a GPU, case by case and class of devices by class, without a GPU."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import Capabilities
from ...errors import ArgumentError
from ...internals import Code
from ..cases.device_classes import DEVICE_CLASSES
from ..sweep.suite import Job
from .environments import CONTENT, Environment
from .process import SideError, Worker
from .taken import SIDES
from .turns import recipe


@dataclass
class CaseDifference:
    """What differs in a case.

    Attributes
    ----------
    case : str
    classes : int
        How many were asked about.
    changed : dict from str to tuple of Code
        By class where the code differs, that of both sides.
    one_sided : dict from str to str
        By class where only one side runs, why.
    unknown : str
        Why it cannot be told; else empty.
    """

    case: str
    classes: int
    changed: dict[str, tuple[Code, Code]] = field(default_factory=dict[str, tuple[Code, Code]])
    one_sided: dict[str, str] = field(default_factory=dict[str, str])
    unknown: str = ""

    @property
    def same(self) -> bool:
        """Whether it is the same code on all classes."""
        return not (self.changed or self.one_sided or self.unknown)

    @property
    def changes(self) -> dict[str, list[str]]:
        """What differs, most important first, each with the classes where it does."""
        found: dict[str, list[str]] = {}
        for name, (old, new) in self.changed.items():
            for text in old.changes(new):
                found.setdefault(text, []).append(name)
        for name, text in self.one_sided.items():
            found.setdefault(text, []).append(name)
        return found

    def __str__(self) -> str:
        if self.unknown:
            return f"{self.case}: cannot tell: {self.unknown}"
        if self.same:
            return f"{self.case}: same on {self.classes} of {self.classes} classes"
        where = [*self.changed, *self.one_sided]
        names = f" ({'; '.join(where)})" if len(where) < self.classes else ""
        first = next(iter(self.changes))
        return f"{self.case}: differs on {len(where)} of {self.classes} classes{names}: {first}"

    def to_json(self) -> dict[str, Any]:
        """Return it for a file."""
        verdict = "unknown" if self.unknown else "same" if self.same else "differs"
        counts = {
            name: {side: one.counts for side, one in zip(SIDES, both, strict=True)}
            for name, both in self.changed.items()
        }
        return {
            "case": self.case, "verdict": verdict, "classes": self.classes, "changes": self.changes, "counts": counts,
            "unknown": self.unknown or None,
        }  # fmt: skip


def same_files(environments: Mapping[str, Environment]) -> bool:
    """Whether both sides have the same files of the library, so that nothing needs to be asked."""
    old, new = (environments[side].folder for side in SIDES)
    if old is None or new is None or any(environments[side].file is not None for side in SIDES):
        return False
    return all(_same_tree(filecmp.dircmp(old / name, new / name)) for name in CONTENT)


def _same_tree(found: filecmp.dircmp[str]) -> bool:
    if found.left_only or found.right_only or found.common_funny:
        return False
    equal = [filecmp.cmp(Path(found.left, name), Path(found.right, name), shallow=False) for name in found.common_files]
    return all(equal) and all(map(_same_tree, found.subdirs.values()))


def differences(
    environments: Mapping[str, Environment], jobs: Sequence[Job], *, seed: int = 0,
    classes: Mapping[str, Capabilities] = DEVICE_CLASSES, say: Callable[[str], None] = lambda text: None,
) -> Iterator[CaseDifference]:  # fmt: skip
    """Yield what differs in each case.

    Parameters
    ----------
    environments : mapping from str to Environment
        By side.
    jobs : sequence of Job
    seed : int
        Of the generators of users' benchmarks.
    classes : mapping from str to Capabilities
    say : callable
        Is told which case is next.

    Raises
    ------
    ArgumentError
        If a side does not start, or ends: its library cannot be imported, say.
    """
    with ExitStack() as stack:
        asked: dict[str, _Asked] = {}
        for side in SIDES:
            try:
                asked[side] = _Asked(stack.enter_context(Worker(environments[side])), environments[side], classes, seed)
            except OSError as error:
                raise ArgumentError(f"{side} ({environments[side].given}) does not start: {error}") from error
        for job in jobs:
            say(str(job.case))
            for one in asked.values():  # both at once
                one.ask(job)
            found = CaseDifference(str(job.case), len(classes))
            old, new = (one.answers() for one in asked.values())
            answers = {name: both for name, *both in zip(classes, old, new, strict=True)}
            differing = {name: both for name, both in answers.items() if both[0] != both[1] or "failed" in both[0]}
            for place, one in enumerate(asked.values()):
                one.tell([both[place] for both in differing.values()])
            for name, both in differing.items():
                _compare(found, name, *both)
            yield found


class _Asked:
    """A side that is asked for codes."""

    def __init__(self, worker: Worker, environment: Environment, classes: Mapping[str, Capabilities], seed: int):
        self._worker, self._environment, self._seed = worker, environment, seed
        self._classes = [_fields(one) for one in classes.values()]

    def ask(self, job: Job) -> None:
        own, case = job.case.own_workload, job.case
        if own is None:
            self._worker.send("plan", **recipe(case), lengths=case.lengths, capabilities=self._classes)
            return
        self._worker.send(
            "record", capabilities=self._classes, file=str(self._environment.file), n=case.n, mode=job.mode.value,
            name=self._environment.benchmark or own.declared.name, axes=dict(case.others), seed=self._seed,
        )  # fmt: skip

    def answers(self) -> list[dict[str, Any]]:
        """Return for each class a digest of what it would be asked to do, or why it does not run there."""
        try:
            return self._told()
        except SideError as error:
            return [{"failed": str(error)} for _ in self._classes]

    def tell(self, answers: Sequence[dict[str, Any]]) -> None:
        """Add the code to answers with digests."""
        digests = [one["digest"] for one in answers if "digest" in one]
        if not digests:
            return
        self._worker.send("tell", digests=digests)
        works = dict(zip(digests, self._told(), strict=True))
        for one in answers:
            if "digest" in one:
                one["code"] = Code.of(**works[one["digest"]])

    def _told(self) -> list[dict[str, Any]]:
        """Return what the process answers; raise SideError if it cannot, ArgumentError if it is gone."""
        try:
            return self._worker.answer()["works"]
        except SideError as error:
            if error.is_dead:
                raise ArgumentError(f"{self._environment.given} cannot be asked: {error}") from error
            raise


def _fields(capabilities: Capabilities) -> dict[str, Any]:
    """Return capabilities as a worker takes them: fields that a side may lack, and a verdict of four answers."""
    data = capabilities.to_dict()
    verdict = {name: data["lookback"][name] for name in ("coherent", "progress", "needs_tickets", "recovers")}
    return {**{name: data[name] for name in data if data[name]}, "lookback": verdict}


def _compare(found: CaseDifference, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Note what differs on a class, whose answers differ."""
    failed = [f"{side}: {one['failed']}" for side, one in zip(SIDES, (old, new), strict=True) if "failed" in one]
    if failed:
        found.unknown = "; ".join(failed)
    elif "code" in old and "code" in new:
        if old["code"].digests != new["code"].digests:
            found.changed[name] = (old["code"], new["code"])
    elif "code" in old or "code" in new:
        side, why = (SIDES[0], old) if "code" in new else (SIDES[1], new)
        found.one_sided[name] = f"{side} does not run: {why.get('refused') or why.get('missing')}"
