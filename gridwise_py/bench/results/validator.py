"""A JSON Schema validator with the results of jsonschema, which does not check every item of a long array."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["quick_validator"]


def quick_validator(schema: Mapping[str, Any]) -> Any:
    """Return a jsonschema validator of draft 2020-12 that checks only one of all similar array items."""
    import jsonschema

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
    """The keyword "items": among items of a long array that the schema cannot distinguish, it checks the first.

    A file has thousands of similar samples, and jsonschema takes 0.3 ms for each.
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
        """Return what the schema distinguishes in a value: of a number its type, and its place among the bounds."""
        if isinstance(value, dict):
            return tuple((key, self._form(item)) for key, item in value.items())
        if isinstance(value, list):
            return len(value), frozenset(map(self._form, value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return type(value), value
        is_whole = isinstance(value, int) or value.is_integer()
        return is_whole, bisect_left(self.bounds, value), bisect_right(self.bounds, value)
