"""``gridwise bench``: run, check and time primitives."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..call_errors import nearest
from .baselines import baseline_folder_option, new_baseline
from .exit_codes import BAD_INPUT, NO_ADAPTER, NO_READER, WRONG_RESULT
from .options import (
    AxisText,
    AxisValues,
    Duration,
    File,
    OutputFile,
    PrimitiveName,
    RawArguments,
    Seconds,
    adapter_option,
    files_are_named,
    is_file_name,
    table_options,
)
from .output import (
    cannot_write,
    check_output,
    check_tables,
    keep_others_from,
    note,
    note_written,
    shown,
    table_console,
    write_tables,
)

_PROTOCOL_OPTIONS = {"trials": "batch_trials", "warmup_s": "warmup_s", "sampling_s": "timeout_s", "seed": "seed"}
_LEAST_S = 1e-6


class _Bench(RawArguments):
    """Lists the primitives of the registry in its help, and loads them only for that."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, with the names."""
        from ..bench.cases.workloads import WORKLOADS
        from ..bench.sweep.suite import DEFAULT_PRIMITIVES

        others = (name for name in WORKLOADS if name not in DEFAULT_PRIMITIVES)
        names = f"{', '.join(DEFAULT_PRIMITIVES)} (these by default), {', '.join(others)}"
        self.help = (self.help or "").replace("{primitives}", names)
        super().format_help_text(ctx, formatter)


@click.command(cls=_Bench, short_help="Run primitives or your own kernels, check them, and time each kernel.")
@click.argument("primitives", nargs=-1, type=PrimitiveName(), metavar="[PRIMITIVE | FILE.py [NAME]…]…")
@click.option(
    "--n", type=AxisValues("n"), help="Items, such as 2^20,2^24  [default: 2^24; on a CPU adapter by --budget]"
)
@click.option(
    "--datatype",
    type=AxisValues("datatype", ("u32", "i32", "f32", "u64", "i64", "f64", "f16")),
    help="Datatypes; those that a PRIMITIVE lacks are skipped.  [default: u32,f32]",
)
@click.option("--op", type=AxisValues("op", ("add", "min", "max", "multiply")), help="Operators.  [default: add]")
@click.option(
    "--mode", type=AxisValues("mode", ("cold", "hot", "batch", "latency")),
    help="How trials run. batch: many in a pass, for means and short kernels; hot: one per pass, to judge a change; "
    "cold: with the caches emptied before each; latency: one per submission, a caller's wait.  [default: batch]",
)  # fmt: skip
@click.option(
    "-a", "--axis", "axes", type=AxisText(), multiple=True, metavar="AXIS",
    help="An axis of a sweep: n[pow2]=[16:28:2], datatype=u32,f32, distribution=uniform,few, run=1,8,1000 (mean "
    "length of runs of equal keys, or rows of a key), segment[pow2]=[4:16:4] (items of a segment or row), "
    "bins=256,65536, share=0,0.01,0.5,1 (of items selected), along=rows,columns. Repeat for more axes.",
)  # fmt: skip
@click.option(
    "--suite",
    metavar="NAME|FILE",
    help="Run a suite of cases: quick, full, breadth, breadth-full, browser, or a TOML file. PRIMITIVEs and axes "
    "restrict it.",
)
@click.option("--trials", type=click.IntRange(min=1), default=10, show_default=True, help="Dispatches per sample.")
@click.option(
    "--warmup-s", type=Seconds(min=0), default=0.3, show_default=True, help="Shortest warm-up time of a case."
)
@click.option(
    "--sampling-s",
    type=Seconds(min=0),
    default=1.0,
    show_default=True,
    help="Longest sampling time of a case, in all processes together.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the data and of the order of cases.",
)
@click.option(
    "--order", type=click.Choice(("random", "given")), default="random", show_default=True,
    help="Order of cases. random spreads a drift of the machine over all cases; given shows how a case affects the "
    "next.",
)  # fmt: skip
@click.option(
    "--processes", type=click.IntRange(1, 10_000),
    help="In how many processes each case is measured: each process has its own level of times.  [default: 5; on a "
    "CPU adapter 3; or as many as --budget allows]",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=1), default=1, show_default=True,
    help="How often each case is measured in a process.",
)  # fmt: skip
@click.option(
    "--energy", is_flag=True,
    help="Measure the joules of a trial, too, where the GPU's driver has a sensor: 12 s a case in windows of 2 s.",
)  # fmt: skip
@click.option(
    "--isolate", is_flag=True,
    help="Run each case in a separate process, so that a crash fails only that case. Slower.",
)  # fmt: skip
@click.option(
    "--budget", type=Duration(), metavar="TIME",
    help="Target time of the run, such as 60s or 10min: as many processes are measured as end in it, each with the "
    "cases whose interval is wider than ±0.7 % so far. On a CPU adapter, if n is not given, n is chosen to fit it.  "
    "[default: 60s for such a choice; else none]",
)  # fmt: skip
@adapter_option
@click.option(
    "--json", "json_path", type=OutputFile(),
    help="Write results here; timestamps over 200 kB in NAME.ticks.npz. `-` is stdout: the table then goes to stderr.",
)  # fmt: skip
@click.option(
    "--save-baseline", metavar="NAME",
    help="Write results to NAME.json in --baselines instead of --json, over an older one, for gridwise compare "
    "--baseline NAME.",
)  # fmt: skip
@baseline_folder_option
@table_options
@click.option("--overwrite", is_flag=True, help="Replace the --json file if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the table and failures: no progress, no explanations.")
@click.option("--resume", type=File(exists=True), help="Continue this partial file's run.")
@click.pass_context
def bench(ctx: click.Context, /, **options: Any) -> None:
    """Run PRIMITIVEs, check them against numpy, and show what each kernel took.

    PRIMITIVE is one of {primitives}. matmul multiplies n × n matrices: --n 4096. The copy kernel always runs, as the
    reference.

    FILE.py is a file of your own: its functions with the decorator gw.benchmarked are run over their axes, in mode hot,
    or those called NAME. -a and --n take other values of their axes.

    With --adapter all, adapters run one after the other, each with its own results file: NAME.adapter0.json.
    """
    from ..bench.sweep.axes import axis_hint
    from ..bench.sweep.runner import DEFAULT_BUDGET_S, ENERGY_WINDOWS, Request
    from ..bench.sweep.suite import in_rounds, need_datatypes, plan_jobs, with_n

    json_path, resume = options["json_path"], options["resume"]
    if resume is not None and json_path is None:
        from ..bench.results.writer import final_path

        json_path = final_path(resume)
    every = options["adapter"] == "all"
    if options["save_baseline"] is not None:
        if json_path is not None or every:
            other = "--adapter all" if every else "--json or --resume"
            raise click.UsageError(f"--save-baseline names the results file itself; leave out {other}")
        options["json_path"] = json_path = new_baseline(options["save_baseline"], options["baselines"])
        options["overwrite"] = True
    if every and (options["csv"] or options["markdown"]):
        raise click.UsageError("--csv and --markdown take one adapter, not --adapter all")
    check_tables(options)
    if json_path is not None and not every:
        # A resumed run may overwrite its file: the finished cases stay in it.
        _check_json(json_path, overwrite=options["overwrite"] or json_path == resume, resume=resume)
    sweeps, protocol, processes = what_to_run(ctx, options)
    if options["energy"]:
        protocol = replace(protocol, energy_windows=ENERGY_WINDOWS)
    order_seed = protocol.seed if options["order"] == "random" else None
    need_datatypes(sweeps)
    quiet = options["quiet"]
    for hint in () if quiet or files_are_named(ctx) else filter(None, map(axis_hint, options["axes"])):
        note(f"gridwise: {hint}")

    def jobs_of(wanted: Any) -> list[Any]:
        return in_rounds(plan_jobs(wanted), options["rounds"], order_seed)

    request = Request(
        jobs=jobs_of(sweeps),
        protocol=protocol,
        command=ctx.meta["words"],
        suite=options["suite"] and Path(options["suite"]).stem,
        isolate=options["isolate"],
        jobs_at=None if _n_is_given(options) else lambda n: jobs_of(with_n(sweeps, n)),
        budget_s=options["budget"] or DEFAULT_BUDGET_S,
        processes=processes,
        fills_budget=options["budget"] is not None and options["processes"] is None,
        order_seed=order_seed,
    )
    if every:
        sys.exit(_every_adapter(request, options))

    def write(document: Any) -> None:
        from ..bench.report.table import results_export

        write_tables(options, lambda: results_export(document))

    sys.exit(_one_adapter(request, options["adapter"], json_path, resume, quiet, write))


def what_to_run(ctx: click.Context, options: dict[str, Any]) -> tuple[tuple[Any, ...], Any, int | None]:
    """Return the sweeps, the protocol and the number of processes, from a suite or from the axes."""
    from ..bench.sweep.axes import collect_axes
    from ..bench.sweep.suite import BENCH_PROTOCOL, DEFAULT_AXES, DEFAULT_PRIMITIVES, Sweep, load_suite, narrow

    files = any(is_file_name(word) for word in options["primitives"])
    if files and options["suite"] is not None:
        raise click.UsageError("--suite is for primitives; leave it out with a file of your own")
    short = {name: options[name] for name in ("n", "datatype", "op", "mode")}
    suite = None if options["suite"] is None else load_suite(options["suite"])
    typed = {
        field: options[name]
        for name, field in _PROTOCOL_OPTIONS.items()
        if suite is None or ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    if "timeout_s" in typed:
        # 0 asks for the minimum of samples: one block.
        typed["timeout_s"] = typed["timeout_s"] or _LEAST_S
    if files:
        sweeps = benchmarks_of_files(options["primitives"], options["axes"], short)
        return sweeps, replace(BENCH_PROTOCOL, **typed), options["processes"]
    if suite is None:
        axes = collect_axes(options["axes"], short, DEFAULT_AXES)
        primitives = options["primitives"] or DEFAULT_PRIMITIVES
        return (Sweep(primitives, axes),), replace(BENCH_PROTOCOL, **typed), options["processes"]
    sweeps = narrow(suite.sweeps, collect_axes(options["axes"], short, {}), options["primitives"])
    if not sweeps:
        raise click.UsageError(f"the suite {suite.name!r} has none of {', '.join(options['primitives'])}")
    protocol = replace(BENCH_PROTOCOL, **{**suite.protocol, **typed})
    return sweeps, protocol, options["processes"] or suite.processes


def benchmarks_of_files(
    words: Sequence[str], axes: Sequence[str], short: Mapping[str, str | None], *, with_baselines: bool = True
) -> tuple[Any, ...]:
    """Return a sweep for each benchmark that ``FILE.py [NAME]… …`` names, and for their baselines.

    Raises
    ------
    ArgumentError
        If a file cannot be loaded, or has no such benchmark or axis.
    """
    from ..bench.cases.own_files import OWN_WORKLOADS, OwnWorkload, load_benchmarks
    from ..bench.sweep.suite import own_sweeps

    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if is_file_name(word):
            path, _, name = (word, "", "") if word.endswith(".py") else word.rpartition(":")
            groups.append((os.path.abspath(path), [name] if name else []))
        elif groups:
            groups[-1][1].append(word)
        else:
            raise click.UsageError(f"{word!r} stands before the file; write FILE.py, then the names of its benchmarks")
    found: dict[str, OwnWorkload] = {}
    for path, names in groups:
        file, of_file = Path(path), load_benchmarks(path)
        short_names = [name.removeprefix(f"{file.stem}.") for name in names]
        for name in (name for name in short_names if name not in of_file):
            raise click.UsageError(
                f"{file.name} has no benchmark {name!r}; it has {', '.join(of_file)}{nearest(name, of_file)}"
            )
        for workload in [of_file[name] for name in short_names] or of_file.values():
            other = found.setdefault(workload.full_name, workload)
            if other.path != workload.path:
                name = workload.declared.name
                raise click.UsageError(
                    f"two files are called {file.name}, and both have a benchmark {name!r}; rename one"
                )
    for workload in list(found.values()) if with_baselines else ():
        baseline = workload.declared.baseline
        if baseline is not None and "=" not in baseline:
            full_name = f"{workload.path.stem}.{baseline}"
            found.setdefault(full_name, OWN_WORKLOADS[full_name])
    sweeps = own_sweeps(list(found.values()), axes, short)
    if not sweeps:
        raise click.UsageError("no benchmark has all of these values of its axes; leave one out")
    return sweeps


def _n_is_given(options: dict[str, Any]) -> bool:
    """Whether n was given; all axes are valid here."""
    from ..bench.sweep.axes import parse_axis

    named = options["n"] is not None or options["suite"] is not None
    if named or any(is_file_name(word) for word in options["primitives"]):
        return True  # a file of benchmarks says its sizes itself
    return any(parse_axis(text).name == "n" for text in options["axes"])


def _check_json(path: Path, *, overwrite: bool, resume: Path | None = None) -> None:
    """End with `BAD_INPUT` unless results can be written there, before anything is measured."""
    from ..bench.results.writer import check_results_path, partial_path, without_link
    from ..storage.files import is_stream

    keep_others_from(path, "--json")
    check_output(path, "--json", overwrite=overwrite)
    partial = partial_path(without_link(path))
    if not overwrite and resume is None and not is_stream(path) and partial.is_file():
        note(
            f"gridwise: --json: {shown(partial)} has the finished cases of a run that was interrupted, or is under "
            f"way; go on with --resume {shown(partial)}, name another file, or add --overwrite"
        )
        sys.exit(BAD_INPUT)
    try:
        check_results_path(path)
    except OSError as error:
        sys.exit(cannot_write("--json", path, error))


def _every_adapter(request: Any, options: dict[str, Any]) -> int:
    """Run on all adapters, also after one that is unusable; return the worst exit code."""
    from .. import list_adapters
    from ..errors import GridwiseError
    from ..storage.files import is_stream

    json_path: Path | None = options["json_path"]
    if options["resume"] is not None:
        raise click.UsageError("--resume takes one adapter, not --adapter all: each adapter has its own file")
    if json_path is not None and is_stream(json_path):
        raise click.UsageError("--adapter all writes a file per adapter, so --json takes a name, not a pipe or device")
    # Without any, the same message as for any other adapter.
    numbers: list[int | None] = [adapter.index for adapter in list_adapters()] or [None]
    paths = [
        json_path and json_path.with_name(f"{json_path.name.removesuffix('.json')}.adapter{i}.json") for i in numbers
    ]
    for path in filter(None, paths):
        _check_json(path, overwrite=options["overwrite"])
    codes: list[int] = []
    for number, path in zip(numbers, paths, strict=True):
        try:
            codes.append(_one_adapter(request, number, path, None, options["quiet"]))
        except GridwiseError as error:
            if number is None:
                raise
            note(f"gridwise: adapter {number}: {error}")
            codes.append(BAD_INPUT)
    return next((code for code in (WRONG_RESULT, BAD_INPUT, NO_ADAPTER) if code in codes), 0)


def _one_adapter(
    request: Any, adapter: int | str | None, json_path: Path | None, resume: Path | None, quiet: bool,
    write: Callable[[Any], None] = lambda document: None,
) -> int:  # fmt: skip
    """Run, show, and return the exit code; `write` writes tables of the document."""
    from rich.text import Text

    from ..bench.report.console import make_console
    from ..bench.report.table import results_table
    from ..bench.results.precision import precision_line
    from ..bench.results.writer import partial_path, without_link
    from ..bench.sweep.runner import RunProgress, UnwrittenResults, run_jobs
    from .progress import BenchProgress

    partial = json_path and partial_path(without_link(json_path))
    unwritten: OSError | None = None
    live = BenchProgress(make_console(stderr=True))
    progress = RunProgress() if quiet else live
    console = table_console(120)
    try:
        with nullcontext() if quiet else live:
            document = run_jobs(request, adapter, json_path=json_path, resume_from=resume, progress=progress)
    except KeyboardInterrupt:
        if progress.made is not None and (found := progress.made()).results:
            console.print(results_table(found, quiet=quiet))
        if partial is not None and partial.is_file():
            also = " --overwrite" if json_path is not None and json_path.is_file() else ""
            place = shown(partial)
            note(f"gridwise: finished cases are in {place}; the same command with --resume {place}{also} goes on")
        raise
    except UnwrittenResults as error:
        document, unwritten = error.document, error.error
    console.print(results_table(document, quiet=quiet))
    for text in live.left_out_notes:
        console.print(Text(text, style="yellow"))
    reached = precision_line(document.levels, document.results, fills_budget=request.fills_budget)
    if reached and not quiet:
        console.print(Text(reached))
    write(document)
    if json_path is not None and unwritten is None:
        stamps = f", and its timestamps in {document.ticks_file}" if document.ticks_file else ""
        note_written(json_path, stamps)
    elif json_path is not None and unwritten is not None:
        kept = f"; the cases that were finished before are in {shown(partial)}" if partial and partial.is_file() else ""
        code = cannot_write("--json", json_path, unwritten, kept)
        if code == NO_READER:
            return code
    if any(result.mismatch is not None for result in document.results):
        return WRONG_RESULT
    failed = unwritten is not None or any(result.error is not None for result in document.results)
    return BAD_INPUT if failed else 0
