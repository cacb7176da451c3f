"""The JSON Schema of a `Record`, made from the types of its fields.

A type says what JSON value stands for it, and `Limits` what the type does not say: ``Annotated[float,
Limits(at_least=0)]``. Descriptions are those of the docstring's section "Attributes".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from .records import Record, fields_in_file

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


@dataclass(frozen=True)
class Limits:
    """What values of a type a file may have.

    Attributes
    ----------
    at_least, at_most, above, below : float, optional
        Of a number.
    pattern : str, optional
        Of a text.
    fewest, most : int, optional
        Characters of a text, items of a list, keys of an object.
    one_of : type of Enum, optional
        The values that a text may have, where it is read as a text.
    needs : tuple of str
        Keys that an object must have.
    """

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    pattern: str | None = None
    fewest: int | None = None
    most: int | None = None
    one_of: type[Enum] | None = None
    needs: tuple[str, ...] = ()

    def keywords(self, kind: str) -> dict[str, Any]:
        """Return the keywords of JSON Schema, for values of a kind: ``"number"``, ``"string"``, …"""
        size = _SIZES.get(kind, "")
        found = {
            "minimum": self.at_least, "maximum": self.at_most,
            "exclusiveMinimum": self.above, "exclusiveMaximum": self.below,
            "pattern": self.pattern, f"min{size}": self.fewest, f"max{size}": self.most,
            "enum": None if self.one_of is None else [member.value for member in self.one_of],
            "required": list(self.needs) or None,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}


def schema_of(cls: type[Record], title: str | None = None, name: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a record; keys that are not fields are allowed.

    Parameters
    ----------
    cls : type of Record
    title : str, optional
    name : str, optional
        As a URN.
    """
    parts: dict[str, Any] = {}
    head = {"$schema": _DRAFT, "$id": name, "title": title}
    top = _object(cls, parts)
    return {**{key: value for key, value in head.items() if value is not None}, **top, "$defs": parts}


def _object(cls: type[Record], parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a record, and add those of the records in it to `parts`."""
    summary, described = _descriptions(cls)
    listed = fields_in_file(cls)
    properties: dict[str, Any] = {}
    for one in listed:
        properties[one.key] = _value(one.hint, parts)
        if one.name in described:
            properties[one.key]["description"] = described[one.name]
    needed = [one.key for one in listed if not one.may_lack]
    required = {"required": needed} if needed else {}
    return {"description": summary, "type": "object", **required, "properties": properties}


def _value(hint: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the values of a type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        found = _value(args[0], parts)
        kinds: str | list[str] = found["type"]
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            found |= cast(Limits, args[1]).keywords(kind)
        return found
    if origin in (Union, UnionType):
        return _any_of([_value(kind, parts) for kind in args])
    if origin is Literal:
        return {"enum": list(args)}
    if origin is tuple:
        fixed = {} if args[-1] is Ellipsis else {"minItems": len(args), "maxItems": len(args)}
        return {"type": "array", "items": _value(args[0], parts), **fixed}
    if origin is Mapping:
        names, values = (_value(kind, parts) for kind in args)
        limited = {"propertyNames": names} if names != {"type": "string"} else {}
        return {"type": "object", **limited, **({"additionalProperties": values} if values else {})}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if isinstance(hint, type) and issubclass(hint, Record):
        if hint.__name__ not in parts:
            parts[hint.__name__] = {}  # a record that contains itself ends here
            parts[hint.__name__] |= _object(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if hint is Any:
        return {}
    raise TypeError(f"{hint} has no JSON Schema")


def _any_of(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of what one of some schemas allows, as short as it can be."""
    if {} in kinds:
        return {}
    null = {"type": "null"} in kinds
    others = [kind for kind in kinds if kind != {"type": "null"}]
    if len(others) == 1 and set(others[0]) == {"enum"}:
        return {"enum": [*others[0]["enum"], None]}
    # Other keywords than "enum" do not concern null.
    if len(others) == 1 and "type" in others[0] and "enum" not in others[0]:
        return others[0] | {"type": [others[0]["type"], "null"]} if null else others[0]
    if all(set(kind) == {"type"} for kind in kinds):
        return {"type": [kind["type"] for kind in kinds]}
    return {"anyOf": kinds}


# ---- descriptions


def _descriptions(cls: type[Record]) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what it says about each field."""
    text = inspect.cleandoc(cls.__doc__ or "")
    summary, _, rest = text.partition("\n\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in rest.partition("----------\n")[2].splitlines():
        if not line.startswith(" "):
            names = re.split(r",\s*", line.partition(" : ")[0])
        else:
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return _in_json(summary), {name: _in_json(described) for name, described in found.items()}


def _in_json(text: str) -> str:
    words = {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"\b(None|True|False)\b", lambda word: words[word[0]], " ".join(text.split()))
