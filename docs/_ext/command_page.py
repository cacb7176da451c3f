"""The reference of the command line: what `gridwise COMMAND --help` prints."""

from __future__ import annotations

import click

from gridwise_py.cli import main as command

WIDTH = 100


def command_line() -> str:
    """Return the page of the command: each subcommand with its help."""
    lines = [
        "# Command line",
        "",
        "`pip install '.[bench]'` installs the command `gridwise`; `python -m gridwise_py` is the same. This page is",
        "what `gridwise COMMAND --help` prints. [Exit codes](environment.md#exit-codes).",
        "",
    ]
    # click keeps the first help option that it makes for a command, so this context has the names of the command's own.
    context = click.Context(command, info_name="gridwise", **command.context_settings)
    for name in command.list_commands(context):
        part = command.get_command(context, name)
        assert part is not None, name
        inside = click.Context(part, info_name=name, parent=context, terminal_width=WIDTH)
        lines += [f"## gridwise {name}", "", "```text", part.get_help(inside).removeprefix("Usage: "), "```", ""]
    return "\n".join(lines)
