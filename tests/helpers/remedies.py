"""The code that a text advises, cut out of it, to be run."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any


def codes_in(text: str, known: Mapping[str, Any]) -> list[str]:
    """Return the expressions in a text that are made of known names: calls, items, and operations on them.

    Each is the longest one from where it begins. A name alone, a list with commas and an "and" are prose.
    """
    found: list[str] = []
    end = 0
    for match in re.finditer(rf"(?<![\w.'\"])\(*(?:{'|'.join(map(re.escape, known))})\b", text):
        if match.start() < end:
            continue
        ends = [each.end() for each in re.finditer(r"\w+|[)\]]", text)]
        codes = [(text[match.start() : each], each) for each in reversed(ends) if each > match.end()]
        code, end = next((pair for pair in codes if _is_code(pair[0], known)), ("", end))
        found += [code] if code else []
    return found


def _is_code(text: str, known: Mapping[str, Any]) -> bool:
    """Whether a text is an expression of known names that computes something."""
    try:
        made = ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    nodes = list(ast.walk(made))
    if isinstance(made.body, (ast.Tuple, ast.BoolOp, ast.Name)) or any(
        isinstance(node, (ast.Is, ast.In)) for node in nodes
    ):
        return False
    return {node.id for node in nodes if isinstance(node, ast.Name)} <= {*known}


def commands_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the names that follow ``gridwise`` in a text, and the options that follow each."""
    for part in re.split(r"\bgridwise (?=[a-z])", text)[1:]:
        name, *_ = re.split(r"\W", part)
        yield name, re.findall(r"(?<![\w-])--?[a-z][a-z-]*", re.split(r"[;>)`\n]|, then", part)[0])
