"""``gridwise schema``: the JSON Schema of a kind of file."""

from __future__ import annotations

import click


@click.command(short_help="Print the JSON Schema of a kind of file.")
@click.argument("kind", type=click.Choice(["bench", "browser", "fleet"]))
def schema(kind: str) -> None:
    """Print the JSON Schema (2020-12) of results files (bench), of files that a page saves (browser), or of fleets."""
    from ..bench.results.browser_model import PageFile
    from ..bench.results.model import Results
    from ..bench.results.schema import json_schema
    from ..fleet.model import Fleet
    from ..storage.json_files import json_text

    click.echo(json_text(json_schema({"bench": Results, "browser": PageFile, "fleet": Fleet}[kind])))
