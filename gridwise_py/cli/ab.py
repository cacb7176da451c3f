"""``gridwise ab``: measure two versions of the library in turns, and say which is faster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..call_errors import nearest
from ..settings import ENGINES
from .ambiguous import ambiguous_options, exit_if_ambiguous
from .exit_codes import BAD_INPUT, INCOMPLETE, NOT_COMPARABLE, REGRESSION, WRONG_RESULT
from .options import (
    AxisText,
    AxisValues,
    OutputFile,
    RawArguments,
    Seconds,
    Share,
    adapter_option,
    is_file_name,
    table_options,
)
from .output import (
    check_output,
    check_tables,
    note,
    showing_progress,
    table_console,
    write_document,
    write_tables,
)

_DEFAULT_AXES = {"n": "2^16,2^20,2^24", "datatype": "u32"}
#: In a pipe each pair of processes has a line when it is done; those of a long suite take longer than this.
_STEP_EVERY_S = 60.0
#: On a CPU adapter, where 2^24 items take seconds.
_CPU_N = "2^16"


class ApartWords(RawArguments):
    """Takes options also behind ``--``, which may divide the sides from the cases."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse without the first ``--``."""
        if "--" in args:
            args.remove("--")
        return super().parse_args(ctx, args)


def _two_engines(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    names = [name.strip() for name in value.split(",")]
    if len(names) != 2 or not set(names) <= set(ENGINES):
        raise click.BadParameter(f"{value!r} is not two of {', '.join(ENGINES)}, as in wgpu,dawn")
    return names[0], names[1]


@click.command(cls=ApartWords, short_help="Measure two versions in turns, and say which is faster.")
@click.argument("old")
@click.argument("new")
@click.argument("cases", nargs=-1, metavar="[--] [PRIMITIVE|SUITE|FILE.py [NAME]…]…")
@click.option("--n", type=AxisValues("n"), help="Items.  [default: 2^16,2^20,2^24; on a CPU adapter 2^16]")
@click.option(
    "--datatype",
    type=AxisValues("datatype", ("u32", "i32", "f32", "u64", "i64", "f64", "f16")),
    help="Datatypes.  [default: u32]",
)
@click.option("--op", type=AxisValues("op", ("add", "min", "max", "multiply")), help="Operators.  [default: add]")
@click.option(
    "--mode", type=AxisValues("mode", ("cold", "hot", "batch", "latency")),
    help="How trials run, as for `gridwise bench`.  [default: batch]",
)  # fmt: skip
@click.option("-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS", help="As for `gridwise bench`.")
@click.option(
    "--threshold", type=Share(), default="1%", show_default=True, help="Differences below this count as same."
)
@click.option(
    "--gate", type=Share(), help="Exit with 1 if a row is slower by more than this.  [default: the threshold]"
)
@ambiguous_options
@click.option(
    "--pairs", type=click.IntRange(2, 50), default=5, show_default=True,
    help="Pairs of processes. More of them make intervals narrower.",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=1), default=4, show_default=True,
    help="Turns OLD NEW NEW OLD of each case in a pair of processes.",
)  # fmt: skip
@click.option("--turn-s", type=Seconds(0.001, 10), default=0.02, show_default=True, help="GPU time of one turn.")
@click.option("--kernels", is_flag=True, help="Judge each kernel, too.")
@click.option("--all", is_flag=True, help="Measure cases, too, that ask the same of the GPU on both sides.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the data and of all orders."
)
@click.option(
    "--engines", callback=_two_engines, metavar="OLD,NEW",
    help="Engine of OLD and of NEW, as in `gridwise ab . . --engines wgpu,dawn`.  [default: --engine for both]",
)  # fmt: skip
@adapter_option
@click.option("--json", "json_path", type=OutputFile(), help="Write verdicts and times here.")
@table_options
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
def ab(old: str, new: str, cases: tuple[str, ...], **options: Any) -> None:
    """Measure OLD and NEW in turns on one GPU, and judge each case: is NEW faster, slower, or the same within 1 %?

    OLD and NEW are each an interpreter (.venv-old/bin/python), the folder of a virtual environment or of a checkout, a
    wheel, a requirement for pip (gridwise-py==0.1.0), or a git revision, such as HEAD~1. Checkouts, wheels and
    revisions run in this interpreter with its packages. A PRIMITIVE or SUITE is one of `gridwise bench`.

    With your own FILE.py of benchmarks (docs/howto/benchmark-my-kernels.md), OLD and NEW are revisions of your git
    repository, or folders with two states of the file: gridwise ab HEAD . -- my_kernels.py. Or they are two benchmarks
    with the same axes: gridwise ab my_kernels.py:naive my_kernels.py:tiled.

    Both run at the same time, each in a process that waits while the other one measures, so that drift, clock and other
    work affect both alike. Each pair of processes is a unit of the statistics. Cases that ask the same of the GPU on
    both sides are not measured without --all; in mode latency they are, as host code may differ.

    Exits with 0, or with 1 if a row is slower by more than the gate or a case no longer runs, 2 for bad input, 3 if
    the sides run on different adapters, 4 if a result is wrong. Ambiguous rows do not fail the gate without
    --max-ambiguous or --fail-ambiguous (7).

    After Ctrl-C, SIGTERM, or if a process does not start again, the pairs of processes that were measured are judged
    and written, and it exits with 130, 143 or 6: they are a part of what was asked.
    """
    from ..bench.ab.judge import judge
    from ..bench.ab.table import JudgedTable

    threshold, json_path = options["threshold"], options["json_path"]
    gate = threshold if options["gate"] is None else options["gate"]
    if not threshold:
        raise click.BadParameter("must be over 0: no two runs are equal", param_hint="--threshold")
    check_output(json_path, "--json", overwrite=options["overwrite"])
    check_tables(options)
    environments, measured, settings = _measure((old, new), cases, options)
    judged = judge(environments, measured, settings, threshold=threshold, gate=gate)
    table_console(120).print(JudgedTable(judged))
    write_tables(options, JudgedTable(judged).to_table)
    if json_path is not None:
        write_document(json_path, judged.to_json())
    if isinstance(measured.stopped, KeyboardInterrupt):
        raise measured.stopped  # its message and its exit code
    if measured.stopped is not None:
        note(f"gridwise: stopped early: {measured.stopped}")
        sys.exit(INCOMPLETE)
    if judged.wrong:
        sys.exit(WRONG_RESULT)
    if judged.regressed:
        sys.exit(REGRESSION)
    if not judged.rows and not judged.is_settled:
        sys.exit(BAD_INPUT)
    exit_if_ambiguous(options, judged.undecided_share)


def _measure(given: Sequence[str], cases: Sequence[str], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the environments, what was measured in them, and the settings."""
    from ..bench.ab.taken import SIDES
    from ..bench.ab.turns import NotComparable, Settings, measure_in_turns
    from .progress import TurnsProgress

    names = ("pairs", "rounds", "turn_s", "seed", "adapter", "kernels", "all")
    settings = Settings(**{name: options[name] for name in names})
    if not any(is_file_name(word) for word in (*given, *cases)):
        _jobs(cases, options, is_cpu=False)  # errors in them are reported before anything is measured
    try:
        with showing_progress(every_s=_STEP_EVERY_S) as say:
            environments, own = find_sides(given, cases, options, say)
            if options["engines"] is not None:
                engines = zip(SIDES, options["engines"], strict=True)
                environments = {side: replace(environments[side], engine=engine) for side, engine in engines}
            measured = measure_in_turns(
                environments,
                lambda is_cpu: _jobs(cases, options, is_cpu=is_cpu) if own is None else own,
                settings,
                progress=TurnsProgress(say),
            )
    except NotComparable as error:
        note(f"gridwise: OLD and NEW cannot be compared: {error}")
        sys.exit(NOT_COMPARABLE)
    return environments, measured, settings


def find_sides(
    given: Sequence[str], cases: Sequence[str], options: dict[str, Any], say: Callable[[str], None]
) -> tuple[dict[str, Any], list[Any] | None]:
    """Return the environments by side, and the cases of a user's file; None for primitives."""
    from ..bench.ab.environments import find_environment, find_side
    from ..bench.ab.taken import SIDES

    if not any(is_file_name(word) for word in (*given, *cases)):
        return {side: find_environment(text, say=say) for side, text in zip(SIDES, given, strict=True)}, None
    file = _file_of(cases)
    environments = {side: find_side(text, file, say=say) for side, text in zip(SIDES, given, strict=True)}
    return environments, _own_jobs(environments[SIDES[1]], cases, options)


def _file_of(cases: Sequence[str]) -> Path | None:
    """Return the user's file that the command names behind the sides; None if the sides name files themselves."""
    if not cases or not is_file_name(cases[0]):
        return None
    if not cases[0].endswith(".py") or any(is_file_name(word) for word in cases[1:]):
        raise click.UsageError("behind the sides stands one FILE.py, and the names of its benchmarks")
    return Path(cases[0])


def _own_jobs(new: Any, cases: Sequence[str], options: dict[str, Any]) -> list[Any]:
    """Return the cases of a user's file, as NEW has it."""
    from ..bench.sweep.suite import plan_jobs
    from .bench import benchmarks_of_files

    names = [word for word in cases if not is_file_name(word)]
    if new.benchmark is not None and names:
        raise click.UsageError(f"{new.given} names its benchmark already; leave out {' '.join(names)}")
    short = {name: options.get(name) for name in ("n", "datatype", "op", "mode")}
    words = [str(new.file), *names, *([] if new.benchmark is None else [new.benchmark])]
    return plan_jobs(benchmarks_of_files(words, options["axes"], short, with_baselines=False))


def _jobs(words: Sequence[str], options: dict[str, Any], *, is_cpu: bool) -> list[Any]:
    """Return the cases that were asked for."""
    from ..bench.cases.case import YARDSTICK
    from ..bench.cases.workloads import WORKLOADS
    from ..bench.sweep.axes import collect_axes
    from ..bench.sweep.suite import (
        DEFAULT_AXES,
        DEFAULT_PRIMITIVES,
        Sweep,
        load_suite,
        narrow,
        need_datatypes,
        plan_jobs,
        suite_names,
    )

    suites = [word for word in words if word.endswith(".toml") or word in suite_names()]
    primitives = [word for word in words if word not in suites]
    for word in primitives:
        if word not in WORKLOADS:
            known = [*WORKLOADS, *suite_names()]
            raise click.BadParameter(
                f"{word!r} is neither a primitive ({', '.join(WORKLOADS)}) nor a suite ({', '.join(suite_names())})"
                f"{nearest(word, known)}",
                param_hint="PRIMITIVE|SUITE",
            )
    short = {name: options[name] for name in ("n", "datatype", "op", "mode")}
    if suites:
        whole = tuple(sweep for name in suites for sweep in load_suite(name).sweeps)
        sweeps = narrow(whole, collect_axes(options["axes"], short, {}), primitives)
    else:
        defaults = {**DEFAULT_AXES, **_DEFAULT_AXES, **({"n": _CPU_N} if is_cpu else {})}
        sweeps = (Sweep(tuple(primitives) or DEFAULT_PRIMITIVES, collect_axes(options["axes"], short, defaults)),)
    if not sweeps:
        raise click.UsageError(f"the suite has none of {', '.join(primitives)}")
    need_datatypes(sweeps)
    has_yardstick = any(YARDSTICK in sweep.primitives for sweep in sweeps)
    return [job for job in plan_jobs(sweeps) if has_yardstick or job.case.primitive != YARDSTICK]
