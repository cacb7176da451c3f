"""Parameter types and options that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .. import settings
from ..call_errors import nearest
from ..storage import files


class AxisValues(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """The values of one axis, as ``-a NAME=VALUES`` takes them."""

    def __init__(self, axis: str, choices: Sequence[str] | None = None):
        self.name = axis
        self.choices = choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what help shows."""
        return f"[{'|'.join(self.choices)}],…" if self.choices else "COUNT,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check, and return the text: all axes are combined later."""
        if files_are_named(ctx):  # of a user: it may say what values there are
            return str(value)
        from ..bench.sweep.axes import parse_axis
        from ..errors import ArgumentError

        try:
            parse_axis(f"{self.name}={value}")
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Count(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """A count of at least 1, as an axis takes it: ``1000``, ``2^20``, ``1e6``."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Check and read."""
        from ..bench.sweep.axes import parse_count

        count = parse_count(str(value).strip())
        if not count:
            self.fail(f"{value!r} is not a count of at least 1; write 1000, 1_000_000, 2^24 or 1e6", param, ctx)
        return count


_STDOUT = Path("/dev/stdout")


class File(click.Path):
    """A file or folder, as an absolute path: a user's file that is imported later may change to another folder."""

    def __init__(self, *, exists: bool = False, folder: bool = False):
        super().__init__(exists=exists, dir_okay=folder, file_okay=not folder, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check and read."""
        path = Path(value)
        if ctx is not None and not path.is_absolute():
            ctx.meta["folder"] = path.cwd()
        return super().convert(path.absolute(), param, ctx)


class OutputFile(File):
    """A file to write, or ``-`` for standard output; whatever else is printed then goes to stderr."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check and read."""
        if str(value) == "-" and not _STDOUT.exists():
            self.fail("standard output is no file on this system; name a file", param, ctx)
        path = _STDOUT if str(value) == "-" else super().convert(value, param, ctx)
        if ctx is None or param is None or not files.is_stdout(path):
            return path
        return take_stdout(ctx, param.opts[-1])


def take_stdout(ctx: click.Context, option: str) -> Path:
    """Keep standard output for the file of an option until the command ends, and return its path."""
    other = ctx.meta.setdefault("stdout", option)
    if other != option:
        raise click.UsageError(f"only one of {other} and {option} can be standard output; name a file for the others")
    return ctx.find_root().with_resource(files.standard_output())


_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _in_seconds(text: str) -> float | None:
    """Return a time with or without its unit in seconds; None if it is none."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?) *([a-z]*)", text.strip())
    return None if found is None or found[2] not in _UNITS_S else float(found[1]) * _UNITS_S[found[2]]


class Seconds(click.FloatRange):
    """A number of seconds, for options whose names end in the unit."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check and read."""
        try:
            float(value)
        except ValueError:
            known_s = _in_seconds(str(value))
            example = "such as 0.5" if known_s is None else f"without a unit: {known_s:g}"
            self.fail(f"{value!r} is not a number of seconds; write one {example}", param, ctx)
        return super().convert(value, param, ctx)


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """A time in seconds: ``90``, ``90s``, ``5min``, ``1h``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Check and read."""
        if isinstance(value, float):
            return value
        seconds = _in_seconds(str(value))
        if seconds is None:
            self.fail(f"{value!r} is not a time; write 60s, 5min or 1h", param, ctx)
        if not 1 <= seconds <= 1e6:
            self.fail(f"{value!r} is not between 1s and 1e6 s", param, ctx)
        return seconds


class Share(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """A share: ``2%`` or ``0.02``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a share; write 2% or 0.02", param, ctx)
        if not 0 <= share < 1:
            self.fail(f"{value!r} is not between 0 and 100 %; write 2% or 0.02", param, ctx)
        return share


class AxisText(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """A whole axis: ``NAME[MODIFIER]=VALUES``."""

    name = "axis"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check; the text is kept. The axes of a user's file are known when it is loaded."""
        if files_are_named(ctx):
            return str(value)
        from ..bench.sweep.axes import parse_axis
        from ..errors import ArgumentError

        try:
            parse_axis(str(value))
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def is_file_name(word: str) -> bool:
    """Whether a word names a file of Python, or with ``:NAME`` behind it a benchmark there."""
    return re.fullmatch(r".*\.py(:[\w-]+)?", word) is not None


def files_are_named(ctx: click.Context | None) -> bool:
    """Whether a command line names a user's file of benchmarks."""
    words: Sequence[str] = () if ctx is None else ctx.meta.get("words", ())
    return any(is_file_name(word) for word in words)


class RawArguments(click.Command):
    """Keeps the command line in ``ctx.meta["words"]``, for a results file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep, and parse."""
        ctx.meta["words"] = [ctx.info_name or "", *args]
        return super().parse_args(ctx, args)


class PrimitiveName(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # older releases of click have none
    """The name of a workload, which are loaded only when needed; or a user's file of benchmarks, or one of them."""

    name = "primitive"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check; behind a file stand names of its benchmarks, which are known when it is loaded."""
        if files_are_named(ctx):
            return str(value)
        from ..bench.cases.workloads import WORKLOADS

        if value not in WORKLOADS:
            self.fail(
                f"{value!r} is not one of {', '.join(WORKLOADS)}{nearest(value, WORKLOADS) or '.'} A benchmark of "
                f"your own stands behind its file: FILE.py {value}",
                param,
                ctx,
            )
        return value


def _set_engine(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        settings.set_engine(value)  # so that the processes which a command starts have it, too


def _set_toggles(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        if settings.engine() != "dawn":
            raise click.BadParameter(f"the engine {settings.engine()} has no toggles; add --engine dawn")
        settings.toggles_of(value, "--toggles")
        settings.set_toggles(value)


def adapter_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--adapter``, and ``--engine`` and ``--toggles``, which set ``GRIDWISE_ENGINE`` and ``GRIDWISE_TOGGLES``."""
    engine = click.option(
        "--engine",
        type=click.Choice(tuple(settings.ENGINES)),
        expose_value=False,
        is_eager=True,  # before the toggles, which are of an engine
        callback=_set_engine,
        help="Implementation of WebGPU; dawn needs the extra of that name. Default: GRIDWISE_ENGINE, or wgpu.",
    )
    toggles = click.option(
        "--toggles",
        metavar="NAME[=off],…",
        expose_value=False,
        callback=_set_toggles,
        help="Switches of Dawn, such as disable_robustness. Results files have them. Default: GRIDWISE_TOGGLES.",
    )
    adapter = click.option(
        "--adapter",
        metavar="INDEX|NAME",
        help="Adapter by index or part of its name (`gridwise info` lists them). Default: GRIDWISE_ADAPTER.",
    )
    return adapter(engine(toggles(command)))


def certificate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--insecure``, and ``--tls-ca``, ``--tls-cert`` and ``--tls-key``, which `certificates_of` reads."""
    helps = {"key": "Its key.", "cert": "This host's certificate.", "ca": "The cluster's certificate authority."}
    for name, text in helps.items():
        command = click.option(f"--tls-{name}", type=File(exists=True), help=text)(command)
    return click.option("--insecure", is_flag=True, help="Allow an address without TLS outside of this host.")(command)


def certificates_of(options: Mapping[str, Any]) -> Any:
    """Return the `Certificates` of a command line; None leaves them to Dask's configuration."""
    given = [options[name] for name in ("tls_ca", "tls_cert", "tls_key")]
    if not all(given):
        if any(given):
            raise click.UsageError("--tls-ca, --tls-cert and --tls-key belong together: give all three, or none")
        return None
    from ..dask.serving import Certificates

    return Certificates(*map(str, given))


def check_dask(command: str) -> None:
    """Raise UsageError, with the remedy, unless the extra ``dask`` is installed."""
    from .. import extras

    try:
        extras.check_dask_is_installed(command)
    except ImportError as error:
        raise click.UsageError(str(error)) from error


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--format table|json``, for the output, as ``form``."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="Output format.",
    )(command)


#: As `ToolFormat` and `UNITS_NS` have them, which are loaded only when needed; a test compares them.
TOOL_FORMATS = ("nvbench", "google-benchmark", "pytest-benchmark", "hyperfine", "numbers")
TOOL_UNITS = ("ns", "us", "ms", "s")


def tool_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--format`` and ``--unit`` of other tools' output, as ``form`` and ``unit``."""
    unit = click.option(
        "--unit", type=click.Choice(TOOL_UNITS), help="Unit of --format numbers, whose lines do not say it."
    )
    form = click.option(
        "--format",
        "form",
        type=click.Choice(TOOL_FORMATS),
        help="What another tool wrote; numbers: one time per line.  [default: that of the JSON]",
    )
    return form(unit(command))


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--csv`` and ``--markdown``, for the table, as ``csv`` and ``markdown``."""
    csv = click.option(
        "--csv",
        type=OutputFile(),
        help="Write the rows here, as numbers in ns. `-` is stdout: the table goes to stderr.",
    )
    markdown = click.option("--markdown", type=OutputFile(), help="Write the table here, in GitHub's markdown; or `-`.")
    return csv(markdown(command))
