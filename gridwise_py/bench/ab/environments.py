"""The two sides of `gridwise ab`: which interpreter runs, and which copy of the library it imports.

A side is given as an interpreter, the folder of a virtual environment, the folder of a checkout, a wheel, a requirement
for pip, or a revision of the git repository in the working directory. Checkouts, wheels and revisions run in the
interpreter of this process with its packages, so that only the library differs.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ... import settings
from ...errors import ArgumentError
from ...storage.cache import code_folder
from ...storage.locks import Locked, locked

_PACKAGE = "gridwise_py"
#: The parts of a checkout that the library needs.
CONTENT = (_PACKAGE, "shaders")
#: Python 3.11.3 and older have no filters; git makes the archive from names that a repository may have.
_SAFELY: Mapping[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
_GIT_TIMEOUT_S = 60
#: Git's own words on a repository of another user name the folder as its settings need it.
_UNTRUSTED = re.compile(r"git config --global --add safe\.directory .+")
_PIP_TIMEOUT_S = 1800
_BENCHMARK = re.compile(r"(?P<file>.+\.py)(:(?P<name>[\w-]+))?")
_REQUIREMENT = re.compile(r"gridwise[-_.]py\s*(\[[\w,\s.-]*\])?\s*(===|==|~=|!=|<=|>=|<|>|@)", re.IGNORECASE)


@dataclass(frozen=True)
class Environment:
    """One side.

    Attributes
    ----------
    given : str
        As the user named it.
    kind : str
        ``"interpreter"``, ``"checkout"``, ``"wheel"``, ``"requirement"`` or ``"revision"``; of a user's file also
        ``"file"`` or ``"folder"``.
    python : Path
        The interpreter.
    folder : Path or None
        The folder that has the package; None where the interpreter finds it by itself.
    commit : str or None
        The commit of a revision or checkout.
    changed : bool
        Whether a checkout differs from its commit.
    unknown : str
        Why the commit of a checkout is not known, where git would not say it; else empty.
    file : Path or None
        The user's file of benchmarks of this side; None for primitives.
    benchmark : str or None
        The one of the file that this side runs; None for the one that the case names.
    engine : str or None
        The implementation of WebGPU that it runs on; None for what the environment says.
    """

    given: str
    kind: str
    python: Path
    folder: Path | None = None
    commit: str | None = None
    changed: bool = False
    unknown: str = ""
    file: Path | None = None
    benchmark: str | None = None
    engine: str | None = None

    def variables(self) -> dict[str, str]:
        """Return the environment variables for its interpreter."""
        variables = settings.variables_of_children()
        own = variables.pop("PYTHONPATH", None)
        variables.pop("PYTHONHOME", None)
        folder = str(self.folder) if self.folder is not None else None
        # This interpreter may find its other packages there.
        others = own if self.python == Path(sys.executable) else None
        if paths := os.pathsep.join(filter(None, (folder, others))):
            variables["PYTHONPATH"] = paths
        return variables if self.engine is None else {**variables, "GRIDWISE_ENGINE": self.engine}

    def describe(self) -> str:
        """Return what it is, in a few words."""
        on = "" if self.engine is None else f" on {self.engine}"
        if self.commit is None:
            return f"{self.kind} {self.given}" + (f" (commit unknown: {self.unknown})" if self.unknown else "") + on
        return f"{self.kind} {self.given} ({self.commit[:10]}{' with changes' if self.changed else ''}){on}"


def find_environment(given: str, *, say: Callable[[str], None] = lambda text: None) -> Environment:
    """Return the environment that a user named; revisions, wheels and requirements are unpacked.

    Parameters
    ----------
    given : str
    say : callable
        Receives a line before a step that takes long.

    Raises
    ------
    ArgumentError
        If it is nothing of the kind, or git or pip fail.
    """
    path = Path(given).expanduser()
    if given and path.is_dir():
        found = _of_folder(given, path.absolute())
        if found is not None:
            return found
    elif path.is_file():
        if path.suffix == ".whl":
            return _of_wheel(given, path)
        if path.suffix.lower() in ("", ".exe") or path.name.startswith("python"):
            return Environment(given, "interpreter", path.absolute())
    elif _REQUIREMENT.match(given):
        return _of_requirement(given, say)
    commit = _commit(Path.cwd(), given)
    if commit is None:
        raise ArgumentError(
            f"{given!r} is no side of a comparison: give an interpreter (.venv-old/bin/python), the folder of a "
            f"virtual environment or of a checkout, a wheel (.whl), a requirement for pip (gridwise-py==0.1.0), or a "
            f"revision of the git repository in this folder"
        )
    return _of_revision(given, Path.cwd(), commit)


def _of_folder(given: str, folder: Path) -> Environment | None:
    """Return the environment of a folder; None if it is neither virtual environment nor checkout."""
    for name in ("bin/python", "Scripts/python.exe"):
        if (folder / "pyvenv.cfg").is_file() and (folder / name).exists():
            return Environment(given, "interpreter", folder / name)
    if not (folder / _PACKAGE / "__init__.py").is_file():
        return None
    try:
        commit = _commit(folder, "HEAD") if (folder / ".git").exists() else None
    except ArgumentError as error:  # its files run all the same
        return Environment(given, "checkout", Path(sys.executable), folder, unknown=str(error))
    changed = commit is not None and bool(_git(folder, "status", "--porcelain", "--", *CONTENT))
    return Environment(given, "checkout", Path(sys.executable), folder, commit, changed)


# ---- users' files


def find_side(given: str, file: Path | None, *, say: Callable[[str], None] = lambda text: None) -> Environment:
    """Return a side that runs benchmarks of a user's file.

    Parameters
    ----------
    given : str
        ``FILE.py``, or with ``:NAME`` one of its benchmarks; a revision of the git repository that `file` is in; a
        folder that has another state of it; or, for another version of this library with the same file, as
        `find_environment` takes it.
    file : Path or None
        What the command names behind the sides; None if the sides name files themselves.
    say : callable
        As of `find_environment`.

    Raises
    ------
    ArgumentError
        If it is nothing of the kind, or has no such file.
    """
    named = _BENCHMARK.fullmatch(given)
    if named is not None:
        own = Path(named["file"])
        if not own.is_file():
            raise ArgumentError(f"{own}: there is no such file of benchmarks")
        return Environment(given, "file", Path(sys.executable), file=own.resolve(), benchmark=named["name"])
    if file is None:
        raise ArgumentError(f"{given!r} is no file of benchmarks, as the other side is; write FILE.py:NAME")
    top = _git(file.absolute().parent, "rev-parse", "--show-toplevel") if file.absolute().parent.is_dir() else None
    repository = None if top is None else Path(top.decode().strip())
    folder = Path(given).expanduser()
    if given and folder.is_dir() and not (folder / "pyvenv.cfg").is_file():
        return _of_other_folder(given, folder.resolve(), file, repository)
    commit = None if folder.is_file() or repository is None else _commit(repository, given)
    if commit is None or repository is None:
        found = find_environment(given, say=say)  # of the library, with the file as it is
        if not file.is_file():
            raise ArgumentError(f"{file}: there is no such file of benchmarks")
        return replace(found, file=file.resolve())
    inside = _inside(file, repository)
    tree = _tree(given, repository, commit)
    if not (tree / inside).is_file():
        raise ArgumentError(f"{given!r} ({commit[:10]}) of {repository.name} has no file {inside}")
    package = tree if (tree / _PACKAGE / "__init__.py").is_file() else None
    return Environment(given, "revision", Path(sys.executable), package, commit, file=tree / inside)


def _of_other_folder(given: str, folder: Path, file: Path, repository: Path | None) -> Environment:
    """Return the state of a user's file in a folder: at its place in the repository, or by its name."""
    places = [folder / file.name]
    if repository is not None:
        places.insert(0, folder / _inside(file, repository))
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ArgumentError(f"the folder {given} has no file {file.name}")
    package = folder if (folder / _PACKAGE / "__init__.py").is_file() else None
    commit = _commit(folder, "HEAD")
    changed = commit is not None and bool(_git(folder, "status", "--porcelain", "-uno"))
    return Environment(given, "folder", Path(sys.executable), package, commit, changed, file=found)


def _inside(file: Path, repository: Path) -> Path:
    """Return the place of a file in its repository; the file itself may be a link to another place."""
    return (file.absolute().parent.resolve() / file.name).relative_to(repository.resolve())


def _tree(given: str, repository: Path, commit: str, parts: Sequence[str] = ()) -> Path:
    """Return a folder with all files of a revision, or some parts: kernels may lie beside the file that loads them."""
    packed = _git(repository, "archive", "--format=tar", commit, "--", *parts)
    if packed is None:
        raise ArgumentError(f"git cannot give the files of {given!r} ({commit[:10]})")
    with _new_folder() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, **_SAFELY)
    return folder


# ---- revisions


def _git(folder: Path, *words: str) -> bytes | None:
    """Return what git prints; None if it fails or is not installed.

    Raises
    ------
    ArgumentError
        If git does not read the repository because another user owns it.
    """
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    remedy = _UNTRUSTED.search(done.stderr.decode(errors="replace")) if done.returncode else None
    if remedy is not None:
        raise ArgumentError(f"git does not read the repository of another user; if you trust it: {remedy.group()}")
    return done.stdout if done.returncode == 0 else None


def _commit(folder: Path, revision: str) -> str | None:
    if not revision or revision.startswith("-"):  # git would take it for an option
        return None
    found = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return None if found is None else found.decode().strip()


def _of_revision(given: str, folder: Path, commit: str) -> Environment:
    top = _git(folder, "rev-parse", "--show-toplevel")
    assert top is not None, "a commit was found here"
    repository = Path(top.decode().strip())
    listed = _git(repository, "ls-tree", "--name-only", commit) or b""
    parts = [name for name in CONTENT if name in listed.decode().splitlines()]
    if _PACKAGE not in parts:
        raise ArgumentError(f"{given!r} ({commit[:10]}) of {repository.name} has no package {_PACKAGE}")
    return Environment(given, "revision", Path(sys.executable), _tree(given, repository, commit, parts), commit)


# ---- wheels and requirements


def _of_wheel(given: str, wheel: Path) -> Environment:
    try:
        with _new_folder() as folder, zipfile.ZipFile(wheel) as archive:
            if f"{_PACKAGE}/__init__.py" not in archive.namelist():
                raise ArgumentError(f"the wheel {wheel.name} has no package {_PACKAGE}")
            archive.extractall(folder)  # zipfile drops absolute paths and "..", which lead out of the folder
    except zipfile.BadZipFile as error:
        raise ArgumentError(f"{wheel.name} is no wheel: {error}") from error
    return Environment(given, "wheel", Path(sys.executable), folder)


def _of_requirement(given: str, say: Callable[[str], None]) -> Environment:
    """Make a virtual environment, and let pip install into it; once for all runs where a cache can be trusted."""
    inside = Path("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def fill(into: Path) -> None:
        say(f"installing {given} into a virtual environment")
        _need([sys.executable, "-m", "venv", str(into)], f"a virtual environment for {given!r} cannot be made")
        _need([str(into / inside), "-m", "pip", "install", "--quiet", given], f"pip cannot install {given!r}")

    cache = code_folder("environments")
    try:
        if cache is None:
            raise OSError
        made = cache / hashlib.sha256(f"{sys.version}\n{given}".encode()).hexdigest()[:40]
        with locked(made):
            if not (made / "complete").is_file():
                # In its place, as a virtual environment cannot be moved: its scripts name its folder.
                shutil.rmtree(made, ignore_errors=True)
                fill(made)
                (made / "complete").touch()
    except (OSError, Locked):  # read-only, full, or another process makes it now
        with _new_folder() as made:
            fill(made)
    return Environment(given, "requirement", made / inside)


def _need(command: Sequence[str], problem: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ArgumentError(f"{problem}: no end after {_PIP_TIMEOUT_S} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ArgumentError(f"{problem}: {said[-1] if said else f'exit code {done.returncode}'}")


# ---- where they are


@contextmanager
def _new_folder() -> Generator[Path]:
    """Make a folder that lives as long as this process: what runs there may write into it."""
    folder = Path(tempfile.mkdtemp(prefix="gridwise-ab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        yield folder
    except OSError as error:
        raise ArgumentError(f"{folder} cannot hold an environment: {error.strerror or error}") from error
