"""Reads results files, and reports the place of an error."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, cast

from ...errors import ArgumentError, BadResultsFile
from ...storage.files import read_file
from .browser_document import results_of_page
from .browser_file import page_of
from .browser_model import BROWSER_SCHEMA
from .model import Results
from .schema import check_document
from .tool_document import results_of_tool
from .tool_files import ToolFormat, numbers_run, tool_of, tool_run, unread_tool

#: Beyond these, sums and quotients of a few numbers could overflow or underflow.
LARGEST = 1e40
SMALLEST = 1e-40

# Strings are skipped: only a number or a word outside of them can be wrong.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*')

#: Two of these are a character, one of them is none.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NUMBER_LINE = re.compile(rb"\s*[+-]?[\d.]+([eE][+-]?\d+)?\s*(\n|$)")


def read_results(path: str | Path) -> Results:
    """Return a results file, checked against the schema.

    Also one of ``gridwise browser``, and JSON files of nvbench, google-benchmark, pytest-benchmark and hyperfine.

    Raises
    ------
    BadResultsFile
        If it is truncated, from another tool, of another schema version, or has an impossible value; the message says
        where.
    """
    path = Path(path)
    return parse(content_of(path), path.name, path.parent)


def content_of(path: Path) -> bytes:
    """Return the content of a file; raise BadResultsFile if it cannot be read."""
    try:
        return read_file(path)
    except OSError as error:
        raise BadResultsFile(f"{path.name}: cannot be read: {error.strerror or error}") from error


def parse(content: bytes, name: str, folder: Path | None = None) -> Results:
    """Return the content of a results file, which is in `folder`; see `read_results`."""
    return document_of(parse_json(content, name), name, folder=folder)


def document_of(data: Any, name: str, *, folder: Path | None = None) -> Results:
    """Return JSON data as a results document; raise BadResultsFile if it is not one.

    The file that a page of `gridwise browser` saves becomes one: its timestamps are judged here. So does that of
    another benchmark tool; the samples of nvbench are in files in `folder`.
    """
    if tool_of(data) is not None:
        document = results_of_tool(tool_run(data, name, folder))
        check_document(document.to_json(), name)
        return document
    if isinstance(data, dict) and cast(dict[str, Any], data).get("schema") == BROWSER_SCHEMA:
        document = results_of_page(page_of(cast(dict[str, Any], data), name))
        check_document(document.to_json(), name)
        return document
    check_document(data, name)
    return Results.from_json(cast(dict[str, Any], data))


def parse_json(content: bytes, name: str) -> Any:
    """Return the value of a JSON file, whose numbers must be within the limits of results files.

    Raises
    ------
    BadResultsFile
        With the line, if it is not JSON, is nested too deeply, or has NaN, infinities or numbers beyond the limits.
    """
    try:
        text = content.decode("utf-8-sig")  # programs on Windows begin a file with a mark
    except UnicodeDecodeError as error:
        raise BadResultsFile(f"{name}: byte {error.start} is not UTF-8: no results file of gridwise bench") from error
    return _parse(name, text)


def read_as(
    content: bytes, name: str, form: str | None = None, unit: str | None = None, *, folder: Path | None = None
) -> Results:
    """Return content as a results document: a results file, or what another tool wrote.

    Parameters
    ----------
    content : bytes
    name : str
        Of the file.
    form : str, optional
        A `ToolFormat`, if another tool wrote it; by default, that of the JSON.
    unit : {"ns", "us", "ms", "s"}, optional
        Of numbers on lines.
    folder : Path, optional
        That the file is in.

    Raises
    ------
    ArgumentError
        If numbers have no unit, or something else has one.
    BadResultsFile
        As `read_results`; or if it is of no tool, or of another one than `form`.
    """
    if form == ToolFormat.NUMBERS and unit is None:
        raise ArgumentError("--format numbers: lines do not say their unit; add --unit ns, us, ms or s")
    if form != ToolFormat.NUMBERS and unit is not None:
        raise ArgumentError(f"--unit {unit} is for --format numbers; all other formats say their unit themselves")
    if unit is not None:
        return results_of_tool(numbers_run(content.decode("utf-8-sig", "replace"), name, unit))
    if _NUMBER_LINE.match(content):
        raise BadResultsFile(
            f"{name}: it has numbers on lines, which do not say their unit; add --format numbers and --unit ns, us, ms "
            f"or s"
        )
    data = parse_json(content, name)
    found = tool_of(data)
    if form is not None and found is None:
        known = "nvbench, google-benchmark, pytest-benchmark or hyperfine"
        raise BadResultsFile(f"{name}: this is JSON, but not of {known}: name one of their files")
    if form not in (None, found):
        raise BadResultsFile(f"{name}: a file of {found}, but --format says {form}; leave --format out, or correct it")
    return document_of(data, name, folder=folder)


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

    def integer(word: str) -> float:
        if len(word) > 41:
            bad.append(word)
            return math.inf
        return int(word)

    def constant(word: str) -> float:
        bad.append(word)
        return float(word)  # a reader of another tool's file refuses it where a time should be

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
    is_of_tool = tool_of(document) is not None
    if not is_of_tool and (tool := unread_tool(document)) is not None:
        raise BadResultsFile(
            f"{name}: a file of {tool}, which is not read; print the times of a benchmark, one per line, and import "
            f"them: gridwise import times.txt --format numbers --unit s -o times.json"
        )
    # Other tools write NaN for a statistic of too few samples.
    if bad and not is_of_tool:
        at = next(token.start() for token in _TOKEN.finditer(text) if token[0] == bad[0])
        word = bad[0] if len(bad[0]) <= 40 else f"{bad[0][:20]}… ({len(bad[0]):,} characters)"
        why = (
            "a results file has null for what is unknown"
            if bad[0].strip("-") in ("NaN", "Infinity")
            else f"numbers of a results file are 0, or between {SMALLEST:g} and {LARGEST:g}"
        )
        raise BadResultsFile(f"{name}: {_place(text, at)}: {word} is not a valid number here; {why}")
    surrogate = _SURROGATE.search(text)
    if surrogate is not None:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            place = _place(text, surrogate.start())
            raise BadResultsFile(f"{name}: {place} or later: half of a character, which no file can have") from error
    return document
