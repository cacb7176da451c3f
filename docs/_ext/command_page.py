"""The reference of the command line, made from what click knows of it."""

from __future__ import annotations

import inspect
import re

import click

from gridwise_py.cli import main as command


def command_line() -> str:
    """Return the page of the command: each subcommand with its help and its options."""
    lines = [
        "# Command line",
        "",
        "`pip install '.[bench]'` installs the command `gridwise`; `python -m gridwise_py` is the same. This page is",
        "made from its `--help`. [Exit codes](environment.md#exit-codes).",
        "",
    ]
    # click keeps the first help option that it makes for a command, so this context has the names of the command's own.
    context = click.Context(command, info_name="gridwise", **command.context_settings)
    for name in command.list_commands(context):
        part = command.get_command(context, name)
        assert part is not None, name
        inside = click.Context(part, info_name=name, parent=context)
        usage = " ".join([inside.command_path, *part.collect_usage_pieces(inside)])
        lines += [f"## gridwise {name}", "", "```text", usage, "```", "", *_paragraphs(part.help or ""), ""]
        for option in part.params:
            record = option.get_help_record(inside)
            if record and record[1]:
                lines += [f"`{record[0]}`", f": {_escaped(record[1])}", ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    """Return click's help as Markdown; what it sets apart with \\b stays as it is."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        body = paragraph.removeprefix("\b\n")
        lines += ["```text", body, "```", ""] if body != paragraph else [_escaped(body), ""]
    return lines


def _escaped(text: str) -> str:
    """Return text as Markdown: what it has in backticks, and options, are code."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    for i in range(0, len(parts), 2):
        plain = re.sub(r"([\\*_<>\[\]`|])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", plain)
    return "".join(parts)
