"""Reads WGSL as far as is needed here: its tokens, and what a text declares at module scope."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINE_END = re.compile("[\n\r\x0b\x0c\x85\u2028\u2029]|$")
_TOKEN = re.compile(r"(?P<space>\s+)|(?P<number>\d[\w.]*|\.\d\w*)|(?P<name>\w+)|(?P<mark>.)", re.DOTALL)
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True)
class Token:
    """A piece of a text.

    Attributes
    ----------
    kind : {"space", "comment", "number", "name", "mark"}
        An unclosed block comment is a mark: its ``/``, then its ``*``.
    text : str
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Declaration:
    """What a text declares at module scope.

    Attributes
    ----------
    kind : str
        ``"fn"``, ``"var"``, ``"const"``, ``"override"``, ``"alias"``, ``"struct"``, ``"enable"`` and so on.
    name : str
    attributes : dict from str to str
        ``@binding(2)`` is ``{"binding": "2"}``.
    template : tuple of str
        What stands in ``var<…>``: ``("storage", "read_write")``.
    type : str
        Type of a variable, or what an alias stands for, without blanks.
    body : tuple of Token
        Everything behind the name, without blanks and comments.
    """

    kind: str
    name: str
    attributes: dict[str, str]
    template: tuple[str, ...]
    type: str
    body: tuple[Token, ...]


def tokens(text: str) -> Iterator[Token]:
    """Yield all tokens of a text, which joined are the text. Block comments nest."""
    at = 0
    while at < len(text):
        end = _end_of_comment(text, at)
        if end is not None:
            yield Token("comment", text[at:end])
            at = end
            continue
        found = _TOKEN.match(text, at)
        assert found is not None, "the last alternative takes any character"
        assert found.lastgroup is not None
        yield Token(found.lastgroup, found[0])
        at = found.end()


def _end_of_comment(text: str, at: int) -> int | None:
    """Return where the comment ends that begins at `at`; None where there is none, or no end of it."""
    two = text[at : at + 2]
    if two == "//":
        found = _LINE_END.search(text, at)
        assert found is not None
        return found.start()
    if two != "/*":
        return None
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def declarations(text: str) -> list[Declaration]:
    """Return what a text declares at module scope, as far as it can be read: a compiler says what is wrong with it."""
    found: list[Declaration] = []
    statement: list[Token] = []
    depth = 0
    for token in tokens(text):
        if token.kind in ("space", "comment"):
            continue
        depth += (token.text in _CLOSING.values()) - (token.text in _CLOSING)
        statement.append(token)
        if depth <= 0 and token.text in (";", "}"):
            found += _declaration(statement)
            statement, depth = [], 0
    return found + _declaration(statement)


def _declaration(statement: Sequence[Token]) -> list[Declaration]:
    """Return the declaration of a statement, in a list; none for a lone semicolon."""
    at = 0
    attributes: dict[str, str] = {}
    while at + 1 < len(statement) and statement[at].text == "@":
        name = statement[at + 1].text
        at += 2
        inside, end = _bracketed(statement, at, "(", ")")
        attributes[name], at = "".join(inside).rstrip(","), end
    if at >= len(statement) or statement[at].kind != "name":
        return []
    kind = statement[at].text
    inside, at = _bracketed(statement, at + 1, "<", ">") if kind == "var" else ([], at + 1)
    if at >= len(statement) or statement[at].kind != "name":
        return [Declaration(kind, "", attributes, tuple(inside), "", tuple(statement[at:]))]
    name, body = statement[at].text, tuple(statement[at + 1 :])
    return [Declaration(kind, name, attributes, tuple(part for part in inside if part != ","), _type(kind, body), body)]


def _bracketed(statement: Sequence[Token], at: int, opening: str, closing: str) -> tuple[list[str], int]:
    """Return the texts between the brackets that begin at `at`, and where they end; nothing where none begin."""
    if at >= len(statement) or statement[at].text != opening:
        return [], at
    depth = 0
    inside: list[str] = []
    for end in range(at, len(statement)):
        text = statement[end].text
        depth += (text == opening) - (text == closing)
        if depth == 0:
            return inside, end + 1
        if end > at:
            inside.append(text)
    return inside, len(statement)


def _type(kind: str, body: Sequence[Token]) -> str:
    """Return the type in ``: type = …;``, or in ``= type;`` of an alias."""
    opening = "=" if kind == "alias" else ":"
    if kind not in ("var", "alias", "override", "const") or not body or body[0].text != opening:
        return ""
    kept: list[str] = []
    for token in body[1:]:
        if token.text in (";", "="):
            break
        kept.append(token.text)
    return "".join(kept)


def integer_value(literal: str) -> int | None:
    """Return the value of an integer literal; None for anything else, and for more digits than WGSL has integers."""
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]{1,40}|\d{1,40})[iu]?", literal)
    return int(found[1], 0 if found[1].lower().startswith("0x") else 10) if found else None
