"""Loads a user's file of benchmarks (gridwise bench FILE) and registers them; its errors are told by line."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, NoReturn

import numpy as np
import wgpu

from ...errors import ArgumentError, DeviceError, GridwiseError, ShaderError
from ...internals import context_of, where_in_shader
from ...settings import SHADER_CHECKS
from .benchmarked import AxisValue, Benchmark, Declared, axes_of_baseline, axis_text, collecting

#: By full name, ``FILE.NAME``: the benchmarks of the files that this process has loaded.
OWN_WORKLOADS: dict[str, OwnWorkload] = {}

_MODULE = "gridwise_benchmarks_of_"


class OwnCodeError(ArgumentError):
    """The code of a user raised; the message says in which line and what."""


@dataclass(frozen=True)
class Baseline:
    """The case that the times of another one are shown relative to; n and mode are the same.

    Attributes
    ----------
    primitive : str
    axes : mapping from str to str
        All others.
    """

    primitive: str
    axes: Mapping[str, str]


@dataclass(frozen=True)
class OwnWorkload:
    """A benchmark of a user's file, as the workloads of this library are.

    Attributes
    ----------
    path : Path
        The file.
    declared : Declared
    """

    path: Path
    declared: Declared

    @property
    def full_name(self) -> str:
        """``FILE.NAME``: no primitive of the library has a dot in its name."""
        return f"{self.path.stem}.{self.declared.name}"

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of its axes besides n and mode."""
        return tuple(name for name in self.declared.axes if name not in ("n", "mode"))

    def value(self, axis: str, text: str) -> AxisValue:
        """Return the value of an axis that a text stands for."""
        values = self.declared.axes.get(axis, SHADER_CHECKS)
        for value in values:
            if axis_text(value) == text:
                return value
        return float(text) if isinstance(values[0], float) else int(text)

    def size(self, values: Mapping[str, AxisValue]) -> int:
        """Return n at a point of its axes."""
        if self.declared.size is None:
            return int(values.get("n", 1))
        wanted = inspect.signature(self.declared.size).parameters
        try:
            found: Any = self.declared.size(**{name: values[name] for name in wanted})
        except Exception as error:
            raise ArgumentError(f"{self.full_name}: n=… of the axes fails: {in_one_line(error, self.path)}") from error
        size: Any = found.item() if isinstance(found, np.generic) else found
        if type(size) not in (int, float) or not 1 <= size < 2**63 or int(size) != size:
            raise ArgumentError(f"{self.full_name}: n=… of the axes gives {found!r:.40}, not a count of at least 1")
        return int(size)

    def baseline(self, axes: Mapping[str, str]) -> Baseline | None:
        """Return the baseline of a case; None if it has none, or is it."""
        given = self.declared.baseline
        if given is None:
            return None
        if "=" not in given:
            return Baseline(f"{self.path.stem}.{given}", axes)
        place = {**axes, **axes_of_baseline(given)}
        return None if place == axes else Baseline(self.full_name, place)

    def device(self, device: wgpu.GPUDevice, axes: Mapping[str, str]) -> wgpu.GPUDevice:
        """Return the device for a point of its axes: with ``shader_checks``, one whose shaders all have these."""
        level: Any = None if "shader_checks" in self.declared.axes else axes.get("shader_checks")
        if level is None:
            return device
        return context_of(device).with_checks(level)

    def benchmark(self, device: wgpu.GPUDevice, n: int, mode: str, axes: Mapping[str, str], seed: int) -> Benchmark:
        """Return what it runs at a point of its axes.

        Raises
        ------
        ArgumentError
            If the user's code raises; with the line where.
        """
        values = {name: self.value(name, text) for name, text in axes.items() if name in self.declared.axes}
        if "n" in self.declared.axes:
            values["n"] = n
        if "mode" in inspect.signature(self.declared.make).parameters:
            values["mode"] = mode
        return self.guarded(lambda: self.declared.call(device, values, (seed, n)))

    def guarded(self, call: Callable[[], Any]) -> Any:
        """Call the user's code; raise what it raises as an ArgumentError that names its line."""
        try:
            with _in_this_process():
                return call()
        except (KeyboardInterrupt, MemoryError, wgpu.GPUError, DeviceError, OwnCodeError):
            raise
        except GridwiseError as error:
            line = _line_in(error.__traceback__, self.path)
            if line is None:
                raise
            raise OwnCodeError(in_one_line(error, self.path)) from error
        except BaseException as error:  # SystemExit, too: the exit code of a command is a verdict
            raise OwnCodeError(in_one_line(error, self.path)) from error


@contextmanager
def _in_this_process() -> Generator[None]:
    """Let the code of a user neither end this process, whose exit code is a verdict, nor leave a forked child in it.

    The child would measure and write, too: it ends where it leaves this code.
    """
    process, leave = os.getpid(), os._exit

    def refuse(code: int) -> NoReturn:
        if os.getpid() == process:
            raise SystemExit(f"os._exit({code})")
        leave(code)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave
        if os.getpid() != process:
            leave(0)


def load_benchmarks(path: str | Path) -> dict[str, OwnWorkload]:
    """Import a file, and return its benchmarks by their short names; a file that was loaded before is loaded again.

    The folder of the file is searched for modules meanwhile and afterwards, as if Python ran it.

    Raises
    ------
    ArgumentError
        If it cannot be read, raises, or declares no benchmark, or two of one name.
    """
    path = Path(path)
    if not path.is_file():
        raise ArgumentError(f"{path}: there is no such file of benchmarks; this folder is {Path.cwd()}")
    where = path.resolve()
    name = _MODULE + where.stem
    spec = importlib.util.spec_from_file_location(name, where, loader=_AsItIsNow(name, str(where)))
    assert spec is not None, "the loader is given"
    assert spec.loader is not None, "the loader is given"
    _search_first(where.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with collecting() as declared:
        try:
            with _in_this_process():
                spec.loader.exec_module(module)
        except KeyboardInterrupt:
            raise
        except GridwiseError as error:  # a benchmark that is declared wrongly, most often
            raise ArgumentError(f"{path.name}, {in_one_line(error, where, kind=False)}") from error
        except BaseException as error:
            raise ArgumentError(
                f"{path.name} cannot be imported: {in_one_line(error, where)}; python {path} shows all of it"
            ) from error
    return _registered(path.name, where, [one for one in declared if one.module == name])


def _search_first(folder: Path) -> None:
    """Let a folder be searched first, and forget modules of its names that came with a file of another folder."""
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    others = {own.path.parent for own in OWN_WORKLOADS.values()} - {folder}
    names: list[str] = []
    for name in list(sys.modules):
        top = name.partition(".")[0]
        file = Path(getattr(sys.modules.get(top), "__file__", None) or "")
        home = file.parent.parent if file.name == "__init__.py" else file.parent
        if home in others and ((folder / f"{top}.py").exists() or (folder / top).exists()):
            names.append(name)
    for name in names:
        del sys.modules[name]


class _AsItIsNow(importlib.machinery.SourceFileLoader):
    """Compiles the file at each import: Python's cache takes what was written within a second for the same."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _registered(shown: str, path: Path, declared: Sequence[Declared]) -> dict[str, OwnWorkload]:
    """Put the benchmarks of a file into the registry, and return them by their short names."""
    found: dict[str, OwnWorkload] = {}
    for one in declared:
        if one.name in found:
            raise ArgumentError(
                f"{shown}: two benchmarks are called {one.name!r}, at lines {found[one.name].declared.line} and "
                f"{one.line}; rename one, or give it name="
            )
        found[one.name] = OwnWorkload(path, one)
    if not found:
        raise ArgumentError(
            f"{shown} declares no benchmark; put @gw.benchmarked(n=[…]) before a function that returns a gw.Benchmark"
        )
    for name, workload in found.items():
        baseline = workload.declared.baseline
        if baseline is not None and "=" not in baseline:
            other = found.get(baseline)
            if other is None:
                raise ArgumentError(
                    f"{shown}: the baseline of {name} is {baseline!r}, which is none of {', '.join(found)}"
                )
            if set(other.axes) != set(workload.axes):
                raise ArgumentError(f"{shown}: {name} and its baseline {baseline!r} must have the same axes")
    names = {workload.full_name for workload in found.values()}
    for full_name in [name for name, own in OWN_WORKLOADS.items() if own.path == path or name in names]:
        del OWN_WORKLOADS[full_name]
    OWN_WORKLOADS.update({workload.full_name: workload for workload in found.values()})
    return found


def in_one_line(error: BaseException, path: Path, *, kind: bool = True) -> str:
    """Return an error in one line: the last place in a file where it passed, its kind where wanted, its message."""
    line = _line_in(error.__traceback__, path)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno
    place = "" if line is None else f"line {line}: "
    said, _, rest = str(error.msg if isinstance(error, SyntaxError) else error).strip().partition("\n")
    if isinstance(error, ShaderError):
        said += where_in_shader(rest)
    words = [type(error).__name__] if kind or not said else []
    return place + ": ".join([*words, said] if said else words)[:500]


def _line_in(trace: TracebackType | None, path: Path) -> int | None:
    """Return the line of a file that a traceback passed last."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
