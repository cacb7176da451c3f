"""A JSON Schema validator with the results of jsonschema, which does not check every item of a long array."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from jsonschema import ValidationError


class Validator(Protocol):
    """What is called of a jsonschema validator, whose own annotations leave most types out."""

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]: ...
    def descend(self, instance: Any, schema: Any, path: Any = None) -> Iterator[ValidationError]: ...
    def is_type(self, instance: Any, type: str) -> bool: ...


def quick_validator(schema: Mapping[str, Any], *, remembers: bool = False) -> Validator:
    """Return a jsonschema validator of draft 2020-12 that checks only one of all similar array items.

    With `remembers` that holds for all values that it is given, one after the other, and for short arrays: it is for
    many documents that differ in numbers.
    """
    from jsonschema import validators

    bounds = sorted(set(_numbers(schema)))
    items = _ItemsCheck(bounds, 0, {}) if remembers else _ItemsCheck(bounds)
    # `extend` has no types in typeshed.
    extended = cast(Any, validators).extend(validators.Draft202012Validator, {"items": items})
    return cast(Validator, extended(schema))


def first_error(validator: Validator, value: Any) -> ValidationError | None:
    """Return the error of a value that says most; None where there is none."""
    from jsonschema import exceptions

    # `best_match` has no type of its result in typeshed.
    return cast(Any, exceptions).best_match(validator.iter_errors(value))


def problem_of(error: ValidationError) -> tuple[str, str]:
    """Return where and how a value violates a schema."""
    return error.json_path, error.message if len(error.message) < 200 else f"{error.message[:200]}…"


def _numbers(schema: Any) -> Iterator[float]:
    """Yield all numbers that a schema names: the bounds that it compares values with."""
    if isinstance(schema, Mapping):
        for part in cast(Mapping[str, Any], schema).values():
            yield from _numbers(part)
    elif isinstance(schema, list):
        for part in cast(list[Any], schema):
            yield from _numbers(part)
    elif isinstance(schema, int | float) and not isinstance(schema, bool):
        yield schema


#: What a validator remembers of the items of one schema.
_MOST_FORMS = 10_000


@dataclass(frozen=True)
class _ItemsCheck:
    """The keyword "items": among items of a long array that the schema cannot distinguish, it checks the first.

    A file has thousands of similar samples, and jsonschema takes 0.3 ms for each.
    """

    bounds: Sequence[float]
    long_array: int = 30
    #: Forms that were right, by the schema of the items; None where each array begins anew.
    remembered: dict[int, set[Hashable]] | None = None

    def __call__(self, validator: Validator, items: Any, array: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(array, "array"):
            return
        right: set[Hashable] = set() if self.remembered is None else self.remembered.setdefault(id(items), set())
        if len(right) > _MOST_FORMS:
            right.clear()
        for i, item in enumerate(array):
            form = self._form(item) if len(array) >= self.long_array else i
            if form not in right:
                errors = list(validator.descend(item, items, path=i))
                yield from errors
                if not errors:
                    right.add(form)

    def _form(self, value: Any) -> Hashable:
        """Return what the schema distinguishes in a value: of a number its type, and its place among the bounds."""
        kind = type(cast(object, value))  # of JSON data: exactly one of these, and numbers are the most
        if kind is float or kind is int:
            bounds = self.bounds
            return kind is int or value.is_integer(), bisect_left(bounds, value), bisect_right(bounds, value)
        form = self._form
        if kind is dict:
            return tuple([(key, form(item)) for key, item in cast(dict[str, Any], value).items()])
        if kind is list:
            return len(value), frozenset(map(form, cast(list[Any], value)))
        return kind, value
