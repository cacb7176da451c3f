"""Makes the files of figures that the pages quote: all scripts that one machine can run, one after another.

Usage: python benchmarks/figures.py [NAME…] [--out FOLDER] [--budget-s 540] [--cub FOLDER] [--again] [--list]

benchmarks/figures.toml has the commands. Without names, those whose file is missing in the folder run, in the order of
that file; --again runs the others, too. A command that does not fit what is left of --budget-s is left out, and one
that takes twice its time is ended. Scripts write their file at the end, some of them after each case, so what was
measured stays. CUB's programs are built once, with nvcc, or taken from the folder of --cub.

Ends with 1 if a script failed; those that this machine cannot run are named with the reason, and are no failure.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

import gridwise_py as gw

HERE = Path(__file__).resolve().parent
PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Figure:
    """A file of figures.

    Attributes
    ----------
    file : str
        Its name.
    command : str
        A script, from benchmarks/, or `gridwise`, and its options.
    seconds : float
        About how long it takes on an H200.
    needs : tuple of str
        Python packages.
    gpus : int
        How many GPUs the machine must have.
    """

    file: str
    command: str
    seconds: float
    needs: tuple[str, ...] = ()
    gpus: int = 1

    @property
    def programs(self) -> list[str]:
        """The CUDA programs that the command names."""
        return [name for name in PLACE.findall(self.command) if name != "out"]

    def words(self, places: dict[str, Path]) -> list[str]:
        """Return the command as a process takes it."""
        words = [PLACE.sub(lambda found: str(places[found[1]]), word) for word in shlex.split(self.command)]
        words = [str(HERE / word) if word.endswith(".py") else word for word in words]
        return [sys.executable, *(["-m", "gridwise_py", *words[1:]] if words[0] == "gridwise" else words)]


def figures() -> list[Figure]:
    """Return what figures.toml has."""
    entries = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))["figure"]
    return [Figure(**{**each, "needs": tuple(each.get("needs", ()))}) for each in entries]


def missing(figure: Figure, gpus: int) -> str | None:
    """Return why this machine cannot run a command, without the programs; None if it can."""
    absent = [name for name in figure.needs if find_spec(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return f"needs {figure.gpus} GPUs, here are {gpus}" if gpus < figure.gpus else None


class Programs:
    """CUDA programs, each built once at most."""

    def __init__(self, built: Path | None, folder: Path):
        self._built, self._folder = built, folder
        self._found: dict[str, Path | str] = {}

    def path(self, name: str) -> Path | str:
        """Return where a program is, or why there is none."""
        if name not in self._found:
            if self._built is None:
                sys.path.insert(0, str(HERE / "peers"))
                from harness import build_cub

                self._found[name] = build_cub(self._folder, name)
            else:
                path = self._built / name
                self._found[name] = path.resolve() if path.is_file() else f"{path} is no program"
        return self._found[name]


def run(figure: Figure, places: dict[str, Path], limit_s: float) -> tuple[bool, str]:
    """Run a command, its output into a file beside the figures; return whether it succeeded, and how it ended."""
    log = places["out"].with_suffix(".log")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            figure.words(places), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False, f"ended after {limit_s:.0f} s; the log is {log}"
        finally:  # with the processes that it started, which would disturb the next script
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return code == 0, "done" if code == 0 else f"exit {code}: {(lines or [''])[-1]}; the log is {log}"


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--out", "folder", type=click.Path(file_okay=False, path_type=Path), help="Default: results/ADAPTER.")
@click.option("--budget-s", default=1e9, help="Seconds in all; by default as long as it takes.")
@click.option("--cub", "built", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Built programs.")
@click.option("--again", is_flag=True, help="Also what is there.")
@click.option("--any-adapter", is_flag=True, help="Also on a machine without a GPU, where most take very long.")
@click.option("--list", "only_list", is_flag=True, help="Print the commands and whether they run here; run none.")
def main(names, folder, budget_s, built, again, any_adapter, only_list) -> None:
    """Run them."""
    known = {each.file.removesuffix(".json"): each for each in figures()}
    unknown = [name for name in names if name.removesuffix(".json") not in known]
    if unknown:
        raise click.UsageError(f"no figures are called {', '.join(unknown)}; --list names all")
    chosen = [known[name.removesuffix(".json")] for name in names] or list(known.values())
    adapters = gw.list_adapters()
    gpus = sum(any_adapter or each.type in ("DiscreteGPU", "IntegratedGPU") for each in adapters)
    if folder is None:
        folder = HERE / "results" / re.sub(r"[^a-z0-9]+", "-", adapters[0].name.lower()).strip("-")
    begin_s = time.monotonic()
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as builds:
        programs = Programs(built, Path(builds))
        for figure in chosen:
            why_not = missing(figure, gpus)
            if only_list:
                print(f"{figure.file:32} {figure.seconds:5.0f} s  {why_not or 'runs here'}\n    {figure.command}")
                continue
            out = folder / figure.file
            left_s = budget_s - (time.monotonic() - begin_s)
            if out.exists() and not again and not names:
                continue
            if why_not is None and figure.seconds > left_s:
                why_not = f"takes {figure.seconds:.0f} s, and {max(0.0, left_s):.0f} are left"
            found = {} if why_not else {name: programs.path(name) for name in figure.programs}
            why_not = why_not or next((path for path in found.values() if isinstance(path, str)), None)
            if why_not:
                print(f"{figure.file:32} not run: {why_not}", flush=True)
                continue
            folder.mkdir(parents=True, exist_ok=True)
            places = {name: path for name, path in found.items() if isinstance(path, Path)} | {"out": out.resolve()}
            started_s = time.monotonic()
            succeeded, how = run(figure, places, min(2 * figure.seconds + 30, left_s))
            print(f"{figure.file:32} {time.monotonic() - started_s:5.0f} s  {how}", flush=True)
            failed += [] if succeeded else [figure.file]
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
