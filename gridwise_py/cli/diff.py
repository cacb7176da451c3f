"""``gridwise diff``: do two versions ask the same of a GPU? No GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from .ab import ApartWords, find_sides
from .exit_codes import BAD_INPUT
from .options import AxisValues, OutputFile
from .output import check_output, showing_progress, write_document

#: A case of a primitive is compared at these sizes: tables of shapes have steps between them.
_SIZES = (1 << 16, 1 << 20, 1 << 24)
SAME, DIFFERS, UNKNOWN = 0, 1, BAD_INPUT
_MOST_CHANGES, _MOST_LINES = 6, 400


@click.command(cls=ApartWords, short_help="Say whether two versions ask the same of a GPU; none is needed.")
@click.argument("old")
@click.argument("new")
@click.argument("cases", nargs=-1, metavar="[--] [PRIMITIVE|FILE.py [NAME]…]…")
@click.option("--n", type=AxisValues("n"), help="Items.  [default: 2^16,2^20,2^24]")
@click.option("--json", "json_path", type=OutputFile(), help="Write what differs here.")
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
def diff(old: str, new: str, cases: tuple[str, ...], json_path: Path | None, **options: Any) -> None:
    """Compare what OLD and NEW ask of a GPU: are kernels, launches, buffers, uniforms and inputs the same?

    OLD and NEW are sides of `gridwise ab`: mostly a git revision, or the folder of a checkout. All primitives are
    planned, or those that are named, for ten classes of devices whose capabilities are stored. With your own FILE.py
    of benchmarks, devices note what it asks of them; they compute nothing.

    Comments and labels do not count, nor does what the host does. The items of your own inputs count; those of a
    primitive are made by the command that measures.

    Exits with 0 if all is the same, 1 if something differs, 2 if nothing differs and something cannot be told.
    """
    from ..bench.ab.differ import CaseDifference, differences, same_files
    from ..bench.cases.device_classes import SOURCES

    check_output(json_path, "--json", overwrite=options["overwrite"])
    with showing_progress(every_s=10.0) as say:
        environments, own = find_sides((old, new), cases, {"n": options["n"], "axes": ()}, say)
        jobs = usual_jobs(cases, options["n"]) if own is None else own
        if same_files(environments):
            found = [CaseDifference(str(job.case), len(SOURCES)) for job in jobs]
        else:
            found = list(differences(environments, jobs, say=say))
    for line in _lines(found):
        click.echo(line)
    if json_path is not None:
        sides = {side: environment.describe() for side, environment in environments.items()}
        document = {"schema": "gridwise.diff", "schema_version": 1, "sides": sides, "classes": SOURCES}
        write_document(json_path, {**document, "cases": [one.to_json() for one in found]})
    sys.exit(DIFFERS if any(one.changes for one in found) else UNKNOWN if any(one.unknown for one in found) else SAME)


def usual_jobs(words: Sequence[str], sizes: str | None) -> list[Any]:
    """Return the cases of primitives, each in its usual form."""
    from ..bench.cases.case import Case, array_items
    from ..bench.cases.mode import Mode
    from ..bench.cases.workloads import WORKLOADS
    from ..bench.sweep.axes import collect_axes
    from ..bench.sweep.suite import Job

    for word in words:
        if word not in WORKLOADS:
            raise click.BadParameter(f"{word!r} is no primitive ({', '.join(WORKLOADS)})", param_hint="PRIMITIVE")
    asked = [int(n) for n in collect_axes((), {"n": sizes}, {})["n"].values] if sizes else []
    found: list[Job] = []
    for name in words or WORKLOADS:
        for n in asked or _SIZES:
            own = n if asked or array_items(name, n) <= 2 * _SIZES[-1] else int(n**0.5)
            found.append(Job(Case.usual(name, own), Mode.BATCH, len(found)))
    return found


def _lines(found: Sequence[Any]) -> Iterator[str]:
    """Yield the report: what differs first, as people read diffs."""
    texts: dict[str, None] = {}  # each once, of whichever case
    for one in found:
        if not one.changes:
            continue
        yield str(one)
        for text, classes in [*one.changes.items()][1:_MOST_CHANGES]:
            yield f"  {text}{_where(classes, one.classes)}"
        if more := len([*one.changes][_MOST_CHANGES:]):
            yield f"  and {more} more"
        for name, both in one.changed.items():
            old, new = (code.counts for code in both)
            if moved := [f"{key} {old[key]} → {new[key]}" for key in old if old[key] != new[key]]:
                yield f"  {name}: {', '.join(moved)}"
        texts |= dict.fromkeys(text for old, new in one.changed.values() for text in old.text_changes(new))
    lines = "\n".join(texts).splitlines()
    yield from lines[:_MOST_LINES]
    if more := len(lines[_MOST_LINES:]):
        yield f"… and {more:,} lines more; name one primitive, or one --n"
    yield from (str(one) for one in found if one.unknown)
    if same := [one for one in found if one.same]:
        yield f"same on {same[0].classes} of {same[0].classes} classes: {len(same)} of {len(found)} cases"


def _where(classes: Sequence[str], of: int) -> str:
    return f" ({'; '.join(classes)})" if len(classes) < of else ""
