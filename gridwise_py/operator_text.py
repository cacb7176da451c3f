"""Checks a user's operator text before it goes into a shader: it must stay where it is put."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from .errors import ArgumentError

__all__ = ["check_builtin_name", "check_expression", "check_functions"]

# WGSL knows more line breaks than "\n"; where a compiler disagrees about one, a comment ends elsewhere for it than it
# does here. Marks of writing direction show another text than the compiler reads.
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
Refuse = Callable[[str], NoReturn]
_PAIRS = {")": "(", "]": "[", "}": "{"}
_FUNCTION = re.compile(r"\s*fn\s+(\w+)\s*\(")
_CONSTANT = re.compile(r"\s*const\s+\w+")


def check_expression(name: str, text: str) -> None:
    """Refuse what is not one expression.

    Raises
    ------
    ArgumentError
        If it could end the statement or the function that it is put into.
    """
    rule = "be one WGSL expression of a and b, such as 'a + b'"
    refuse = _refuse(f"expression= of BinOp {name!r}", text, rule)
    _check_characters(text, refuse)
    if not text.strip():
        refuse("is empty")
    for word in (";", "{", "}", "@", "//", "/*", "*/"):
        if word in text:
            refuse(f"has {word!r}")
    _check_brackets(text, refuse)


def check_functions(name: str, text: str) -> None:
    """Refuse what is not a row of functions and constants, one of them ``combine``.

    Raises
    ------
    ArgumentError
        If a comment or a bracket is left open or closed once too often, or something else is declared: bindings,
        variables, overrides, entry points, directives.
    """
    rule = (
        "hold 'fn combine(a: T, b: T) -> T { … }', and may hold further functions and constants beside it, nothing else"
    )
    refuse = _refuse(f"the WGSL text of BinOp {name!r}", text, rule)
    _check_characters(text, refuse)
    bare = _without_comments(text, refuse)
    _check_brackets(bare, refuse)
    declared = _declarations(bare, refuse)
    if "combine" not in declared:
        refuse("does not define 'combine'")


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
    """Return the text with a blank for each comment. Block comments nest."""
    kept: list[str] = []
    depth, at = 0, 0
    while at < len(text):
        two = text[at : at + 2]
        if two == "/*":
            depth, at = depth + 1, at + 2
        elif two == "*/" and depth:
            depth, at = depth - 1, at + 2
            kept.append(" ")
        elif two == "//" and not depth:
            end = re.compile(r"[\n\r]|$").search(text, at)
            at = end.start() if end else len(text)
        else:
            if not depth:
                kept.append(text[at])
            at += 1
    if depth:
        refuse("leaves a comment open")
    return "".join(kept)


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
    """Return the names of the functions; refuse any other declaration but that of a constant."""
    names: set[str] = set()
    at = 0
    while bare[at:].strip(" \t\r\n;"):
        at += len(bare[at:]) - len(bare[at:].lstrip(" \t\r\n;"))
        if found := _FUNCTION.match(bare, at):
            names.add(found[1])
            at = _end_of_body(bare, found.end(), refuse)
        elif _CONSTANT.match(bare, at):
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
