"""Checks JSON values against schemas that `schemas.schema_of` makes, and says what jsonschema would say.

It knows the keywords that these schemas have and no others; a file has thousands of samples, each of which takes
jsonschema 0.3 ms.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from .records import Record
from .schemas import schema_of

#: Where in the value, and what is wrong there.
Problem: TypeAlias = tuple[str, str]
_Check: TypeAlias = Callable[[Any], Problem | None]

#: Limits of values of a kind: how the value, or its length, is compared, and what is said of another one.
_LIMITS: dict[str, tuple[str, Callable[[Any, Any], object], str]] = {
    "minimum": ("number", operator.ge, "is less than the minimum of {limit!r}"),
    "maximum": ("number", operator.le, "is greater than the maximum of {limit!r}"),
    "exclusiveMinimum": ("number", operator.gt, "is less than or equal to the minimum of {limit!r}"),
    "exclusiveMaximum": ("number", operator.lt, "is greater than or equal to the maximum of {limit!r}"),
    "pattern": ("string", lambda value, limit: re.search(str(limit), value), "does not match {limit!r}"),
    "minLength": ("string", lambda value, limit: len(value) >= limit, "is too short"),
    "maxLength": ("string", lambda value, limit: len(value) <= limit, "is too long"),
    "minItems": ("array", lambda value, limit: len(value) >= limit, "is too short"),
    "maxItems": ("array", lambda value, limit: len(value) <= limit, "is too long"),
    "minProperties": ("object", lambda value, limit: len(value) >= limit, "does not have enough properties"),
    "maxProperties": ("object", lambda value, limit: len(value) <= limit, "has too many properties"),
}
_NOT_EMPTY = (("minLength", 1), ("minItems", 1), ("minProperties", 1))
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def find_problem(value: Any, cls: type[Record]) -> Problem | None:
    """Return where and how JSON data violates the schema of a record; None where it does not."""
    found = _check_of(cls)(value)
    if found is None:
        return None
    where, what = found
    return f"${where}", what if len(what) < 200 else f"{what[:200]}…"


@lru_cache(maxsize=16)
def _check_of(cls: type[Record]) -> _Check:
    return compile_check(schema_of(cls))


def compile_check(schema: Mapping[str, Any]) -> _Check:
    """Return a function that returns the first violation of a schema in a value: what contains it comes first."""
    parts: dict[str, _Check] = {}

    def compiled(schema: Mapping[str, Any]) -> _Check:
        if "$ref" in schema:
            return lambda value: parts[schema["$ref"]](value)
        if "anyOf" in schema:
            return _any_of([compiled(one) for one in schema["anyOf"]])
        tests, required = list(_tests(schema)), schema.get("required", ())
        known = {key: compiled(one) for key, one in schema.get("properties", {}).items()}
        item, other, name = (
            compiled(schema[word]) if word in schema else _accept
            for word in ("items", "additionalProperties", "propertyNames")
        )

        def check(value: Any) -> Problem | None:
            for is_right, said in tests:
                if not is_right(value):
                    return "", f"{value!r} {said}"
            if isinstance(value, list) and item is not _accept:
                for i, one in enumerate(cast(list[Any], value)):
                    if (found := item(one)) is not None:
                        return f"[{i}]{found[0]}", found[1]
            if isinstance(value, dict):
                value = cast(dict[str, Any], value)
                if missing := [key for key in required if key not in value]:
                    return "", f"{missing[0]!r} is a required property"
                for key, one in value.items():
                    if (found := name(key)) is not None:
                        return found
                    if (found := known.get(key, other)(one)) is not None:
                        return f"{_place(key)}{found[0]}", found[1]
            return None

        return check

    for name, part in schema.get("$defs", {}).items():
        parts[f"#/$defs/{name}"] = compiled(part)
    return compiled(schema)


def _accept(value: Any) -> None:
    """Find nothing."""


def _place(key: str) -> str:
    return f".{key}" if re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", key) else f"[{key!r}]"


def _any_of(checks: Sequence[_Check]) -> _Check:
    def check(value: Any) -> Problem | None:
        found = [one(value) for one in checks]
        # What lies deepest is of the alternative that was meant.
        return None if None in found else max(filter(None, found), key=lambda problem: len(problem[0]))

    return check


def _tests(schema: Mapping[str, Any]) -> Iterator[tuple[Callable[[Any], bool], str]]:
    """Yield what a value itself must be, and what is said of another one."""
    if "type" in schema:
        wanted: list[str] = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        yield _is_of(wanted), f"is not of type {', '.join(map(repr, wanted))}"
    if "enum" in schema:
        allowed = schema["enum"]
        yield lambda value: value in allowed and not isinstance(value, bool), f"is not one of {allowed!r}"
    for keyword in schema.keys() & _LIMITS.keys():
        (kind, compare, said), limit = _LIMITS[keyword], schema[keyword]
        # In the words of jsonschema.
        said = "should be non-empty" if (keyword, limit) in _NOT_EMPTY else said.format(limit=limit)
        yield _is_within(_TYPES[kind], compare, limit), said


def _is_of(wanted: Sequence[str]) -> Callable[[Any], bool]:
    types = {one for kind in wanted for one in _TYPES[kind]}
    # JSON does not tell 2.0 from 2.
    takes_whole = "integer" in wanted
    return lambda value: type(value) in types or (takes_whole and type(value) is float and value.is_integer())


def _is_within(types: tuple[type, ...], compare: Callable[[Any, Any], object], limit: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) not in types or bool(compare(value, limit))
