"""What the text of a user's own kernel declares: bindings, sizes of types, and how a number becomes words."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, DatatypeError
from ..types.datatype import STORAGE_DATATYPES, Datatype
from ..types.wgsl_text import Declaration, Token, declarations, integer_value

_ACCESS: dict[tuple[str, ...], str] = {
    ("storage",): "read",
    ("storage", "read"): "read",
    ("storage", "read_write"): "read_write",
    ("uniform",): "uniform",
}
_SHORT = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}
_SCALARS = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}
#: Types of overrides, too.
_NUMBERS: Mapping[str, type[np.generic]] = {**_SCALARS, "f16": np.float16, "bool": np.bool_}
_BYTES = {"f16": 2, "bool": 4, "f64": 8, "i64": 8, "u64": 8}
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b, ast.LShift: lambda a, b: a << min(b, 64), ast.RShift: lambda a, b: a >> b,
}  # fmt: skip


def _holds(dtype: Any, given: np.ndarray) -> bool:
    """Whether numbers of a datatype can be what is given: floats rounded, all others exactly."""
    with np.errstate(all="ignore"):
        packed = given.astype(dtype)
        if packed.dtype.kind != "f":
            return bool(np.all(packed == given))
        return bool(np.all(~np.isinf(packed) | np.isinf(given.astype(np.float64))))


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
        if not _holds(dtype, given):
            raise DatatypeError(f"{what} is {value!r:.80}, which a uniform of type {self.name} cannot hold")
        return tuple(given.astype(dtype).reshape(-1).view(np.uint32).tolist())

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
class Extent:
    """How much memory a type takes.

    Attributes
    ----------
    align_bytes : int
    size_bytes : int
        Without the array at its end whose length the text leaves open.
    stride_bytes : int
        From one item of that array to the next; 0 without one.
    """

    align_bytes: int
    size_bytes: int
    stride_bytes: int = 0


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
    extent : Extent or None
        None where this library cannot tell.
    """

    name: str
    group: int
    binding: int
    access: str
    type: str
    datatype: Datatype | None
    uniform: Uniform | None
    extent: Extent | None


class KernelText:
    """A text with the values of its overrides.

    Parameters
    ----------
    text : str
    constants : mapping from str to number
        By the name of an override, or its ``@id``.
    """

    def __init__(self, text: str, constants: Mapping[str, Any]):
        declared = declarations(text)
        self._declared: dict[str, Declaration] = {each.name: each for each in declared if each.name}
        self._constants = constants
        self._aliases = {each.name: each.type for each in declared if each.kind == "alias"}

    def variables(self) -> dict[str, Variable]:
        """Return the bindings that it declares, by name.

        Raises
        ------
        ArgumentError
            If the number of one is an expression.
        """
        found: dict[str, Variable] = {}
        for each in self._declared.values():
            if each.kind != "var" or "binding" not in each.attributes:
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
                each.name, group, binding, access, each.type, self._datatype(each.type),
                self._uniform(each.type) if access == "uniform" else None, self.extent(each.type),
            )  # fmt: skip
        return found

    def check_constants(self, label: str) -> None:
        """Raise where there is no override for a constant, or one that cannot hold its value."""
        overrides = {self._name(each): each.name for each in self._declared.values() if each.kind == "override"}
        for name in self._constants.keys() - overrides.keys():
            told = ", ".join(key if key == own else f"{key} (of {own})" for key, own in overrides.items())
            raise ArgumentError(
                f"{label}: constants has {name!r}, but the WGSL has no such override; there are {told or 'none'}: one "
                f"with @id goes by that number"
            )
        for each in self._declared.values():
            value, kind = self._given(each), self._kind(each)
            if value is not None and kind in _NUMBERS and not _holds(_NUMBERS[kind], np.asarray(float(value))):
                raise DatatypeError(
                    f"{label}: the constant {each.name} is {value!r:.80}, which an override of type {kind} cannot hold"
                )

    def workgroup_size(self, entry_point: str) -> tuple[int, ...]:
        """Return the workgroup size of an entry point; empty where this library cannot tell."""
        entry = self._declared.get(entry_point)
        sizes = (
            [] if entry is None else [self._number(one) for one in _split(entry.attributes.get("workgroup_size", ""))]
        )
        return tuple(size for size in sizes if size is not None) if None not in sizes else ()

    def workgroup_bytes(self, entry_point: str) -> int:
        """Return the workgroup memory of what an entry point uses, as far as this library can tell."""
        used = [entry_point] if entry_point in self._declared else []
        for name in used:
            used += _names_from_outside(self._declared[name].body) & self._declared.keys() - set(used)
        kinds = [each.type for each in map(self._declared.__getitem__, used) if each.template == ("workgroup",)]
        return sum(-(-extent.size_bytes // 16) * 16 for extent in map(self.extent, kinds) if extent is not None)

    # ---- numbers

    def _given(self, each: Declaration) -> Any:
        """Return what the caller gives for an override; None for anything else."""
        return self._constants.get(self._name(each)) if each.kind == "override" else None

    def _name(self, each: Declaration) -> str:
        """Return what the caller names an override by: its ``@id``, else its name."""
        number = self._number(each.attributes.get("id", ""))
        return each.name if number is None else str(number)

    def _kind(self, each: Declaration) -> str:
        """Return the type of a constant or an override; empty where its expression would tell."""
        return self._resolved(each.type) or _kind_of_literal(_behind_equals(each))

    def _number(self, text: str) -> int | None:
        """Return the value of an integer expression, or None."""
        try:
            plain = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[iu]\b", r"\1", text)
            return self._value(ast.parse(plain.strip(), mode="eval").body)
        except (ArithmeticError, MemoryError, RecursionError, SyntaxError, ValueError):
            return None

    def _value(self, node: ast.AST) -> int:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name) if name in self._declared:
                each = self._declared[name]
                given = self._given(each)
                found = self._number(_behind_equals(each)) if given is None else int(given)
                if self._kind(each) in ("f16", "f32") or given not in (None, found):  # floats are divided otherwise
                    found = None
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                found = _OPERATIONS[type(op)](self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id="u32" | "i32"), args=[one]):
                return self._value(one)
            case _:
                found = None
        if found is None:
            raise ValueError(f"{ast.dump(node)} is no integer that is known here")
        return found

    # ---- types

    def _resolved(self, kind: str) -> str:
        """Return a type without aliases on its outside."""
        for _ in self._aliases:
            kind = self._aliases.get(kind, kind)
        return kind

    def _vector(self, kind: str) -> tuple[str, int] | None:
        """Return the scalar and the width of a vector or a scalar; None for other types."""
        kind = self._resolved(kind)
        if found := re.fullmatch(r"vec([234])<(\w+),?>", kind):
            return self._resolved(found[2]), int(found[1])
        if found := re.fullmatch(r"vec([234])([fiuh])", kind):
            return _SHORT[found[2]], int(found[1])
        return (kind, 1) if re.fullmatch(r"\w+", kind) else None

    def _datatype(self, kind: str) -> Datatype | None:
        kind = self._resolved(kind)
        if found := re.fullmatch(r"array<(.+)>", kind):
            kind = self._resolved(_split(found[1])[0])
        if found := re.fullmatch(r"atomic<(\w+)>", kind):
            kind = self._resolved(found[1])
        vector = self._vector(kind)
        if vector is None or vector == ("u32", 2):
            return None
        return STORAGE_DATATYPES.get(vector[0])

    def _uniform(self, kind: str) -> Uniform | None:
        vector = self._vector(kind)
        if vector is not None and vector[0] in _SCALARS:
            return Uniform(kind, *vector)
        members: list[tuple[str, Uniform]] = []
        for name, of, attributes in self._members(kind):
            vector = self._vector(of)
            if attributes or vector is None or vector[0] not in _SCALARS:
                return None
            members.append((name, Uniform(of, *vector)))
        return Uniform(kind, members=tuple(members)) if members else None

    def _members(self, kind: str) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield name, type and attributes of a structure's members; nothing for other types."""
        structure = self._declared.get(self._resolved(kind))
        if structure is None or structure.kind != "struct":
            return
        for part in _split("".join(token.text for token in structure.body[1:-1])):
            attributes = dict(re.findall(r"@(\w+)\(([^)]*)\)", part))
            name, _, of = re.sub(r"@\w+\([^)]*\)", "", part).partition(":")
            yield name, of, attributes

    def extent(self, kind: str) -> Extent | None:
        """Return how much memory a type takes; None where this library cannot tell."""
        kind = self._resolved(kind)
        if found := re.fullmatch(r"atomic<(\w+)>", kind):
            return self.extent(found[1])
        if found := re.fullmatch(r"mat([234])x([234])(<\w+,?>|[fh])", kind):
            return self.extent(f"array<vec{found[2]}{found[3]},{found[1]}>")
        if found := re.fullmatch(r"array<(.+)>", kind):
            of, *length = _split(found[1])
            item, count = self.extent(of), self._number(length[0]) if length else 0
            if item is None or count is None:
                return None
            stride = -(-item.size_bytes // item.align_bytes) * item.align_bytes
            return Extent(item.align_bytes, count * stride, 0 if length else stride)
        vector = self._vector(kind)
        if vector is not None and (vector[0] in _SCALARS or vector[0] in _BYTES):
            size, width = _BYTES.get(vector[0], 4), vector[1]
            return Extent(size * (4 if width == 3 else width), size * width)
        at, align, stride = 0, 1, 0
        for _, of, attributes in self._members(kind):
            member = self.extent(of)
            own, size = (self._number(attributes.get(word, "0")) for word in ("align", "size"))
            if member is None or own is None or size is None:
                return None
            begin = max(own, member.align_bytes)
            at = -(-at // begin) * begin + max(size, member.size_bytes)
            align, stride = max(align, begin), member.stride_bytes
        return Extent(align, at if stride else -(-at // align) * align, stride) if at or stride else None


def _names_from_outside(body: Sequence[Token]) -> set[str]:
    """Return the names in a body that are neither a member's nor declared in there, if anywhere."""
    texts = [token.text for token in body]
    around = list(zip(["", *texts], texts, [*texts[1:], ""], strict=False))
    own = {name for before, name, after in around if before in ("let", "var", "const") or after == ":"}
    return {name for before, name, _ in around if before != "."} - own


def _behind_equals(declared: Declaration) -> str:
    """Return what a constant is declared to be."""
    return "".join(token.text for token in declared.body).partition("=")[2].rstrip(";")


def _kind_of_literal(text: str) -> str:
    """Return the type of an override that is declared by a literal; empty for anything else."""
    if text in ("true", "false"):
        return "bool"
    found = re.fullmatch(r"-?(?:(0[xX][\da-fA-F]+|\d+)([iu]?)|[\d.]+(?:[eE][+-]?\d+)?([fh]?))", text)
    return "" if found is None else _SHORT[(found[2] or "i") if found[1] else (found[3] or "f")]


def _split(text: str) -> list[str]:
    """Return the parts between the commas that are in no bracket; a last comma ends a part."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts if parts[-1] else parts[:-1]
