"""Checks a user's operator text before it goes into a shader: it must stay where it is put."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from ..errors import ArgumentError
from .wgsl_text import Token, declarations, tokens


@dataclass(frozen=True)
class TextForm:
    """What the text of one kind of operator looks like.

    Attributes
    ----------
    kind : str
        The class of the operator, for messages.
    function : str
        The function that the library's text calls by its name.
    arguments : tuple of str
        Names in an expression.
    example : str
        An expression.
    types : tuple of str
        Types that the function may be written for.
    """

    kind: str
    function: str
    arguments: tuple[str, ...]
    example: str
    types: tuple[str, ...]

    @property
    def signature(self) -> str:
        """The function's head, as messages show it."""
        return f"fn {self.function}({', '.join(f'{name}: T' for name in self.arguments)}) -> T"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Parameters and result up to the body, without blanks; a group for each type."""
        return re.compile(r"\(" + ",".join([r"\w+:(\w+)"] * len(self.arguments)) + r",?\)->(\w+)\{")


#: Types by the name of the datatype's alias, or by their own.
_TYPES = ("T", "u32", "i32", "f32")
#: ``Acc`` is the type of an accumulator.
BINARY = TextForm("BinOp", "combine", ("a", "b"), "a + b", (*_TYPES, "Acc"))
UNARY = TextForm("UnaryOp", "apply", ("x",), "x * x", _TYPES)

# WGSL knows more line breaks than "\n"; where a compiler disagrees about one, a comment ends elsewhere for it than it
# does here. Marks of writing direction show another text than the compiler reads.
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
Refuse = Callable[[str], NoReturn]
_PAIRS = {")": "(", "]": "[", "}": "{"}
_FUNCTION = re.compile(r"\s*fn\s+(\w+)\s*\(")
_CONSTANT = re.compile(r"\s*const\s+(\w+)")
_NUMBERS = {1: "one", 2: "two"}


def check_expression(form: TextForm, name: str, text: str) -> None:
    """Refuse what is not one expression.

    Raises
    ------
    ArgumentError
        If it could end the statement or the function that it is put into.
    """
    rule = f"be one WGSL expression of {' and '.join(form.arguments)}, such as {form.example!r}"
    refuse = _refuse(f"expression= of {form.kind} {name!r}", text, rule)
    _check_characters(text, refuse)
    if not text.strip():
        refuse("is empty")
    for word in (";", "{", "}", "@", "//", "/*", "*/"):
        if word in text:
            refuse(f"has {word!r}")
    _check_brackets(text, refuse)


def check_functions(form: TextForm, name: str, text: str) -> None:
    """Refuse what is not a row of functions and constants, one of them the function of the form.

    Raises
    ------
    ArgumentError
        If a comment or a bracket is left open or closed once too often, or something else is declared: bindings,
        variables, overrides, entry points, directives.
    """
    rule = f"hold '{form.signature} {{ … }}'; further functions and constants are allowed, nothing else"
    refuse = _refuse(f"the WGSL text of {form.kind} {name!r}", text, rule)
    _check_characters(text, refuse)
    bare = _without_comments(text, refuse)
    _check_brackets(bare, refuse)
    declared = _declarations(bare, refuse)
    if form.function not in declared:
        refuse(f"does not define {form.function!r}")
    for alias in ("T", "Acc"):
        if alias in declared:
            refuse(f"declares {alias!r}, which is the name of a type here")
    signature = _signature(form, text)
    types = form.pattern.fullmatch(signature)
    if types is None or len(set(types.groups())) > 1 or types[1] not in form.types:
        takes = _NUMBERS[len(form.arguments)]
        refuse(f"declares 'fn {form.function}{signature.rstrip('{')}', which does not take {takes} T and return one")


def type_of(form: TextForm, text: str) -> str | None:
    """Return the type that the function is written for; None where it is the datatype's, whatever that is."""
    written = written_type(form, text)
    return None if written in ("T", "Acc") else written


def written_type(form: TextForm, text: str) -> str | None:
    """Return the type in the function's head, as it is written there."""
    types = form.pattern.fullmatch(_signature(form, text))
    return None if types is None else types[1]


@lru_cache(maxsize=256)
def scoped(form: TextForm, text: str, function: str = "") -> str:
    """Return an operator's text with a prefix before every name that it declares.

    The function of the form keeps its name, or gets the name `function`.

    A declaration at module scope takes the place of a WGSL built-in in the whole module: of a function ``min``, say, in
    the library's own lines. Renamed throughout the text, local names included, it means what it meant.
    """
    pieces = list(tokens(text))
    names = {piece.text for piece in pieces if piece.kind == "name"}
    declared = {found.name for found in declarations(text)} - {form.function}
    renamed_to = {form.function: function} if function else {}
    prefix = "own_"
    while any(name.startswith(prefix) for name in names):
        prefix = f"own{prefix}"
    return _with_names(pieces, renamed_to | {name: prefix + name for name in declared})


_HEAD = re.compile(r"\(((?:\w+:\w+,?)*)\)->(\w+)\{")
_VALUE_TYPES = ("u32", "i32", "f32", "bool")


def checked_function(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return the name, the types of the parameters and the type of the result of the first function of a text.

    Raises
    ------
    ArgumentError
        If the text is no row of functions and constants, or the function takes or gives something else than numbers.
    """
    rule = (
        f"hold 'fn f(x: f32) -> f32 {{ … }}', of {', '.join(_VALUE_TYPES)}; further functions and constants may follow"
    )
    refuse = _refuse("the WGSL text of gw.function()", text, rule)
    _check_characters(text, refuse)
    bare = _without_comments(text, refuse)
    _check_brackets(bare, refuse)
    _declarations(bare, refuse)
    function = next((found for found in declarations(text) if found.kind == "fn"), None)
    if function is None:
        refuse("defines no function")
    head = "".join(token.text for token in function.body).partition("{")[0] + "{"
    found = _HEAD.fullmatch(head)
    if found is None:
        refuse(f"declares 'fn {function.name}{head.rstrip('{')}', whose types are others")
    takes = tuple(part.partition(":")[2] for part in found[1].split(",") if part)
    if not takes or not {*takes, found[2]} <= set(_VALUE_TYPES):
        refuse(f"declares 'fn {function.name}{head.rstrip('{')}', whose types are others")
    return function.name, takes, found[2]


@lru_cache(maxsize=256)
def renamed(text: str, prefix: str) -> tuple[str, str]:
    """Return a text with a prefix before every name that it declares, and the prefix, which no name had before."""
    pieces = list(tokens(text))
    names = {piece.text for piece in pieces if piece.kind == "name"}
    while any(name.startswith(prefix) for name in names):
        prefix = f"own{prefix}"
    declared = {found.name for found in declarations(text)}
    return _with_names(pieces, {name: prefix + name for name in declared}), prefix


def _with_names(pieces: Sequence[Token], new: Mapping[str, str]) -> str:
    """Return a text in which names are replaced, but for members and attributes."""
    found: list[str] = []
    before = ""  # the last piece that is no blank and no comment: behind a dot is a member's name
    for piece in pieces:
        free = piece.kind == "name" and before not in (".", "@")
        found.append(new.get(piece.text, piece.text) if free else piece.text)
        if piece.kind not in ("space", "comment"):
            before = piece.text
    return "".join(found)


def _signature(form: TextForm, text: str) -> str:
    """Return parameters and result of the function up to its body, without blanks."""
    functions = (found for found in declarations(text) if (found.kind, found.name) == ("fn", form.function))
    body = next((found.body for found in functions), ())
    kept: list[str] = []
    for token in body:
        kept.append(token.text)
        if token.text == "{":
            break
    return "".join(kept)


def check_builtin_name(name: str, option: str, value: str | None) -> None:
    """Refuse what is no name of a subgroup built-in."""
    if value is not None and not re.fullmatch(r"subgroup[A-Za-z]+", value):
        raise ArgumentError(f"{option}={value!r} of BinOp {name!r} is no built-in such as 'subgroupAdd'; leave it out")


def _refuse(what: str, text: str, rule: str) -> Refuse:
    """Return what raises an error about a text."""

    def refuse(why: str) -> NoReturn:
        raise ArgumentError(f"{what} {why}; it must {rule}. The text was:\n{text}")

    return refuse


def _check_characters(text: str, refuse: Refuse) -> None:
    if found := _STRANGE.search(text):
        refuse(f"has the character {found[0]!r}")


def _without_comments(text: str, refuse: Refuse) -> str:
    """Return the text with a blank for each comment."""
    pieces = list(tokens(text))
    if any(a == Token("mark", "/") and b == Token("mark", "*") for a, b in itertools.pairwise(pieces)):
        refuse("leaves a comment open")
    return "".join(" " if piece.kind == "comment" else piece.text for piece in pieces)


def _check_brackets(text: str, refuse: Refuse) -> None:
    opened: list[str] = []
    for character in text:
        if character in "([{":
            opened.append(character)
        elif character in _PAIRS and (not opened or opened.pop() != _PAIRS[character]):
            refuse(f"closes a {character!r} that it did not open")
    if opened:
        refuse(f"leaves a {opened[-1]!r} open")


def _declarations(bare: str, refuse: Refuse) -> set[str]:
    """Return the names of functions and constants; refuse any other declaration."""
    names: set[str] = set()
    at = 0
    while bare[at:].strip(" \t\r\n;"):
        at += len(bare[at:]) - len(bare[at:].lstrip(" \t\r\n;"))
        if found := _FUNCTION.match(bare, at):
            names.add(found[1])
            at = _end_of_body(bare, found.end(), refuse)
        elif found := _CONSTANT.match(bare, at):
            names.add(found[1])
            end = bare.find(";", at)
            if end < 0:
                refuse("leaves a constant without ';'")
            at = end + 1
        else:
            refuse(f"declares something else: {bare[at : at + 40].split(chr(10))[0]!r}")
    return names


def _end_of_body(bare: str, start: int, refuse: Refuse) -> int:
    """Return where the function ends whose parameters begin at `start`."""
    opened = bare.find("{", start)
    if opened < 0 or ";" in bare[start:opened]:
        refuse("declares a function without a body")
    depth = 0
    for at in range(opened, len(bare)):
        depth += (bare[at] == "{") - (bare[at] == "}")
        if depth == 0:
            return at + 1
    return len(bare)
