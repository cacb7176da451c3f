"""Reads the files of a fleet: results files and fleet documents, which may come from strangers.

They are data. Each has a largest size, is checked against its schema, and names no file outside of its own folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import starmap
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, cast

from ..bench.results.reader import LARGEST, SMALLEST, content_of, document_of, parse_json
from ..bench.results.schema import check_fields, check_version
from ..errors import ArgumentError, BadResultsFile
from .members import failed_member, fleet_of, host_of, merge
from .model import SCHEMA, Fleet

_MOST_RESULTS_BYTES = 32 << 20
#: Files that a process reads one after the other; of more, others help.
_CHUNK = 125


def read_fleet(
    paths: Sequence[Path],
    *,
    folder: Path | None = None,
    processes: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Fleet:
    """Return the fleet of some files, not judged yet: results files of devices, and documents of fleets.

    A results file that cannot be read is a failed member: one bad file of a thousand hides no other. Samples are not
    read; commands that use them check them.

    Parameters
    ----------
    paths : sequence of Path
    folder : Path, optional
        Of the document to be written, in which members below it are named.
    processes : int
        That read, if there are many files.
    progress : callable
        Called with the number of files that were read.

    Raises
    ------
    ArgumentError
        If no file can be read.
    BadResultsFile
        If the document of a fleet is bad: what it stands for cannot be told.
    """
    tasks = [(path, name, folder) for path, name in zip(paths, names_of(paths), strict=True)]
    parts: list[Fleet] = []
    problems: list[str] = []
    for part, problem in _parts(tasks, processes):
        parts.append(part)
        problems += [] if problem is None else [problem]
        progress(len(parts))
    if len(problems) == len(paths):
        raise ArgumentError(f"none of the files can be read: {'; '.join(problems[:3])}")
    return merge(parts)


_Task: TypeAlias = tuple[Path, str, Path | None]
#: A fleet, and why its file cannot be read.
_Part: TypeAlias = tuple[Fleet, str | None]


def _parts(tasks: Sequence[_Task], processes: int) -> Iterator[_Part]:
    if processes < 2 or len(tasks) <= _CHUNK:
        yield from starmap(_part, tasks)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_part, *zip(*tasks, strict=True), chunksize=_CHUNK)


def _part(path: Path, name: str, folder: Path | None) -> _Part:
    try:
        content = content_of(path)
        data = _parse_quickly(content, path.name)
        if not is_fleet(data):
            return _member(data, content, path, name, folder), None
    except BadResultsFile as error:
        return Fleet(members=(failed_member(name, host_of(name), str(error)),)), str(error)
    return _rename_files(parse_fleet(data, path.name), path.parent, folder), None


def _member(data: Any, content: bytes, path: Path, name: str, folder: Path | None) -> Fleet:
    check_size(content, path.name)
    results = document_of(data, path.name)
    return fleet_of(
        results, identifier=name, host=host_of(name), file=_name_below(path, folder),
        sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


def check_size(content: bytes, name: str) -> None:
    """Raise BadResultsFile if the file of a device is too large."""
    if len(content) > _MOST_RESULTS_BYTES:
        most = f"{_MOST_RESULTS_BYTES:,}"
        raise BadResultsFile(f"{name}: has {len(content):,} bytes, but the file of a device has at most {most}")


def _parse_quickly(content: bytes, name: str) -> Any:
    """Return JSON data as `parse_json` does, but without the samples of a results document.

    Raises
    ------
    BadResultsFile
    """

    def refuse(word: str) -> float:
        raise ValueError(word)

    try:
        data = _without_samples(json.loads(content.decode("utf-8"), parse_constant=refuse))
        if _has_usual_numbers(data):
            return data
    except (ValueError, RecursionError):
        pass
    return _without_samples(parse_json(content, name))  # which says what is wrong, and where


def _has_usual_numbers(data: Any) -> bool:
    """Whether the numbers of JSON data are within the limits of results files."""
    rest = [data]
    for value in rest:  # what is added while it runs, too
        kind = type(cast(object, value))  # of JSON data: exactly one of these
        if kind is dict:
            rest += cast(dict[str, Any], value).values()
        elif kind is list:
            rest += cast(list[Any], value)
        elif (kind is float or kind is int) and not (value == 0 or SMALLEST <= abs(value) <= LARGEST):
            return False
    return True


def _without_samples(data: Any) -> Any:
    """Return JSON data without what takes most of its room, if it is a results document; else as it is."""
    for result in _objects(data, "results"):
        for holder in (result, *_objects(result, "kernels"), *_objects(result.get("whole"), "series")):
            for name in ("samples", "samples_ns"):
                if isinstance(holder.get(name), list):
                    holder[name] = []
    return data


def _objects(data: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list or an object of JSON data; none where it is something else."""
    found: Any = cast(dict[str, Any], data).get(name) if isinstance(data, dict) else None
    values = list(cast(Mapping[str, Any], found).values()) if isinstance(found, dict) else found
    return (
        [cast(dict[str, Any], one) for one in cast(list[Any], values) if isinstance(one, dict)]
        if isinstance(values, list)
        else []
    )


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return names of devices by their files: as many folders of each path as tell them apart."""
    whole = [path.absolute().with_name(path.name.removesuffix(".json")).parts for path in paths]
    for length in range(1, max(map(len, whole), default=1) + 1):
        names = ["/".join(parts[-length:]) for parts in whole]
        if len(set(names)) == len(set(whole)):
            return names
    return ["/".join(parts) for parts in whole]


def is_fleet(data: Any) -> bool:
    """Whether JSON data says that it is the document of a fleet."""
    return isinstance(data, dict) and cast(dict[str, Any], data).get("schema") == SCHEMA


def parse_fleet(data: Any, name: str) -> Fleet:
    """Return the fleet of JSON data; raise BadResultsFile unless it is a valid document."""

    def bad(where: str, problem: str) -> BadResultsFile:
        return BadResultsFile(f"{name}: {where}: {problem}")

    if not is_fleet(data):
        raise bad("$.schema", f"this is no fleet of gridwise fleet, whose 'schema' is {SCHEMA!r}")
    check_version(data, Fleet, name)
    check_fields(data, Fleet, name)
    fleet = Fleet.from_json(cast(Mapping[str, Any], data))
    for i, member in enumerate(fleet.members):
        places = [each.case for each in member.measured]
        if len(set(places)) < len(places) or any(place >= len(fleet.cases) for place in places):
            raise bad(f"$.members[{i}].measured", f"a case is there twice, or is none of the {len(fleet.cases)} cases")
        if member.file is not None and _is_outside(member.file):
            raise bad(f"$.members[{i}].file", "is not below the folder of this file")
    identifiers = [member.id for member in fleet.members]
    if len(set(identifiers)) < len(identifiers):
        raise bad("$.members", "two members have one id")
    return fleet


def member_path(fleet_path: Path, file: str) -> Path:
    """Return where the results file of a member is; raise BadResultsFile if that is outside of the fleet's folder."""
    folder = fleet_path.absolute().parent.resolve()
    path = (folder / file).resolve()  # a link in the folder may lead out of it
    if _is_outside(file) or not path.is_relative_to(folder):
        raise BadResultsFile(f"{fleet_path.name}: the file of a member is not below the folder of this file")
    return path


def _is_outside(file: str) -> bool:
    parts = PurePosixPath(file)
    return parts.is_absolute() or ".." in parts.parts or "\\" in file or ":" in file


def _name_below(path: Path, folder: Path | None) -> str | None:
    """Return the name of a file relative to a folder; None if it is not below it, or not a name on every system."""
    if folder is None:
        return None
    try:
        file = path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return None
    return None if _is_outside(file) else file


def _rename_files(fleet: Fleet, before: Path, folder: Path | None) -> Fleet:
    """Return a fleet with its members' files named from another folder."""
    members = [
        replace(member, file=None if member.file is None else _name_below(before / member.file, folder))
        for member in fleet.members
    ]
    return replace(fleet, members=tuple(members))
