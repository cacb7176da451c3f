"""Shaders with a change to their text, for benchmarks only: the library has no switch for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from unittest import mock

import click

import gridwise_py as gw
from gridwise_py.planning import builder

Change = tuple[str | re.Pattern[str], str | Callable[[re.Match[str]], str]]


@contextlib.contextmanager
def changed_text(old: Change[0], new: Change[1]) -> Iterator[None]:
    """Compose shaders with a change; it must apply to at least one of them. Inside another, both apply."""
    pattern = re.compile(re.escape(old)) if isinstance(old, str) else old
    unchanged = builder.compose
    applied = []

    def compose(name: str, **context: Any) -> str:
        text, changes = pattern.subn(new if callable(new) else lambda _: new, unchanged(name, **context))
        applied.append(changes > 0)
        return text

    builder._shader.cache_clear()
    with mock.patch.object(builder, "compose", compose):
        yield
    builder._shader.cache_clear()
    if not any(applied):
        raise click.ClickException(f"no shader has the text {pattern.pattern!r}: this variant must be written anew")


PrimitiveT = TypeVar("PrimitiveT", bound=gw.Primitive)


def planned_in(surroundings: Callable[[], AbstractContextManager[Any]], primitive: PrimitiveT) -> PrimitiveT:
    """Have a primitive make its plans in these surroundings, such as a changed text."""
    plan = primitive.plan

    def planned(layout: Any) -> Any:
        with surroundings():
            return plan(layout)

    vars(primitive)["plan"] = planned
    return primitive
