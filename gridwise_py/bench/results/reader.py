"""Reads results files, and reports the place of an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

from ...errors import BadResultsFile
from .browser_document import results_of_page
from .browser_file import BROWSER_SCHEMA, check_browser_file, with_integers
from .model import Results
from .schema import check_document
from .validator import Validator

__all__ = ["LARGEST", "SMALLEST", "content_of", "document_of", "parse", "parse_json", "read_results"]

#: Beyond these, sums and quotients of a few numbers could overflow or underflow.
LARGEST = 1e40
SMALLEST = 1e-40

# Strings are skipped: only a number or a word outside of them can be wrong.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*')


def read_results(path: str | Path) -> Results:
    """Return a results file, checked against the schema.

    The file that a page of `gridwise browser` saved is one, too: its timestamps are judged now.

    Raises
    ------
    BadResultsFile
        If it is truncated, from another tool, of another schema version, or has an impossible value; the message says
        where.
    """
    path = Path(path)
    return parse(content_of(path), path.name)


def content_of(path: Path) -> bytes:
    """Return the content of a file; raise BadResultsFile if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadResultsFile(f"{path.name}: cannot be read: {error.strerror or error}") from error


def parse(content: bytes, name: str) -> Results:
    """Return the content of a results file; see `read_results`."""
    return document_of(parse_json(content, name), name)


def document_of(data: Any, name: str, validator: Validator | None = None) -> Results:
    """Return JSON data as a results document; raise BadResultsFile if it is not one.

    The file that a page of `gridwise browser` saves becomes one: its timestamps are judged here. For many files see
    `remembering_validator`.
    """
    if isinstance(data, dict) and cast(dict[str, Any], data).get("schema") == BROWSER_SCHEMA:
        found = with_integers(data)
        check_browser_file(found, name)
        document = results_of_page(found)
        check_document(document.to_json(), name)
        return document
    check_document(data, name, validator)
    return Results.from_json(cast(dict[str, Any], data))


def parse_json(content: bytes, name: str) -> Any:
    """Return the value of a JSON file, whose numbers must be within the limits of results files.

    Raises
    ------
    BadResultsFile
        With the line, if it is not JSON, is nested too deeply, or has NaN, infinities or numbers beyond the limits.
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
        if not (SMALLEST <= abs(value) <= LARGEST or value == 0):
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
        # In a truncated file the error is at the end of the text; an open string is reported where it begins.
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
            else f"numbers of a results file are 0, or between {SMALLEST:g} and {LARGEST:g}"
        )
        raise BadResultsFile(f"{name}: {_place(text, at)}: {word} is not a valid number here; {why}")
    return document
