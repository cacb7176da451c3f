"""What the text of a user's own kernel declares: its bindings, and how a uniform's value becomes words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..types.datatype import STORAGE_DATATYPES, Datatype
from ..types.wgsl_text import Declaration, declarations, integer_value

__all__ = ["Uniform", "Variable", "variables"]

_ACCESS: dict[tuple[str, ...], str] = {
    ("storage",): "read",
    ("storage", "read"): "read",
    ("storage", "read_write"): "read_write",
    ("uniform",): "uniform",
}
_SHORT = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}
_SCALARS = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}


@dataclass(frozen=True)
class Uniform:
    """A type of the uniform address space: a number, a vector of them, or a structure of both.

    Attributes
    ----------
    name : str
        The type as it stands in the text.
    scalar : str or None
        ``"f32"``, ``"i32"`` or ``"u32"``; None for a structure.
    width : int
        Numbers of a vector; 1 for a single one.
    members : tuple of (str, Uniform)
        Of a structure.
    """

    name: str
    scalar: str | None = None
    width: int = 1
    members: tuple[tuple[str, Uniform], ...] = ()

    @property
    def align_words(self) -> int:
        """The multiple of words at which it may begin."""
        if self.scalar is None:
            return max(member.align_words for _, member in self.members)
        return 4 if self.width == 3 else self.width

    def words(self, value: Any, what: str) -> tuple[int, ...]:
        """Return a value as 32-bit words, laid out as WGSL lays it out.

        Parameters
        ----------
        value : number, sequence of numbers, or mapping from the name of a member to its value
        what : str
            What messages call it.

        Raises
        ------
        DatatypeError
            If the value is not one of this type.
        """
        if self.scalar is None:
            return self._structure(value, what)
        dtype = np.dtype(_SCALARS[self.scalar])
        try:
            given = np.asarray(value)
        except ValueError:  # sequences of several lengths
            given = np.empty((), dtype=object)
        expected = () if self.width == 1 else (self.width,)
        if np.ma.is_masked(value) or given.shape != expected or given.dtype.kind not in "biuf":
            many = "a number" if self.width == 1 else f"{self.width} numbers"
            raise DatatypeError(f"{what} is {value!r:.80}, but it is a uniform of type {self.name}: give {many}")
        with np.errstate(all="ignore"):
            packed = given.astype(dtype)
        exact = packed == given if dtype.kind != "f" else ~np.isinf(packed) | np.isinf(given.astype(np.float64))
        if not np.all(exact):
            raise DatatypeError(f"{what} is {value!r:.80}, which a uniform of type {self.name} cannot hold")
        return tuple(packed.reshape(-1).view(np.uint32).tolist())

    def _structure(self, value: Any, what: str) -> tuple[int, ...]:
        names = [name for name, _ in self.members]
        if not isinstance(value, Mapping) or set(cast(Mapping[str, Any], value)) != set(names):
            raise DatatypeError(
                f"{what} is {value!r:.80}, but it is a structure {self.name}: give a mapping with {', '.join(names)}"
            )
        given = cast(Mapping[str, Any], value)
        words: list[int] = []
        for name, member in self.members:
            words += [0] * (-len(words) % member.align_words)
            words += member.words(given[name], f"{what}[{name!r}]")
        return (*words, *[0] * (-len(words) % self.align_words))


@dataclass(frozen=True)
class Variable:
    """A binding that a text declares.

    Attributes
    ----------
    name : str
    group, binding : int
    access : str
        ``"read"``, ``"read_write"`` or ``"uniform"``; anything else as it stands in the text.
    type : str
    datatype : Datatype or None
        Of the items of an array; None where the declaration does not tell: of a structure, and of pairs of words, which
        may be items of 8 bytes.
    uniform : Uniform or None
        How a uniform's value is laid out; None where this library cannot tell.
    """

    name: str
    group: int
    binding: int
    access: str
    type: str
    datatype: Datatype | None
    uniform: Uniform | None


def variables(text: str) -> dict[str, Variable]:
    """Return the bindings that a text declares, by name.

    Raises
    ------
    ArgumentError
        If the number of one is an expression.
    """
    declared = declarations(text)
    aliases = {each.name: each.type for each in declared if each.kind == "alias"}
    structures = {each.name: each for each in declared if each.kind == "struct"}
    found: dict[str, Variable] = {}
    for each in declared:
        if each.kind != "var" or "binding" not in each.attributes or not each.name:
            continue
        numbers = [integer_value(each.attributes.get(name, "0")) for name in ("group", "binding")]
        if None in numbers:
            raise ArgumentError(
                f"the numbers of var {each.name} are @group({each.attributes.get('group')}) "
                f"@binding({each.attributes['binding']}); write integers, by which the arguments are bound"
            )
        group, binding = numbers
        assert group is not None
        assert binding is not None
        access = _ACCESS.get(each.template, ", ".join(each.template))
        found[each.name] = Variable(
            each.name, group, binding, access, each.type, _datatype(each.type, aliases),
            _uniform(each.type, aliases, structures) if access == "uniform" else None,
        )  # fmt: skip
    return found


def _resolved(kind: str, aliases: Mapping[str, str]) -> str:
    """Return a type without aliases on its outside."""
    for _ in aliases:
        kind = aliases.get(kind, kind)
    return kind


def _vector(kind: str, aliases: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the scalar and the width of a vector or a scalar; None for other types."""
    kind = _resolved(kind, aliases)
    if found := re.fullmatch(r"vec([234])<(\w+),?>", kind):
        return _resolved(found[2], aliases), int(found[1])
    if found := re.fullmatch(r"vec([234])([fiuh])", kind):
        return _SHORT[found[2]], int(found[1])
    return (kind, 1) if re.fullmatch(r"\w+", kind) else None


def _datatype(kind: str, aliases: Mapping[str, str]) -> Datatype | None:
    kind = _resolved(kind, aliases)
    if found := re.fullmatch(r"array<(.+?)(,\w+)?,?>", kind):
        kind = _resolved(found[1], aliases)
    if found := re.fullmatch(r"atomic<(\w+)>", kind):
        kind = _resolved(found[1], aliases)
    vector = _vector(kind, aliases)
    if vector is None or vector == ("u32", 2):
        return None
    return STORAGE_DATATYPES.get(vector[0])


def _uniform(kind: str, aliases: Mapping[str, str], structures: Mapping[str, Declaration]) -> Uniform | None:
    vector = _vector(kind, aliases)
    if vector is not None and vector[0] in _SCALARS:
        return Uniform(kind, *vector)
    structure = structures.get(_resolved(kind, aliases))
    if structure is None:
        return None
    body = "".join(token.text for token in structure.body[1:-1])
    members: list[tuple[str, Uniform]] = []
    for part in filter(None, re.split(r",(?![^<]*>)", body)):
        name, _, of = part.partition(":")
        vector = _vector(of, aliases)
        if not re.fullmatch(r"\w+", name) or vector is None or vector[0] not in _SCALARS:
            return None
        members.append((name, Uniform(of, *vector)))
    return Uniform(kind, members=tuple(members)) if members else None
