"""``gridwise fleet``: judge many devices that ran one suite, from their files or on a Dask cluster."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..storage.files import read_file
from .bench import what_to_run
from .exit_codes import BAD_INPUT, INCOMPLETE, NO_ADAPTER, REGRESSION, WRONG_RESULT
from .options import (
    AxisText,
    AxisValues,
    File,
    OutputFile,
    RawArguments,
    Seconds,
    Share,
    certificate_options,
    certificates_of,
    check_dask,
)  # fmt: skip
from .output import (
    LINE_EVERY_S,
    PATIENCE_S,
    check_output,
    note,
    showing_progress,
    table_console,
    write_document,
)

if TYPE_CHECKING:
    from ..fleet.model import Fleet
    from ..fleet.run import DeviceState

_PIPE_WIDTH = 140
#: Devices that a terminal shows at once.
_MOST_SHOWN = 24
#: All other options are of runs on a cluster.
_OF_FILES = ("files", "scheduler", "baseline", "gate", "json_path")


@click.command(cls=RawArguments, short_help="Find slow, wrong and lost devices among many.")
@click.argument("files", nargs=-1, type=File(), metavar="[FILE]…")
@click.option("--scheduler", metavar="ADDRESS", help="Measure on the GPUs of this Dask cluster: tls://HOST:PORT.")
@click.option("--suite", metavar="NAME|FILE", help="What to measure, as in `gridwise bench`.  [default: quick]")
@click.option("-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS", help="Restrict the suite.")
@click.option("--mode", type=AxisValues("mode", ("cold", "hot", "batch", "latency")), help="Restrict its modes.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=1, show_default=True,
    help="Visits to each case: more find devices that are slow at times.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of data and order.")
@click.option("--trials", type=click.IntRange(min=1), default=10, show_default=True, help="Dispatches per sample.")
@click.option("--warmup-s", type=Seconds(min=0), default=0.3, show_default=True, help="Of a case, at least.")
@click.option("--sampling-s", type=Seconds(min=0), default=1.0, show_default=True, help="Of a case, at most.")
@click.option("--isolate", is_flag=True, help="Run each case in a process of its own.")
@click.option("--devices", multiple=True, metavar="TEXT", help="Only devices with TEXT in their id or name. Repeat.")
@click.option(
    "--at-once", type=click.IntRange(min=1), metavar="N",
    help="Devices of a host that measure at the same time.  [default: 1 if a case is of mode latency, else all]",
)  # fmt: skip
@click.option(
    "--contention", is_flag=True,
    help="Measure one device of a host at a time, then all together: tells a bad GPU from a bad host.",
)  # fmt: skip
@click.option(
    "--device-timeout-s", type=Seconds(min=1), default=900.0, show_default=True,
    help="Without a sign of life for so long, a device is lost.",
)  # fmt: skip
@click.option(
    "--resume", type=File(exists=True), help="Continue the run of this document: devices that are not complete."
)
@certificate_options
@click.option("--baseline", type=File(), help="A fleet of healthy devices: its document, or a results file.")
@click.option(
    "--gate", type=Share(), default="3%", show_default=True, help="A device slower by less than this is not accused."
)
@click.option(
    "--json", "json_path", type=OutputFile(), help="Write the fleet document, for `gridwise report` and --baseline."
)
@click.option("--overwrite", is_flag=True, help="Replace the --json file of an earlier run on a cluster.")
@click.pass_context
def fleet(ctx: click.Context, /, **options: Any) -> None:
    """Judge the devices of FILEs: results files of `gridwise bench --json`, one for each, and fleet documents. With
    --scheduler, measure the GPUs of a Dask cluster, whose hosts run `gridwise worker`.

    Each device is compared with the others of its model, driver and version. A device has the name of its file, and
    devices of one host have names such as HOST-gpu0.json.

    Exits with 4 if a result is wrong, 6 if a device was lost or failed, 1 if one is slow, 2 for bad input, 5 if no
    worker has a GPU, else 0.
    """
    from ..display.terminal import clean_lines
    from ..fleet.table import fleet_lines

    files, scheduler, json_path = options["files"], options["scheduler"], options["json_path"]
    if (scheduler is None) == (not files):
        raise click.UsageError("give FILEs to judge, or --scheduler ADDRESS to measure on a cluster: one of the two")
    for parameter in ctx.command.params if scheduler is None else ():
        given = ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _OF_FILES:
            raise click.UsageError(f"{parameter.opts[-1]} is for runs on a cluster, --scheduler ADDRESS")
    inputs = [*files, *filter(None, [options["baseline"]])]
    check_output(json_path, "--json", inputs)
    gate, folder = options["gate"], None if json_path is None else json_path.absolute().parent
    known = None if options["baseline"] is None else _from_files([options["baseline"]], gate)
    found = _on_cluster(ctx, options, known) if scheduler is not None else _from_files(files, gate, folder, known)
    if options["baseline"] is not None:
        found = replace(found, baseline=hashlib.sha256(read_file(options["baseline"])).hexdigest())
        for group in found.groups:
            if not group.has_baseline:
                what = f"{group.adapter}, {group.backend}, driver {group.driver}, gridwise_py {group.gridwise_py}"
                note(f"gridwise: the baseline has no device such as {what}: these are compared with each other")
    if json_path is not None:
        write_document(json_path, found.to_json())
    console = table_console(_PIPE_WIDTH)
    click.echo(clean_lines("\n".join(fleet_lines(found, console.width))))
    sys.exit(_exit_code(found))


def _from_files(files: Sequence[Path], gate: float, folder: Path | None = None, baseline: Fleet | None = None) -> Fleet:
    """Return the judged fleet of files, whose members are named from a folder."""
    from ..fleet.files import read_fleet
    from ..fleet.judge import judge

    with showing_progress(PATIENCE_S, LINE_EVERY_S) as say:
        read = read_fleet(
            files, folder=folder, processes=min(8, os.cpu_count() or 1),
            progress=lambda done: say(f"reading: {done:,} of {len(files):,} files"),
        )  # fmt: skip
        say(f"judging {len(read.members):,} devices")
        return judge(read, gate=gate, baseline=baseline)


def _exit_code(found: Fleet) -> int:
    """Return the code of a judged fleet: what is worst decides."""
    from ..fleet.model import Status, Verdict

    verdicts = {member.verdict for member in found.members}
    if Verdict.WRONG in verdicts:
        return WRONG_RESULT
    if any(member.status is not Status.COMPLETE for member in found.members):
        return INCOMPLETE
    return REGRESSION if Verdict.SLOW in verdicts else 0


# ---- on a cluster


def _on_cluster(ctx: click.Context, options: dict[str, Any], baseline: Fleet | None) -> Fleet:
    """Measure the GPUs of a cluster; return the judged fleet."""
    check_dask("gridwise fleet --scheduler")
    from ..bench.sweep.runner import Request
    from ..bench.sweep.suite import in_rounds, need_datatypes, plan_jobs
    from ..dask.cluster import connect
    from ..errors import ClusterError
    from ..fleet.run import run_fleet

    certificates = certificates_of(options)
    security = None if certificates is None else certificates.security()
    path, resume = options["json_path"], options["resume"]
    if path is None:
        path = resume
    elif path != resume:
        check_output(path, "--json", overwrite=options["overwrite"])
    of_bench = {"n": None, "datatype": None, "op": None, "primitives": (), "processes": 1, **options}
    of_bench["suite"] = options["suite"] or "quick"
    sweeps, protocol, _ = what_to_run(ctx, of_bench)
    need_datatypes(sweeps)
    request = Request(
        jobs=in_rounds(plan_jobs(sweeps), options["rounds"], protocol.seed), protocol=protocol,
        command=ctx.meta["words"], suite=Path(of_bench["suite"]).stem, isolate=options["isolate"],
    )  # fmt: skip
    try:
        with (
            connect(options["scheduler"], security=security, insecure=options["insecure"]) as client,
            _showing_devices() as show,
        ):
            return run_fleet(
                client, request, devices=options["devices"], at_once=options["at_once"],
                contention=options["contention"], device_timeout_s=options["device_timeout_s"], path=path,
                resume=resume, gate=options["gate"], baseline=baseline, progress=show,
            )  # fmt: skip
    except ClusterError as error:
        note(f"gridwise: {error}")
        sys.exit(NO_ADAPTER if "no worker has a GPU" in str(error) else BAD_INPUT)


@contextmanager
def _showing_devices() -> Generator[Callable[[Sequence[DeviceState]], None]]:
    """Yield a function that shows how far devices are: a line each on a terminal, else a line for each that ends."""
    from ..bench.report.console import make_console

    console = make_console(stderr=True)
    if not console.is_terminal:
        told: set[tuple[str, str]] = set()

        def tell(states: Sequence[DeviceState]) -> None:
            for state in states:
                if state.state not in ("waiting", "running") and (state.id, state.state) not in told:
                    told.add((state.id, state.state))
                    done = sum(each.state not in ("waiting", "running") for each in states)
                    note(f"{state.id}: {state.state} ({done} of {len(states)} devices)")

        yield tell
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda states: live.update(Text("\n".join(_state_lines(states)), overflow="ellipsis", no_wrap=True))


def _state_lines(states: Sequence[DeviceState]) -> list[str]:
    """Return a line for each device that is at work, as many as fit, and one for all."""
    from ..display.terminal import clean

    ended = [state for state in states if state.state not in ("waiting", "running")]
    running = [state for state in states if state.state == "running"]
    lines = [f"{len(ended)} of {len(states)} devices ended, {len(running)} at work"]
    for state in running[:_MOST_SHOWN]:
        again = f", attempt {state.attempts}" if state.attempts > 1 else ""
        phase = f" {state.phase}" if state.phase == "alone" else ""
        lines.append(clean(f"{state.id}{phase}: {state.done}/{state.of}{again} {state.case}"))
    if len(running) > _MOST_SHOWN:
        lines.append(f"and {len(running) - _MOST_SHOWN} more")
    return lines
