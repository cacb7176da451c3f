"""Shaders with a change to their text, for benchmarks only: the library has no switch for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import click

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


def more_params(*names: str, without: tuple[str, ...] = ()) -> Change:
    """Return the change that declares further parameters of a kernel, and drops some."""
    fields = "".join(f"  {name}: u32,\n" for name in names)

    def declare(found: re.Match[str]) -> str:
        kept = [line for line in found[1].splitlines(keepends=True) if line.partition(":")[0].strip() not in without]
        return f"struct Params {{\n{fields}{''.join(kept)}}}"

    return re.compile(r"struct Params \{\n(.*?)\}", re.DOTALL), declare


@contextlib.contextmanager
def changed_texts(*changes: Change) -> Iterator[None]:
    """Compose shaders with several changes, one after another."""
    with contextlib.ExitStack() as stack:
        for old, new in changes:
            stack.enter_context(changed_text(old, new))
        yield
