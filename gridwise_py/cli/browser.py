"""``gridwise browser``: a page that measures the GPU of whoever opens it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .options import AxisText, OutputFile, PrimitiveName, RawArguments, files_are_named
from .output import LINE_EVERY_S, check_output, note, showing_progress, write_whole


@click.command(cls=RawArguments, short_help="Write a page that measures the GPU of a browser.")
@click.argument("primitives", nargs=-1, type=PrimitiveName(), metavar="[PRIMITIVE | FILE.py [NAME]…]…")
@click.option(
    "-o", "--out", type=OutputFile(), default=Path("gridwise.html"), show_default=True, help="The page: .html.",
)  # fmt: skip
@click.option(
    "--suite", default="browser", show_default=True, metavar="NAME|FILE",
    help="What the page runs: a suite, or a TOML file. PRIMITIVEs and axes restrict it; a PRIMITIVE that it lacks is "
    "added.",
)  # fmt: skip
@click.option(
    "-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS",
    help="An axis in place of that of each sweep, as `gridwise bench` takes it. Repeat for more axes.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the data and of the order of cases.  [default: 0]")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="How often each case is measured."
)
@click.pass_context
def browser(
    ctx: click.Context,
    primitives: tuple[str, ...],
    out: Path,
    suite: str,
    axes: tuple[str, ...],
    seed: int | None,
    rounds: int,
) -> None:
    """Write a page that measures the GPU of whoever opens it in a browser with WebGPU.

    The page is one file that talks to no server. It runs, checks and times PRIMITIVEs, and saves a file that `gridwise
    compare`, `plot`, `report` and `roofline` read.

    Of a FILE.py of your own benchmarks, the page runs those whose run= is a gw.Kernel, or several, and that have a
    reference; others are left out and named. It has their arguments as they are, so take sizes of some MiB.
    """
    from .. import request_device
    from ..browser.bundle import bundle_of
    from ..browser.page import page_html

    check_output(out, "--out", html="a page")
    if files_are_named(ctx):
        if ctx.get_parameter_source("suite") is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError("--suite is for primitives; leave it out with a file of your own")
        sweeps, protocol, name, device = *_own(axes, primitives), None, request_device()
    else:
        (sweeps, protocol, name), device = _what(suite, axes, primitives), None
    if seed is not None:
        protocol = replace(protocol, seed=seed)
    with showing_progress(every_s=LINE_EVERY_S) as say:
        bundle = bundle_of(
            sweeps, protocol, rounds=rounds, suite=name, progress=say, device=device, leave_out=_note_left_out
        )
    page = page_html(bundle)
    write_whole(out, page, "--out", f" ({len(page.encode()) / 1e3:.0f} kB, {len(bundle['cases'])} cases)")


def _note_left_out(error: Exception) -> None:
    note(f"gridwise: left out: {error}")


def _own(axes: tuple[str, ...], words: tuple[str, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return the sweeps of files of benchmarks, and the protocol."""
    from ..bench.sweep.suite import BENCH_PROTOCOL
    from .bench import benchmarks_of_files

    short: dict[str, str | None] = {"n": None, "datatype": None, "op": None, "mode": None}
    return benchmarks_of_files(words, axes, short, with_baselines=False), BENCH_PROTOCOL


def _what(suite: str, axes: tuple[str, ...], primitives: tuple[str, ...]) -> tuple[tuple[Any, ...], Any, str]:
    """Return the sweeps, the protocol and the name of a suite, restricted to what was asked for."""
    from ..bench.sweep.axes import collect_axes
    from ..bench.sweep.suite import BENCH_PROTOCOL, DEFAULT_AXES, Sweep, load_suite, narrow, need_datatypes

    found, given = load_suite(suite), collect_axes(axes, {}, {})
    sweeps = narrow(found.sweeps, given, primitives)
    named = {name for sweep in sweeps for name in sweep.primitives}
    others = tuple(name for name in primitives if name not in named)
    if others:  # what the suite lacks, at the sizes of gridwise bench
        sweeps = (*sweeps, Sweep(others, {**collect_axes((), {}, DEFAULT_AXES), **given}))
    need_datatypes(sweeps)
    return sweeps, replace(BENCH_PROTOCOL, **found.protocol), found.name
