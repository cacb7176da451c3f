"""A validator of JSON Schema that is quick on files of many numbers: it says what jsonschema says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["quick_validator"]

# What a plain schema may say; all other keywords are for jsonschema.
_PLAIN = {"type", "minimum", "description"}
_TYPES = {"number": (int, float), "integer": (int,), "null": (type(None),), "string": (str,)}


def quick_validator(schema: Mapping[str, Any]) -> Any:
    """Return a validator of Draft 2020-12, with two short cuts.

    References within the schema are resolved once, not at every value. Numbers and texts are looked at directly, and
    those of an array in one go; what that does not find in order is left to jsonschema, which says what is wrong.

    Parameters
    ----------
    schema : mapping
        References in it are to its own ``$defs``, and not circular.
    """
    import jsonschema

    general = jsonschema.Draft202012Validator

    def items(validator: Any, of_items: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not (isinstance(instance, list) and _surely_valid(of_items, instance)):
            yield from general.VALIDATORS["items"](validator, of_items, instance, schema)

    def properties(validator: Any, of_names: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            of_names = {
                name: part
                for name, part in of_names.items()
                if name in instance and not _surely_valid(part, (instance[name],))
            }
        yield from general.VALIDATORS["properties"](validator, of_names, instance, schema)

    quick = jsonschema.validators.extend(general, {"items": items, "properties": properties})
    return quick(_resolved(schema, schema.get("$defs", {})))


def _resolved(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a part of a schema with what its references stand for."""
    if isinstance(part, list):
        return [_resolved(one, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: _resolved(value, definitions) for key, value in part.items() if key not in ("$defs", "$ref")}
    if "$ref" in part:
        referred = _resolved(definitions[part["$ref"].removeprefix("#/$defs/")], definitions)
        # A keyword on both sides holds twice.
        both = (made.keys() & referred.keys()) - {"description"}
        made = {"allOf": [referred, made]} if both else {**referred, **made}
    return made


def _surely_valid(part: Any, values: Sequence[Any]) -> bool:
    """Whether all of the values surely are numbers, texts and nulls that a plain schema allows."""
    if not (isinstance(part, dict) and part.keys() <= _PLAIN):
        return False
    names: Sequence[str] = part.get("type", ())
    allowed = {names} if isinstance(names, str) else set(names)
    # Types and not subclasses: a bool is no number. A float may be an integer, which jsonschema decides.
    kinds = {kind for name in allowed & _TYPES.keys() for kind in _TYPES[name]}
    if not set(map(type, values)) <= kinds:
        return False
    least = part.get("minimum")
    return least is None or all(value >= least for value in values if isinstance(value, (int, float)))
