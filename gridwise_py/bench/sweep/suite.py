"""The cases of a run and their order: sweeps over axes, suites in TOML files, shuffling."""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from ...errors import ArgumentError
from ...internals import REGISTRY
from ...settings import SHADER_CHECKS
from ...storage.files import read_file
from ..cases.benchmarked import axis_text
from ..cases.case import YARDSTICK, Case
from ..cases.mode import MODES, Mode
from ..cases.names import case_name
from ..cases.own_files import OwnWorkload
from ..cases.workloads import USUAL_AXES, WORKLOADS
from ..results.shares import array_bytes
from ..sampling.protocol import SamplingProtocol
from .axes import Axis, Kinds, collect_axes, points

#: The default primitives: one of each kind.
DEFAULT_PRIMITIVES = ("vector_add", "reduce", "scan", "sort")

#: In a suite: all primitives of the registry that none of its other sweeps names.
_OTHERS = "*"

DEFAULT_AXES: Mapping[str, str] = {
    "n": "2^24",
    "mode": "batch",
    "datatype": "u32,f32",
    **USUAL_AXES,
}


# All jobs and their results are kept in memory.
_MOST_JOBS = 1_000_000

#: The sampling settings of `gridwise bench`, unless an option or a suite changes them.
BENCH_PROTOCOL = SamplingProtocol(timeout_s=1.0, batch_trials=10)


@dataclass(frozen=True)
class Job:
    """A case in a mode, with its place in the order that was asked for, its round and its process."""

    case: Case
    mode: Mode
    position: int
    round: int = 0
    process: int = 0

    @property
    def checks(self) -> bool:
        """Whether its results are checked: in the first process, since the check takes as long as the measurement."""
        return self.process == 0

    def __str__(self) -> str:
        return case_name(self.case.primitive, self.case.axes, self.mode.value, self.case.n)


@dataclass(frozen=True)
class Sweep:
    """Primitives, and the axes for each of them; or a benchmark of a user's file, and its axes."""

    primitives: tuple[str, ...]
    axes: Mapping[str, Axis]
    own: OwnWorkload | None = None


@dataclass(frozen=True)
class Suite:
    """The content of a suite's file."""

    name: str
    sweeps: tuple[Sweep, ...]
    description: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict[str, Any])
    processes: int | None = None


def plan_jobs(sweeps: Iterable[Sweep]) -> list[Job]:
    """Return the jobs of sweeps without duplicates; at each n and mode, copies of as many bytes come first.

    Not for the benchmarks of a user's file: how many bytes they move is known when they have run.
    """
    wanted: dict[tuple[Case, Mode], None] = {}
    for sweep in sweeps:
        if sweep.own is not None:
            for place in points(sweep.axes):
                wanted[Case.of_own(sweep.own, place), Mode(place["mode"])] = None
            continue
        outer = {name: sweep.axes[name] for name in ("n", "mode")}
        inner = {name: axis for name, axis in sweep.axes.items() if name not in outer}
        for place in points(outer):
            n, mode = int(place["n"]), Mode(place["mode"])
            cases = [
                Case.build(primitive, n, **{name: str(value) for name, value in choice.items()})
                for primitive in sweep.primitives
                for choice in points(_within(inner, primitive))
            ]
            for case in cases if n else ():
                words = -(-array_bytes(case.primitive, n, case.datatype) // 4)
                wanted[Case.build(YARDSTICK, words, "u32", "add"), mode] = None
            wanted |= dict.fromkeys((case, mode) for case in cases)
    return [Job(case, mode, position) for position, (case, mode) in enumerate(wanted)]


def _within(axes: Mapping[str, Axis], primitive: str) -> Mapping[str, Axis]:
    """Return the axes without the datatypes that a primitive lacks; with all if it lacks all, so that it raises."""
    known = WORKLOADS[primitive].datatypes
    values = tuple(name for name in axes["datatype"].values if name in known)
    return {**axes, "datatype": replace(axes["datatype"], values=values)} if values else axes


def in_rounds(jobs: Sequence[Job], rounds: int, seed: int | None) -> list[Job]:
    """Return all jobs, round after round, each round in its own random order; as given if `seed` is None.

    Then a drift of the machine during the run (heat, other work) affects all cases alike, not only the last ones.
    Several rounds also show the differences between visits to a case.

    Raises
    ------
    ArgumentError
        If there are more than 1,000,000.
    """
    _check_count(rounds, jobs, "rounds")
    order = None if seed is None else random.Random(seed)
    found: list[Job] = []
    for number in range(rounds):
        visited = list(jobs) if order is None else order.sample(list(jobs), len(jobs))
        found += [replace(job, round=number) for job in visited]
    return found


def _check_count(count: int, jobs: Sequence[Job], what: str) -> None:
    if count * len(jobs) > _MOST_JOBS:
        raise ArgumentError(
            f"{count:,} {what} of {len(jobs):,} measurements are {count * len(jobs):,}, but a run has at most "
            f"{_MOST_JOBS:,}; take fewer {what} or cases"
        )


def in_processes(jobs: Sequence[Job], processes: int, seed: int | None) -> list[Job]:
    """Return the jobs of each process, one process after the other.

    The first process has the order that is given. The others have the same rounds, each in its own random order, or as
    given if `seed` is None.

    Raises
    ------
    ArgumentError
        If there are more than 1,000,000.
    """
    _check_count(processes, jobs, "processes")
    found = list(jobs)
    for process in range(1, processes):
        order = None if seed is None else random.Random(f"{seed}, process {process}")
        for _, same_round in groupby(jobs, key=lambda job: job.round):
            visited = list(same_round)
            if order is not None:
                order.shuffle(visited)
            found += [replace(job, process=process) for job in visited]
    return found


def with_n(sweeps: Iterable[Sweep], n: int) -> tuple[Sweep, ...]:
    """Return sweeps at another n."""
    return tuple(Sweep(sweep.primitives, {**sweep.axes, "n": Axis("n", (n,))}) for sweep in sweeps)


def need_datatypes(sweeps: Iterable[Sweep]) -> None:
    """Refuse a primitive that has none of the requested datatypes, before anything is measured.

    Raises
    ------
    ArgumentError
    """
    for sweep in sweeps:
        for primitive in () if sweep.own is not None else sweep.primitives:
            known, asked = WORKLOADS[primitive].datatypes, sweep.axes["datatype"].values
            if not set(known) & set(asked):
                fitting = [name for name, each in WORKLOADS.items() if set(asked) & set(each.datatypes)]
                remedy = f"; {', '.join(map(str, asked))} is for {', '.join(fitting)}" if fitting else ""
                raise ArgumentError(
                    f"{primitive} has no datatype {' or '.join(map(str, asked))}; it has {', '.join(known)}{remedy}"
                )


def narrow(sweeps: Iterable[Sweep], axes: Mapping[str, Axis], primitives: Sequence[str]) -> tuple[Sweep, ...]:
    """Return sweeps with some axes replaced, restricted to some primitives (all if none is named)."""
    found: list[Sweep] = []
    for sweep in sweeps:
        chosen = tuple(name for name in sweep.primitives if not primitives or name in primitives)
        if chosen:
            found.append(Sweep(chosen, {**sweep.axes, **axes}))
    return tuple(found)


# ---- benchmarks of a user's file


def own_sweeps(
    workloads: Sequence[OwnWorkload], texts: Sequence[str], short: Mapping[str, str | None]
) -> tuple[Sweep, ...]:
    """Return a sweep for each benchmark of a user, over its own axes or the values that were asked for.

    Parameters
    ----------
    workloads : sequence of OwnWorkload
    texts : sequence of str
        Behind ``-a``; an axis that a benchmark lacks is ignored, unless all of them lack it.
    short : mapping from str to str or None
        As of `collect_axes`.

    Raises
    ------
    ArgumentError
        If an axis cannot be read, or no benchmark has it.
    """
    kinds: dict[str, tuple[str, ...] | float | None] = {}
    for workload in workloads:
        for name, kind in _own_kinds(workload).items():
            before = kinds.setdefault(name, kind)
            if isinstance(before, tuple) and isinstance(kind, tuple):
                kinds[name] = tuple(dict.fromkeys((*before, *kind)))
    asked = collect_axes(texts, short, {}, kinds)
    sweeps = [Sweep((workload.full_name,), _own_axes(workload, asked), workload) for workload in workloads]
    return tuple(sweep for sweep in sweeps if all(axis.values for axis in sweep.axes.values()))


def _own_axes(workload: OwnWorkload, asked: Mapping[str, Axis]) -> dict[str, Axis]:
    """Return the axes of a user's benchmark; without values where those that were asked for are not its own words."""
    kinds = _own_kinds(workload)
    axes = {"mode": Axis("mode", (Mode.HOT.value,))}
    for name, values in workload.declared.axes.items():
        counts = tuple(value for value in values if type(value) is int)
        axes[name] = Axis(name, counts if kinds[name] is None else tuple(map(axis_text, values)))
    for name, axis in asked.items():
        kind = kinds.get(name)
        if isinstance(kind, tuple):
            axis = Axis(name, tuple(word for word in map(str, axis.values) if word in kind))
        if name in kinds:
            axes[name] = axis
    return axes


def _own_kinds(workload: OwnWorkload) -> Kinds:
    """Return what values the axes of a user's benchmark may have: other numbers, but no other words."""
    kinds: dict[str, tuple[str, ...] | float | None] = {}
    for name, values in workload.declared.axes.items():
        if all(type(value) is int for value in values):
            kinds[name] = None
        elif all(isinstance(value, float) and value >= 0 for value in values):
            kinds[name] = math.inf
        else:
            kinds[name] = tuple(map(axis_text, values))
    return {**kinds, "mode": MODES, "shader_checks": kinds.get("shader_checks", SHADER_CHECKS)}


# ---- suites ------------------------------------------------------------------------------------------------------


def _suite_folder() -> Path:
    """Return the folder with the suites: in the wheel inside the package, in a checkout in benchmarks."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "_suites"
    return inside if inside.is_dir() else package.parent / "benchmarks" / "suites"


def suite_names() -> list[str]:
    """Return the names of the suites that come with this package."""
    return sorted(path.stem for path in _suite_folder().glob("*.toml"))


def load_suite(name: str) -> Suite:
    """Read a suite.

    Parameters
    ----------
    name : str
        One of `suite_names`, or the path of a TOML file.

    Raises
    ------
    ArgumentError
        If it does not exist or is malformed; the message has the file and the place.
    """
    is_path = name.endswith(".toml") or "/" in name or "\\" in name
    path = Path(name) if is_path else _suite_folder() / f"{name}.toml"
    if not is_path and name not in suite_names():
        raise ArgumentError(
            f"there is no suite {name!r}; there are {', '.join(suite_names())}, or give the path of a .toml file"
        )
    try:
        content = tomllib.loads(read_file(path).decode())
    except OSError as error:
        raise ArgumentError(f"suite {path.name}: cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ArgumentError(f"suite {path.name}: nested too deeply: no suite") from error
    except ValueError as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise ArgumentError(f"suite {path.name}: this is not TOML: {error}") from error
    return _suite(path, content)


@contextmanager
def _blaming(place: str) -> Generator[None]:
    """Let errors begin with a place."""
    try:
        yield
    except ArgumentError as error:
        raise ArgumentError(f"{place}: {error}") from error


def _need(condition: bool, problem: str) -> None:
    if not condition:
        raise ArgumentError(problem)


def _table(value: object, name: str, known: Collection[str], problem: str = "") -> dict[str, Any]:
    """Return a table of known keys."""
    _need(isinstance(value, dict), f"{name}: {problem}")
    table = cast(dict[str, Any], value)
    for key in table:
        _need(key in known, f"{name}.{key}: unknown; there are {', '.join(known)}".lstrip("."))
    return table


def _suite(path: Path, content: Mapping[str, Any]) -> Suite:
    with _blaming(f"suite {path.name}"):
        _table(content, "", ("description", "processes", "protocol", "sweep"))
        known = [f.name for f in fields(SamplingProtocol)]
        protocol = _table(content.get("protocol", {}), "protocol", known, "must be a table, [protocol]")
        for key, value in protocol.items():
            with _blaming(f"protocol.{key}"):
                SamplingProtocol(**{key: value})
        given = content.get("sweep")
        tables = cast(list[object], given) if isinstance(given, list) else []
        _need(bool(tables), "sweep: there must be at least one table, [[sweep]]")
        sweeps = [_sweep(table, f"sweep[{i}]") for i, table in enumerate(tables)]
        processes = content.get("processes")
        is_count = isinstance(processes, int) and not isinstance(processes, bool) and processes >= 1
        _need(processes is None or is_count, f"processes: {processes!r} is not a count of at least 1")
    named = {YARDSTICK, *(name for sweep in sweeps for name in sweep.primitives)}  # the copy kernel always runs
    others = tuple(name for name in REGISTRY if name not in named)
    sweeps = [replace(sweep, primitives=others) if sweep.primitives == (_OTHERS,) else sweep for sweep in sweeps]
    return Suite(path.stem, tuple(sweeps), str(content.get("description", "")), protocol, processes)


def _sweep(value: object, where: str) -> Sweep:
    table = _table(value, where, ("primitives", "axes"), "must be a table, [[sweep]]")
    texts = {"primitives": list(DEFAULT_PRIMITIVES), "axes": []} | table
    for key, listed in texts.items():
        are_texts = isinstance(listed, list) and all(isinstance(word, str) for word in cast(list[object], listed))
        _need(are_texts, f"{where}.{key}: must be a list of texts")
    for name in texts["primitives"]:
        is_known = name in WORKLOADS or texts["primitives"] == [_OTHERS]
        _need(is_known, f"{where}.primitives: {name!r} is not one of {', '.join(WORKLOADS)}")
    with _blaming(f"{where}.axes"):
        return Sweep(tuple(texts["primitives"]), collect_axes(texts["axes"], {}, DEFAULT_AXES))
