"""Reads results files, and says where one is wrong."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from ..errors import BadResultsFile
from .results import SCHEMA, SCHEMA_VERSION
from .results_upgrade import from_version_1
from .schema_validator import quick_validator

__all__ = ["SCHEMA_FILE", "check_document", "check_part", "content_of", "parse", "parse_json", "read", "read_results"]

SCHEMA_FILE = Path(__file__).resolve().parent / "schema" / "gridwise.bench.schema.json"

# Beyond these sums and quotients of a few numbers would leave the range of floats.
_LARGEST = 1e40
_SMALLEST = 1e-40
# Rates are made of these, and of their intervals.
_TIMED = ("gpu_span", "cpu_wall")

# Strings are skipped: only a number or a word outside of them can be wrong.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*')


def read_results(path: str | Path) -> dict[str, Any]:
    """Return a results file as JSON data, checked against the schema.

    Raises
    ------
    BadResultsFile
        If it is cut off, of another tool, of a newer schema, or has a value that cannot be; the message says where.
    """
    return read(Path(path))


def read(path: Path) -> dict[str, Any]:
    """Read and check a file; see `read_results`."""
    return parse(content_of(path), path.name)


def content_of(path: Path) -> bytes:
    """Return the content of a file; raise BadResultsFile where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadResultsFile(f"{path.name}: cannot be read: {error.strerror or error}") from error


def parse(content: bytes, name: str) -> dict[str, Any]:
    """Check the content of a file; see `read_results`."""
    return check_document(parse_json(content, name), name)


def parse_json(content: bytes, name: str) -> Any:
    """Return the value of a JSON file whose numbers can be computed with.

    Raises
    ------
    BadResultsFile
        With the line, if it is no JSON, nested too deeply, or has NaN, infinities or numbers that are none of
        measurements.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadResultsFile(f"{name}: byte {error.start} is not UTF-8: no results file of gridwise bench") from error
    return _parse(name, text)


def _place(text: str, position: int) -> str:
    line_begin = text.rfind("\n", 0, position) + 1
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - line_begin + 1}"


def _parse(name: str, text: str) -> Any:
    bad: list[str] = []

    def number(word: str) -> float:
        value = float(word)
        if not (_SMALLEST <= abs(value) <= _LARGEST or value == 0):
            bad.append(word)
        return value

    def integer(word: str) -> int:
        if len(word) > 41:
            bad.append(word)
            return 0
        return int(word)

    def constant(word: str) -> float:
        bad.append(word)
        return 0.0

    try:
        document = json.loads(text, parse_float=number, parse_int=integer, parse_constant=constant)
    except json.JSONDecodeError as error:
        # Whatever the parser missed, it missed it where the text ends; an open string is reported where it begins.
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        what = "the file is empty" if not text.strip() else "the file is cut off" if cut else "this is not JSON"
        place = _place(text, error.pos)
        remedy = "; measure again, or copy it again" if cut else ""
        raise BadResultsFile(f"{name}: {place}: {what} ({error.msg}){remedy}") from error
    except RecursionError as error:
        raise BadResultsFile(f"{name}: nested too deeply: no results file of gridwise bench") from error
    if bad:
        at = next(token.start() for token in _TOKEN.finditer(text) if token[0] == bad[0])
        word = bad[0] if len(bad[0]) <= 40 else f"{bad[0][:20]}… ({len(bad[0]):,} characters)"
        why = (
            "a results file has null for what is unknown"
            if bad[0].strip("-") in ("NaN", "Infinity")
            else f"numbers of a results file are 0, or between {_SMALLEST:g} and {_LARGEST:g}"
        )
        raise BadResultsFile(f"{name}: {_place(text, at)}: {word} is no number of a measurement; {why}")
    return document


def check_document(document: Any, name: str) -> dict[str, Any]:
    """Return a document in the newest version of the schema; raise BadResultsFile where it is not one."""

    def fail(where: str, problem: str) -> NoReturn:
        raise BadResultsFile(f"{name}: {where}: {problem}")

    other_tool = f"this is no results file of gridwise bench, whose 'schema' is {SCHEMA!r}"
    if not isinstance(document, dict):
        fail("$", f"a {type(document).__name__}, not an object: {other_tool}")
    if document.get("schema") != SCHEMA:
        found = repr(document["schema"])[:40] if "schema" in document else "missing"
        fail("$.schema", f"{found}: {other_tool}")
    version = document.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        fail("$.schema_version", f"{reprlib.repr(version)} is no version; this gridwise_py reads 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        fail(
            "$.schema_version",
            f"{version} is newer than {SCHEMA_VERSION}, the newest that this gridwise_py reads; update gridwise_py",
        )
    if version == 1:
        try:
            document = from_version_1(document)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            fail("$", f"not a results file of version 1: {type(error).__name__} {error}")
    where, problem = _schema_problem(document, None)
    if not problem:
        where, problem = _contradiction(document)
    if problem:
        fail(where, problem)
    return document


def check_part(value: Any, part: str, name: str) -> None:
    """Check a value against a definition of the schema, such as ``"calibration"``; raise BadResultsFile."""
    where, problem = _schema_problem(value, part)
    if problem:
        raise BadResultsFile(f"{name}: {where}: {problem}")


def _schema_problem(value: Any, part: str | None) -> tuple[str, str]:
    """Return where a value is not as the schema says, and how; two empty texts where it is."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator(part).iter_errors(value))
    if error is None:
        return "", ""
    return error.json_path, error.message if len(error.message) < 200 else f"{error.message[:200]}…"


@lru_cache(maxsize=4)
def _validator(part: str | None) -> Any:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    if part is not None:
        schema = {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    return quick_validator(schema)


def _contradiction(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return where values contradict each other, which a schema cannot say, and how."""
    for i, entry in enumerate(document["results"]):
        at = f"$.results[{i}]"
        if entry["ticks"] is not None and document["ticks_file"] is None:
            return f"{at}.ticks", "the timestamps are in $.ticks_file, which is null"
        kernels = len(entry["kernels"])
        counts = {len(sample.get("ticks") or ()) for sample in entry["samples"]}
        if counts - {0} and counts != {kernels}:
            found = " and ".join(map(str, sorted(counts)))
            return f"{at}.samples", f"samples have timestamps of {found} kernels, but there are {kernels} kernels"
        for name in _TIMED:
            summary = (entry["whole"]["series"].get(name) or {}).get("summary")
            if summary and summary["ci_low_ns"] > summary["ci_high_ns"]:
                return f"{at}.whole.series.{name}.summary", "the interval ends before it begins"
    return "", ""
