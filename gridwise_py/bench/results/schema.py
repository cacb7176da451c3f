"""Checks JSON data against the schemas of files, and results files for contradictions that a schema cannot express."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, NoReturn, cast, get_args, get_type_hints

from ...errors import BadResultsFile
from ...storage.checks import find_problem
from ...storage.records import Record
from ...storage.schemas import schema_of
from .model import SCHEMA, Results

# Rates are computed from these, and from their intervals.
_TIMED = ("gpu_span", "cpu_wall")
_ROUNDING = 1e-6


# ---- of any record that is a file


def json_schema(cls: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema of a file; its schema version is in its name."""
    hints = get_type_hints(cls)
    if "schema" not in hints:
        return schema_of(cls)
    (name,), (version,) = get_args(hints["schema"]), get_args(hints["schema_version"])
    return schema_of(cls, f"A file of {name.replace('.', ' ')}", f"urn:{name.replace('.', ':')}:{version}")


def check_version(data: Mapping[str, Any], cls: type[Record], name: str, writer: str = "") -> None:
    """Raise BadResultsFile unless JSON data has the version of a record's file.

    Parameters
    ----------
    data : mapping
    cls : type of Record
        Whose field ``schema_version`` has the version in its type.
    name : str
        Of the file.
    writer : str
        Who wrote the file, if that is known.
    """
    (read,), found = get_args(get_type_hints(cls)["schema_version"]), data.get("schema_version")
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        problem = f"{reprlib.repr(found)} is not a version; this gridwise_py reads {read}"
    elif found > read:
        problem = f"{found} is newer than {read}, which this gridwise_py reads; update gridwise_py"
    elif found < read:
        problem = (
            f"{found} is older than {read}, which this gridwise_py reads; "
            f"{writer or 'an earlier gridwise_py'} wrote the file; measure again"
        )
    else:
        return
    raise BadResultsFile(f"{name}: $.schema_version: {problem}")


def check_fields(value: Any, cls: type[Record], name: str) -> None:
    """Raise BadResultsFile unless JSON data, from the file `name`, is as the schema of a record says."""
    found = find_problem(value, cls)
    if found is not None:
        raise BadResultsFile(f"{name}: {found[0]}: {found[1]}")


# ---- of results


def check_document(document: Any, name: str) -> None:
    """Raise BadResultsFile unless JSON data is a results document; `name` is its file's."""

    def fail(where: str, problem: str) -> NoReturn:
        raise BadResultsFile(f"{name}: {where}: {problem}")

    other_tool = (
        f"this is not a results file of gridwise bench, whose 'schema' is {SCHEMA!r}, nor a JSON file of nvbench, "
        f"google-benchmark, pytest-benchmark or hyperfine; gridwise import --format numbers reads a time per line"
    )
    if not isinstance(document, dict):
        fail("$", f"a {type(document).__name__}, not an object: {other_tool}")
    document = cast(dict[str, Any], document)
    if document.get("schema") != SCHEMA:
        found = repr(document["schema"])[:40] if "schema" in document else "missing"
        fail("$.schema", f"{found}: {other_tool}")
    check_version(document, Results, name, _writer(document))
    check_fields(document, Results, name)
    where, problem = _contradiction(document)
    if problem:
        fail(where, problem)


def _writer(document: Mapping[str, Any]) -> str:
    """Return which gridwise_py wrote a document; empty if it does not say so."""
    try:
        context = document["context"]
        return f"gridwise_py {context['versions']['gridwise_py']!s:.40} ({context['time']!s:.40})"
    except (LookupError, TypeError):
        return ""


def _contradiction(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return where and how values contradict each other, which a schema cannot express."""
    for i, entry in enumerate(document["results"]):
        at = f"$.results[{i}]"
        if entry["ticks"] is not None and document["ticks_file"] is None:
            return f"{at}.ticks", "the timestamps are in $.ticks_file, which is null"
        kernels = len(entry["kernels"])
        counts = {len(sample.get("ticks") or ()) for sample in entry["samples"]}
        if counts - {0} and counts != {kernels}:
            found = " and ".join(map(str, sorted(counts)))
            return f"{at}.samples", f"samples have timestamps of {found} kernels, but there are {kernels} kernels"
        problem = _series_problem(entry)
        if problem:
            return f"{at}.{problem[0]}", problem[1]
    return "", ""


def _series_problem(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return where and how the times of a result contradict each other."""
    series: Mapping[str, Mapping[str, Any]] = entry["whole"]["series"]
    for name in _TIMED:
        summary: Mapping[str, Any] | None = series.get(name, {}).get("summary")
        low, high = (summary["ci_low_ns"], summary["ci_high_ns"]) if summary else (None, None)
        if (low is None) != (high is None):
            return f"whole.series.{name}.summary", "the interval has one end"
        if low is not None and low > high:
            return f"whole.series.{name}.summary", "the interval ends before it begins"
    span_ns, span = entry["whole"]["gpu_span_ns"], series.get("gpu_span", {})
    for k, kernel in enumerate(entry["kernels"]):
        # If none is left out, each sample of the whole is at least as long as that of its kernel.
        alike = len(span.get("samples_ns", ())) == len(kernel["samples_ns"])
        if alike and span_ns and kernel["gpu_ns"] and kernel["gpu_ns"] > span_ns * (1 + _ROUNDING):
            return "whole.gpu_span_ns", f"{span_ns:g}, but kernels[{k}] alone takes {kernel['gpu_ns']:g}"
    return None
