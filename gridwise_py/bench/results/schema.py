"""Checks JSON data against the schema of results files, and for contradictions that a schema cannot express."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

from ...errors import BadResultsFile
from .model import OLDEST_VERSION, SCHEMA, SCHEMA_VERSION
from .validator import Validator, first_error, problem_of, quick_validator

__all__ = ["SCHEMA_FILE", "check_document", "check_part", "remembering_validator"]

SCHEMA_FILE = Path(__file__).resolve().with_name("gridwise.bench.schema.json")

# Rates are computed from these, and from their intervals.
_TIMED = ("gpu_span", "cpu_wall")
_ROUNDING = 1e-6


def check_document(document: Any, name: str, validator: Validator | None = None) -> None:
    """Raise BadResultsFile unless JSON data is a results document; `name` is its file's.

    A `remembering_validator` is quicker where many documents are checked.
    """

    def fail(where: str, problem: str) -> NoReturn:
        raise BadResultsFile(f"{name}: {where}: {problem}")

    other_tool = (
        f"this is not a results file of gridwise bench, whose 'schema' is {SCHEMA!r}, nor a JSON file of nvbench, "
        f"google-benchmark, pytest-benchmark or hyperfine"
    )
    if not isinstance(document, dict):
        fail("$", f"a {type(document).__name__}, not an object: {other_tool}")
    document = cast(dict[str, Any], document)
    if document.get("schema") != SCHEMA:
        found = repr(document["schema"])[:40] if "schema" in document else "missing"
        fail("$.schema", f"{found}: {other_tool}")
    version: Any = document.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        fail(
            "$.schema_version",
            f"{reprlib.repr(version)} is not a version; this gridwise_py reads {OLDEST_VERSION} to {SCHEMA_VERSION}",
        )
    if version > SCHEMA_VERSION:
        fail(
            "$.schema_version",
            f"{version} is newer than {SCHEMA_VERSION}, the newest one that this gridwise_py reads; update gridwise_py",
        )
    if version < OLDEST_VERSION:
        fail(
            "$.schema_version",
            f"{version} is older than {OLDEST_VERSION}, the oldest one that this gridwise_py reads; "
            f"{_writer(document)} wrote the file; measure again",
        )
    where, problem = _schema_problem(document, None, validator)
    if not problem:
        where, problem = _contradiction(document)
    if problem:
        fail(where, problem)


def _writer(document: Mapping[str, Any]) -> str:
    """Return which gridwise_py wrote a document; the document may be malformed."""
    try:
        context = document["context"]
        return f"gridwise_py {context['versions']['gridwise_py']!s:.40} ({context['time']!s:.40})"
    except (LookupError, TypeError):
        return "an earlier gridwise_py"


def check_part(value: Any, part: str, name: str) -> None:
    """Check a value against a definition of the schema, such as ``"calibration"``; raise BadResultsFile."""
    where, problem = _schema_problem(value, part)
    if problem:
        raise BadResultsFile(f"{name}: {where}: {problem}")


def _schema_problem(value: Any, part: str | None, validator: Validator | None = None) -> tuple[str, str]:
    """Return where and how a value violates the schema; two empty texts if it does not."""
    error = first_error(validator or _validator(part), value)
    if error is None:
        return "", ""
    return problem_of(error)


def remembering_validator() -> Validator:
    """Return a validator of whole documents for `check_document`, which remembers what was right in earlier ones.

    It keeps the texts of what it checked: let it go after some tens of MiB.
    """
    return quick_validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")), remembers=True)


@lru_cache(maxsize=4)
def _validator(part: str | None) -> Validator:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    if part is not None:
        schema = {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    return quick_validator(schema)


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
