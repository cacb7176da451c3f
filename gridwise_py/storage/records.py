"""Frozen dataclasses for JSON objects; reading and writing again changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

_KEY = "json key"
_LEFT_OUT = "left out"
_MAY_LACK = "may lack"


def key(name: str | None) -> Mapping[str, str | None]:
    """Return the metadata of a dataclass field that has another name in JSON.

    The name is None where it is the object's key in a mapping.
    """
    return {_KEY: name}


def left_out(default: Any = None) -> Any:
    """Return a dataclass field that is written only if it differs from its default."""
    return field(default=default, metadata={_LEFT_OUT: True})


def may_lack(default: Any = None) -> Any:
    """Return a dataclass field that is always written, and that older files may lack."""
    return field(default=default, metadata={_MAY_LACK: True})


@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object. The types of a subclass's fields say how their values are read and written.

    Values are not checked here, but earlier, by the schema of the class (`schemas.schema_of`). A file must have each
    field that is not made by `left_out` or `may_lack`, also those with a default.

    Attributes
    ----------
    unknown : mapping
        Keys of the object that are not fields.
    absent : frozenset of str
        Fields that the object lacked. While they have their defaults, they are not written.
    """

    unknown: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    absent: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], **given: Any) -> Self:
        """Return the record of a JSON object; `given` are values of fields that it lacks.

        Raises
        ------
        TypeError
            If a field without a default is missing.
        """
        form = _form(cls)
        values: dict[str, Any] = dict(given)
        absent: list[str] = []
        for one in form.fields:
            if one.key in data:
                value = data[one.key]
                values[one.name] = value if one.read is None else one.read(value)
            else:
                absent.append(one.name)
        if absent:
            values["absent"] = frozenset(absent)
        if len(form.fields) - len(absent) < len(data):
            values["unknown"] = {name: value for name, value in data.items() if name not in form.keys}
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        data: dict[str, Any] = {}
        for one in _form(type(self)).fields:
            value = getattr(self, one.name)
            if (one.left_out or one.name in self.absent) and value == one.default:
                continue
            data[one.key] = value if one.write is None else one.write(value)
        return {**data, **self.unknown}


# ---- how the fields of a class are read and written

Convert = Callable[[Any], Any] | None


@dataclass(frozen=True)
class FieldInFile:
    """A field of a record: its name, key and type, and whether a file may lack it."""

    name: str
    key: str
    hint: Any
    default: Any
    left_out: bool
    may_lack: bool
    read: Convert
    write: Convert


@dataclass(frozen=True)
class _Form:
    fields: tuple[FieldInFile, ...]
    keys: frozenset[str]


def fields_in_file(cls: type[Record]) -> tuple[FieldInFile, ...]:
    """Return the fields of a record that are keys in a file, in the order in which they are written."""
    return _form(cls).fields


@cache
def _form(cls: type[Record]) -> _Form:
    hints, limited = get_type_hints(cls), get_type_hints(cls, include_extras=True)
    found: list[FieldInFile] = []
    for one in fields(cls):
        name = one.metadata.get(_KEY, one.name)
        if name is None or one.name in ("unknown", "absent"):
            continue
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        is_left_out = _LEFT_OUT in one.metadata
        read, write = _conversions(hints[one.name])
        found.append(
            FieldInFile(
                name=one.name, key=name, hint=limited[one.name], default=default, left_out=is_left_out,
                may_lack=is_left_out or _MAY_LACK in one.metadata, read=read, write=write,
            )
        )  # fmt: skip
    return _Form(tuple(found), frozenset(one.key for one in found))


def _conversions(hint: Any) -> tuple[Convert, Convert]:
    """Return the functions that read and write values of a type; None if the values need no conversion."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        kinds = [kind for kind in args if kind is not NoneType]
        read, write = _conversions(kinds[0]) if len(kinds) == 1 else (None, None)
        return _unless_none(read), _unless_none(write)
    if origin is tuple:
        read, write = _conversions(args[0])
        return _each(tuple, read), _each(list, write)
    if origin is Mapping:
        if isinstance(args[1], type) and issubclass(args[1], Record):
            return _records_by_name(args[1]), lambda items: {name: item.to_json() for name, item in items.items()}
        return None, dict
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json, hint.to_json
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint, lambda member: member.value
    return None, None


def _unless_none(convert: Convert) -> Convert:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _each(container: Callable[[Any], Any], convert: Convert) -> Convert:
    return container if convert is None else lambda items: container([convert(item) for item in items])


def _records_by_name(cls: type[Record]) -> Convert:
    named = [one.name for one in fields(cls) if one.metadata.get(_KEY, "") is None]

    def read(items: Mapping[str, Any]) -> dict[str, Record]:
        return {name: cls.from_json(item, **dict.fromkeys(named, name)) for name, item in items.items()}

    return read
