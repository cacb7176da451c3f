"""Reads results files, and says where one is wrong."""

from __future__ import annotations

import json
import math
import re
import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from ..errors import BadResultsFile
from .results import SCHEMA, SCHEMA_VERSION

__all__ = ["SCHEMA_FILE", "check_document", "content_of", "parse", "read"]

SCHEMA_FILE = Path(__file__).resolve().parent / "schema" / "gridwise.bench.schema.json"

# Strings are skipped: only a number or a word outside of them can be wrong.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*')


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
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadResultsFile(f"{name}: byte {error.start} is not UTF-8: no results file of gridwise bench") from error
    return check_document(_parse(name, text), name)


def _place(text: str, position: int) -> str:
    line_begin = text.rfind("\n", 0, position) + 1
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - line_begin + 1}"


def _parse(name: str, text: str) -> Any:
    bad: list[str] = []

    def number(word: str) -> float:
        value = float(word)
        if not math.isfinite(value):
            bad.append(word)
        return value

    def constant(word: str) -> float:
        bad.append(word)
        return 0.0

    try:
        document = json.loads(text, parse_float=number, parse_constant=constant)
    except json.JSONDecodeError as error:
        # Whatever the parser missed, it missed it where the text ends; an open string is reported where it begins.
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        what = "the file is empty" if not text.strip() else "the file is cut off" if cut else "this is not JSON"
        place = _place(text, error.pos)
        remedy = "; measure again, or copy it again" if cut else ""
        raise BadResultsFile(f"{name}: {place}: {what} ({error.msg}){remedy}") from error
    except RecursionError as error:
        raise BadResultsFile(f"{name}: nested too deeply: no results file of gridwise bench") from error
    except ValueError as error:  # an integer of thousands of digits
        raise BadResultsFile(f"{name}: a number cannot be read: {error}") from error
    if bad:
        at = next(token.start() for token in _TOKEN.finditer(text) if token[0] == bad[0])
        raise BadResultsFile(
            f"{name}: {_place(text, at)}: {bad[0]} is no time and no rate; a results file has null for what is unknown"
        )
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
            f"{version} is newer than {SCHEMA_VERSION}, the newest that this gridwise_py reads; update it: "
            f"pip install --upgrade gridwise-py",
        )
    if version == 1:
        from .results_upgrade import from_version_1

        try:
            document = from_version_1(document)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            fail("$", f"not a results file of version 1: {type(error).__name__} {error}")
    error = _first_error(document)
    if error is not None:
        message = error.message if len(error.message) < 200 else f"{error.message[:200]}…"
        fail(error.json_path, message)
    return document


def _first_error(document: dict[str, Any]) -> Any:
    from jsonschema.exceptions import best_match

    return best_match(_validator().iter_errors(document))


@lru_cache(maxsize=1)
def _validator() -> Any:
    import jsonschema

    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    items = _ItemsCheck(sorted(set(_numbers(schema))))
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"items": items})(schema)


def _numbers(schema: Any) -> Iterator[float]:
    """Yield all numbers that a schema names: the bounds that it compares values with."""
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from _numbers(part)
    elif isinstance(schema, int | float) and not isinstance(schema, bool):
        yield schema


@dataclass(frozen=True)
class _ItemsCheck:
    """The keyword «items»: of the items of a long array that the schema cannot tell apart it checks the first.

    A file has thousands of samples of one form, and jsonschema takes 0.3 ms for each.
    """

    bounds: Sequence[float]
    long_array: int = 30

    def __call__(self, validator: Any, items: Any, array: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(array, "array"):
            return
        right: set[Hashable] = set()
        for i, item in enumerate(array):
            form = self._form(item) if len(array) >= self.long_array else i
            if form not in right:
                errors = list(validator.descend(item, items, path=i))
                yield from errors
                if not errors:
                    right.add(form)

    def _form(self, value: Any) -> Hashable:
        """Return all of a value that the schema sees: of a number its kind, and its place among the bounds."""
        if isinstance(value, dict):
            return tuple((key, self._form(item)) for key, item in value.items())
        if isinstance(value, list):
            return len(value), frozenset(map(self._form, value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return type(value), value
        is_whole = isinstance(value, int) or value.is_integer()
        return is_whole, bisect_left(self.bounds, value), bisect_right(self.bounds, value)
