"""Tries the stored mutants (scripts/mutants.json): whether a test notices each of them. A plugin of pytest, too.

Usage: python scripts/mutate.py NAME [--tree FOLDER] [--group GROUP] [--killed NAME] [--killers 3]
                            [--again] [--cpu-s 30]
       python scripts/mutate.py --table BEFORE AFTER
       python scripts/mutate.py NAME --sample 50 --seed 3 --file other.json   (other mutants, into another file)

NAME is that of the suite; what became of a mutant goes at once into the file, under this name. A later run with the
same name goes on where that one was. docs/contribute/how-reliability-is-tested.md says how it works.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import mutants as store
import pytest
from mutants import GROUPS, ROOT, Mutant

SUITE = "not slow and not tint and not browser"
#: Where a run without mutants leaves what each test covers, and what it costs.
_COVERAGE, _COSTS = ".make/coverage", ".make/costs.json"
_NEAR_LINES = 12  # a statement of more lines is covered by its first line
_ELSEWHERE = 0.03  # how much a test counts that runs other lines of the module
_IMPORT = b"the import of the tests\nfailed\n"
_NO_END = " (no end)"
_MOST_IN_A_PROCESS = 60  # tests, where all that they need is imported anew

# ---- which tests can notice


class Covering:
    """Which tests run which lines, and how dear and how special each test is, from a run under coverage."""

    def __init__(self, tree: Path) -> None:
        from coverage import CoverageData

        self._tree = tree
        self._data = CoverageData(str(tree / _COVERAGE))
        self._data.read()
        self._files = {f[f.rindex("gridwise_py/") :]: f for f in self._data.measured_files() if "gridwise_py/" in f}
        costs = json.loads((tree / _COSTS).read_text(encoding="utf-8"))
        self.core_s = {node: spent[0] for node, spent in costs.items()}
        self._lines = cache(self._read_lines)

    def _read_lines(self, place: str) -> dict[int, set[str]]:
        """The tests that run each line of a module."""
        found = self._data.contexts_by_lineno(self._files[place]) if place in self._files else {}
        return {line: {name.rpartition("|")[0] for name in names if "|" in name} for line, names in found.items()}

    @cached_property
    def _all_lines(self) -> Counter[str]:
        """How many lines of modules each test runs."""
        return Counter(test for place in self._files for tests in self._lines(place).values() for test in tests)

    def _naming(self, shader: str) -> Iterator[tuple[str, int]]:
        """Yield the lines of modules that name a kernel with the text of a shader file in it."""
        folder = self._tree / "shaders"
        includes = {
            path.relative_to(folder).as_posix(): re.findall(
                r'^//\$ (?:include|from) "([^"]*)"', path.read_text("utf-8"), re.M
            )
            for path in folder.rglob("*.wgsl")
        }
        wanted = {shader.removeprefix("shaders/")}
        # A name may be put together, "lib/emit_" ~ emission ~ ".wgsl".
        while more := {name for name, parts in includes.items() for part in parts for each in wanted
                       if each.startswith(part)} - wanted:  # fmt: skip
            wanted |= more
        stems = "|".join(Path(name).stem for name in wanted if "/" not in name)
        named = re.compile(rf'"(?:{stems})\.wgsl"|(?:shader: ClassVar\[str\] = |own(?:_plan)?\(.*)"(?:{stems})"')
        for path in (self._tree / "gridwise_py").rglob("*.py") if stems else ():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if named.search(line):
                    yield path.relative_to(self._tree).as_posix(), number

    def tests(self, place: str, line: int) -> dict[str, float]:
        """Return the tests that run a line, with the share of what they run that lies in its module.

        What runs at import is covered by no test, and what is remembered by the first test that needs it: so tests that
        run anything else of the module are there, too, with less weight. Where there are none, it is those of the
        modules that import it.
        """
        if place.endswith(".wgsl"):
            found: dict[str, float] = {}
            for where in self._naming(place):
                for test, share in self.tests(*where).items():
                    found[test] = max(share, found.get(test, 0.0))
            return found
        lines, places = self._lines(place), [place]
        here = next((lines[each] for each in range(line, line - _NEAR_LINES, -1) if each in lines), set())
        if not any(lines.values()):
            name = Path(place.removesuffix("/__init__.py")).stem
            stem = re.compile(rf"^ *(?:from|import) .*\b{name}\b", re.MULTILINE)
            files = (each for each in self._files if stem.search((self._tree / each).read_text(encoding="utf-8")))
            places = [each for each in files if each != place]
        inside = Counter(test for each in places for names in self._lines(each).values() for test in names)
        return {
            test: (1.0 if test in here else _ELSEWHERE) * count / max(self._all_lines[test], 1)
            for test, count in inside.items()
        }

    def order(self, mutant: Mutant, first: Iterable[str], items: Mapping[str, pytest.Item]) -> list[str]:
        """Return the tests that can notice a mutant: those in `first`, then cheap and special ones.

        Of a function's many cases, and of a file's functions, some come early and the others later. Behind them come
        those of their files that the run under coverage had not.
        """
        text = (self._tree / mutant.place).read_text(encoding="utf-8")
        pairs = zip(mutant.old.splitlines(), mutant.new.splitlines(), strict=False)
        same = next((k for k, (old, new) in enumerate(pairs) if old != new), 0)
        shares = self.tests(mutant.place, text.count("\n", 0, mutant.find(text)) + 1 + same)
        # A kernel's first pipeline costs half a second, whichever test asks for it.
        dear = {test: (0.1 + self.core_s.get(test, 1.0)) / (0.001 + share) for test, share in shares.items()}
        if mutant.place.endswith(".wgsl"):  # texts alone tell little
            dear = {
                test: cost for test, cost in dear.items() if test in items and items[test].get_closest_marker("gpu")
            }
        cases: Counter[str] = Counter()
        rank = {}
        for test in sorted(dear, key=lambda test: (dear[test], test)):
            file, function = test.partition("::")[0], test.partition("[")[0]
            cases[file] += not cases[function]
            cases[function] += 1
            rank[test] = dear[test] * cases[function] * cases[file] ** 0.5
        files = {test.partition("::")[0] for test in rank}
        more = [test for test in items if test not in self.core_s and test.partition("::")[0] in files]
        return list(dict.fromkeys([*first, *sorted(rank, key=lambda test: (rank[test], test)), *more]))


# ---- one trial: tests in order, in a process of their own


class Outcome(NamedTuple):
    """What a trial came to: the test that noticed the mutant, or None, how, and the number of tests that ran."""

    test: str | None
    how: str
    tests: int


def run_in_order(session: pytest.Session, items: list[pytest.Item], cpu_s: float, told: int) -> None:
    """Run tests until one fails or the time is up; tell which one runs, and in the end ``failed`` or ``passed``."""
    begin, failed = _cpu_s(), []
    session.config.pluginmanager.register(_Failures(failed))
    for number, item in enumerate(items):
        last = number + 1 == len(items) or _cpu_s() - begin > cpu_s
        os.write(told, f"{item.nodeid}\n".encode())
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None if last else items[number + 1])
        if failed or last:
            break
    os.write(told, b"failed\n" if failed else b"passed\n")


class _Failures:
    def __init__(self, failed: list[str]) -> None:
        self._failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)


def _cpu_s() -> float:
    return sum(os.times()[:4])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _is_body(code: CodeType) -> bool:
    """Whether it is a module or the body of a class, which an import runs."""
    return not code.co_flags & 0x1  # CO_OPTIMIZED


def _at_import(code: CodeType) -> list[Any]:
    bodies = [each for each in (code, *_codes(code)) if _is_body(each)]
    plain = [[c for c in body.co_consts if not isinstance(c, CodeType)] for body in bodies]
    return [(body.co_code, repr(values), body.co_names) for body, values in zip(bodies, plain, strict=True)]


def exchange_code(path: Path, old: str, new: str) -> bool:
    """Give all functions of a module that is loaded their new code; False if an import would run something new, too."""
    before, after = (compile(text, str(path), "exec", dont_inherit=True) for text in (old, new))
    if _at_import(before) != _at_import(after) or old.count("\n") != new.count("\n"):
        return False
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(after)}
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            code = function.__code__
            function.__code__ = codes[code.co_qualname, code.co_firstlineno]
    return True


class Trials:
    """Tries mutants in processes that begin with everything collected.

    Parameters
    ----------
    session
        Of pytest, with the tests that were collected.
    cpu_s
        How long tests run for a mutant that none of them notices, in seconds of CPU time.
    """

    def __init__(self, session: pytest.Session, cpu_s: float) -> None:
        self._session = session
        self.items = {item.nodeid: item for item in session.items}
        self._cpu_s = cpu_s
        self._passes: set[str] = set()  # of the tests that noticed something, those that pass without a mutant
        self.fails: set[str] = set()
        self._changes = 0

    def attempt(self, mutant: Mutant, order: list[str]) -> Outcome:
        """Return what notices a mutant: a test that by itself fails with it and passes without."""
        left, ran = [test for test in order if test in self.items and test not in self.fails], 0
        while True:
            found = self._trial(mutant, left)
            ran += found.tests
            if found.test is None or found.test not in self.items:
                return found._replace(tests=ran)
            if found.test not in self._passes:
                (self.fails if self._trial(None, [found.test]).test else self._passes).add(found.test)
            if found.test in self._passes and (found.tests == 1 or self._trial(mutant, [found.test]).test is not None):
                return found._replace(tests=ran)
            left.remove(found.test)

    def _trial(self, mutant: Mutant | None, tests: list[str]) -> Outcome:
        """Run tests in a process of their own, with a mutant or without."""
        if mutant is None or not tests:
            return self._in_a_fork(tests, None) if tests else Outcome(None, "", 0)
        path = Path.cwd() / mutant.place
        text, times = path.read_text(encoding="utf-8"), path.stat()
        changed = mutant.changed(text)
        path.write_text(changed, encoding="utf-8")
        self._changes += 1
        os.utime(path, (times.st_atime, times.st_mtime + self._changes))  # by which Python knows what it has compiled
        try:
            return self._in_a_fork(tests, (path, text, changed))
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))

    def _in_a_fork(self, tests: list[str], change: tuple[Path, str, str] | None) -> Outcome:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                self._child(tests, change, writer)
            except BaseException as error:
                os.write(writer, f"{error!r}\nbroken\n".encode())
            finally:
                os._exit(0)
        os.close(writer)
        said, deadline = b"", time.monotonic() + 20 * self._cpu_s
        while (wait_s := deadline - time.monotonic()) > 0 and select.select([reader], [], [], wait_s)[0]:
            if not (more := os.read(reader, 1 << 16)):
                break
            said += more
        os.close(reader)
        for stop in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                stop(child, signal.SIGKILL)
        os.waitpid(child, 0)
        *ran, result = said.decode().splitlines() or ["the start of the tests"]
        if result in ("passed", "failed"):
            return Outcome(ran[-1] if result == "failed" else None, "", len(ran))
        if result == "broken":
            raise RuntimeError(f"a trial with {change and change[0]} broke: {ran[-1]}")
        return Outcome(result, _NO_END, len(ran) + 1)

    def _child(self, tests: list[str], change: tuple[Path, str, str] | None, told: int) -> None:
        os.setsid()
        self._session.config.pluginmanager.unregister(name="terminalreporter")
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        limit_s = int(_cpu_s() + 4 * self._cpu_s)
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        if change is not None and change[0].suffix == ".py" and not exchange_code(*change):
            return self._anew(tests[:_MOST_IN_A_PROCESS], told)
        for cached in gc.get_objects():
            if type(cached).__name__ == "_lru_cache_wrapper" and cached.__module__.startswith("gridwise_py.planning"):
                cached.cache_clear()
        run_in_order(self._session, [self.items[test] for test in tests], self._cpu_s, told)

    def _anew(self, tests: list[str], told: int) -> None:
        """Run tests in a process that imports everything: what an import runs has changed."""
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        job = Path("trial.json")
        job.write_text(json.dumps(tests), encoding="utf-8")
        os.set_inheritable(told, True)
        process = subprocess.run(
            [*_pytest(), f"--trial={job}", f"--told={told}", f"--cpu-s={self._cpu_s}", *files], close_fds=False
        )
        if process.returncode not in (0, 1):
            os.write(told, _IMPORT)


# ---- the plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what main() passes on."""
    group = parser.getgroup("mutation")
    group.addoption("--mutation", type=json.loads, help="options of scripts/mutate.py")
    group.addoption("--trial", type=Path, help="JSON list of the tests to run, in order")
    group.addoption("--told", type=int, help="where to tell what came of it")
    group.addoption("--cpu-s", type=float)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Try mutants in the place of running what was collected."""
    config = session.config
    if config.option.trial is not None:
        if session.testsfailed:
            os.write(config.option.told, _IMPORT)
            return True
        tests = {item.nodeid: item for item in session.items}
        names = json.loads(config.option.trial.read_text(encoding="utf-8"))
        run_in_order(session, [tests[name] for name in names if name in tests], config.option.cpu_s, config.option.told)
        return True
    if config.option.mutation is None:
        return None
    if session.testsfailed:
        raise session.Interrupted("tests cannot be collected")
    _try_all(session, argparse.Namespace(**config.option.mutation))
    return True


def _try_all(session: pytest.Session, options: argparse.Namespace) -> None:
    say = session.config.pluginmanager.getplugin("terminalreporter").write_line
    path, name = Path(options.file), options.name
    every, trials, covering = store.read(path), Trials(session, options.cpu_s), Covering(Path(options.tree))
    todo = [mutant for mutant in every if _is_wanted(mutant, options)]
    say(f"{len(todo)} mutants to try with {len(trials.items)} tests")
    for number, mutant in enumerate(todo, 1):
        begin = time.monotonic()
        killers = sorted(
            (other is not mutant, abs(other.line - mutant.line), found["killed_by"].removesuffix(_NO_END))
            for other in every if other.place == mutant.place
            for found in other.results.values() if found["killed_by"]
        )  # fmt: skip
        try:
            order = covering.order(mutant, [test for *_, test in killers[:4]], trials.items)
            found = trials.attempt(mutant, order)
            result = {"killed_by": found.test and found.test + found.how, "tests": found.tests, "of": len(order)}
            more = list(_others(trials, mutant, order, found.test, options.killers - 1))
            result |= {"also_by": more} if more else {}
        except (LookupError, FileNotFoundError) as error:
            result = {"killed_by": None, "gone": str(error).partition("\n")[0]}
        mutant.results[name] = {**result, "seconds": round(time.monotonic() - begin, 1)}
        now = {other.key: other for other in store.read(path)}  # others may have written, too
        if mutant.key in now:
            now[mutant.key].results[name] = mutant.results[name]
            store.write(path, list(now.values()))
        how = result.get("killed_by") or result.get("gone") or f"SURVIVED {result['tests']} of {result['of']} tests"
        say(f"{number}/{len(todo)} {mutant.results[name]['seconds']:.0f} s {mutant.place}:{mutant.line} "
            f"{mutant.what[:60]}: {how}")  # fmt: skip
    if trials.fails:
        say("left out, as they fail without a mutant: " + ", ".join(sorted(trials.fails)))


def _others(trials: Trials, mutant: Mutant, order: list[str], killer: str | None, count: int) -> Iterator[str]:
    """Yield up to so many more tests that notice a mutant, likely and cheap ones first."""
    while count > 0 and killer in order:
        order = [test for test in order if test != killer]
        killer = trials.attempt(mutant, order).test
        if killer in order:
            yield killer
        count -= 1


def _is_wanted(mutant: Mutant, options: argparse.Namespace) -> bool:
    if mutant.struck or (options.group and mutant.group not in options.group):
        return False
    if options.killed and not mutant.results.get(options.killed, {}).get("killed_by"):
        return False
    result = mutant.results.get(options.name)
    return result is None or (options.again and result["killed_by"] is None)


# ---- the command


def _pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutate"]


def _environment(*folders: Path) -> dict[str, str]:
    """Return that of tests which import from these folders."""
    paths = os.pathsep.join(map(str, folders))
    return {"XDG_RUNTIME_DIR": "/tmp", **os.environ, "GRIDWISE_REQUIRE_GPU": "1", "PYTHONPATH": paths}


def measure(tree: Path, tests: str) -> None:
    """Run the suite without mutants, unless that was done: which lines each test runs, and what it costs."""
    files = [file for folder in ("gridwise_py", "shaders", "tests") for file in (tree / folder).rglob("*.*")]
    newest_s = max(file.stat().st_mtime for file in files if file.suffix in (".py", ".wgsl"))
    if all((tree / name).exists() and (tree / name).stat().st_mtime > newest_s for name in (_COVERAGE, _COSTS)):
        return
    (tree / _COSTS).parent.mkdir(exist_ok=True)
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "-m", tests,
        "--cov=gridwise_py", "--cov-branch", "--cov-context=test", "--cov-report=", f"--costs={_COSTS}",
    ]  # fmt: skip
    subprocess.run(command, cwd=tree, env={**_environment(tree), "COVERAGE_FILE": str(tree / _COVERAGE)})


def table(mutants: list[Mutant], before: str, after: str) -> str:
    """What became of the mutants of each group with two suites, and which ones are lost."""
    tried = [m for m in mutants if not m.struck]
    killed = {name: {m.key for m in tried if m.results.get(name, {}).get("killed_by")} for name in (before, after)}
    lost = [m for m in tried if m.key in killed[before] - killed[after] and after in m.results]
    lines = [f"| group | mutants | killed {before} | killed {after} | lost |", "| --- | --- | --- | --- | --- |"]
    for group in (*GROUPS, "faults", "all"):
        of = [m.key for m in tried if group in (m.group, "all")]
        counts = [len(of), *(len(killed[name] & {*of}) for name in (before, after)), sum(m.key in of for m in lost)]
        lines.append(f"| {group} | {' | '.join(map(str, counts))} |")
    missing = [sum(name not in m.results for m in tried) for name in (before, after)]
    lines.append(f"\nnot tried {before}: {missing[0]}, {after}: {missing[1]}; struck: {len(mutants) - len(tried)}")
    for m in lost:
        gone = "its text is gone" if "gone" in m.results[after] else m.what
        lines.append(f"LOST {m.place}:{m.line} ({gone}), killed {before} by {m.results[before]['killed_by']}")
        lines += [f"  - {line}" for line in m.old.splitlines()] + [f"  + {line}" for line in m.new.splitlines()]
    return "\n".join(lines)


def main() -> int:
    """Try mutants and say what became of them; 1 if some are lost that another suite killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="of the suite, in the file")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose tests and modules are meant")
    parser.add_argument("--file", type=Path, default=store.STORED)
    parser.add_argument("--group", action="append", choices=[*GROUPS, "faults"])
    parser.add_argument("--killers", type=int, default=1, help="look for so many tests that notice a mutant")
    parser.add_argument("--again", action="store_true", help="also those that survived")
    parser.add_argument("--killed", metavar="NAME", help="only those that the suite of this name killed")
    parser.add_argument("--cpu-s", type=float, default=30.0, help="for the tests of a mutant that none notices")
    parser.add_argument("--tests", default=SUITE, help="pytest's expression of marks")
    parser.add_argument("--sample", type=int, help="so many new mutants of each group, into the file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", nargs=2, metavar=("BEFORE", "AFTER"), help="compare two suites")
    options = parser.parse_args()
    if options.sample:
        store.write(options.file, [m for group in GROUPS for m in store.sample(group, options.sample, options.seed)])
    if options.name:
        options.tree, options.file = options.tree.resolve(), options.file.resolve()
        measure(options.tree, options.tests)
        with tempfile.TemporaryDirectory(prefix="gridwise-mutants-") as folder:
            copy, scripts = Path(folder) / "tree", Path(__file__).parent
            skipped = (".venv", ".git", "__pycache__", ".hypothesis", ".*_cache", ".make", "build", "dist")
            shutil.copytree(options.tree, copy, ignore=shutil.ignore_patterns(*skipped))
            environment = {**_environment(copy, scripts), "PYTHONDONTWRITEBYTECODE": ""}
            words = f"--mutation={json.dumps(vars(options), default=str)}"
            command = [*_pytest(), "-m", options.tests, f"--basetemp={folder}/tmp", words]
            if code := subprocess.run(command, cwd=copy, env=environment).returncode:
                return code
    if options.table:
        text = table(store.read(options.file), *options.table)
        print(text)
        return int("\nLOST" in text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
