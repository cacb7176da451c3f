"""The hooks of a run of pytest that measures.

Under pytest-xdist each worker has this plug-in, and so has the process that started the workers. It gets what they
measured with the reports of their tests, writes the file and prints the summary.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from ... import list_adapters
from ...display.terminal import clean
from ...errors import ArgumentError, GridwiseError
from ...extras import check_bench_is_installed
from ...internals import expect_software
from ...storage.cache import code_folder
from ..results.model import Result
from .fixture import GpuBenchmark
from .session import Files, Kept, Session
from .store import StillLocked, waiting_for, write
from .summary import summary_lines

_FIXTURE = "gpu_benchmark"
#: A benchmark waits so long for another process of this machine to finish one.
_LONGEST_WAIT_S = 3600.0
_KEPT: pytest.StashKey[list[Kept]] = pytest.StashKey()


def start(config: pytest.Config) -> Plugin:
    """Return the plug-in of a run; raise UsageError, in one line, if the options do not fit."""
    try:
        check_bench_is_installed("pytest --gridwise")
        return Plugin(config)
    except (ImportError, GridwiseError, OSError) as error:
        raise pytest.UsageError(str(error)) from None


class Plugin:
    """What one process of a run has.

    Parameters
    ----------
    config : pytest.Config
    """

    def __init__(self, config: pytest.Config):
        worker = cast(dict[str, Any] | None, getattr(config, "workerinput", None))
        self._is_worker = worker is not None
        self._has_workers = not self._is_worker and getattr(config.option, "dist", "no") != "no"
        self._verbose = config.get_verbosity() > 0
        self._files = Files(config)
        self._session = Session(self._files, _process_of(worker), ["pytest", *map(str, config.invocation_params.args)])
        self._current: pytest.Item | None = None
        #: By test and worker, as with --dist each all of them run it; one that runs again replaces what it left.
        self._of_tests: dict[tuple[str, str], list[Kept]] = {}
        self._problem = ""
        expect_software()  # the summary names the adapter

    def fixture_of(self, item: pytest.Item) -> GpuBenchmark:
        """Return the fixture of a test."""
        if item is not self._current:  # it has no lock
            pytest.fail("ask for gpu_benchmark as an argument of the test, not by getfixturevalue()", pytrace=False)
        self._session.kept.clear()  # of an attempt before, where a plug-in runs failed tests again
        return GpuBenchmark(self._session, item)

    # ---- in the processes that run tests

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip all benchmarks if there is no adapter: their other fixtures would fail."""
        found = [item for item in items if _is_benchmark(item)]
        if found and not list_adapters():
            reason = "gpu_benchmark: there is no GPU adapter here; a software one is Debian's mesa-vulkan-drivers"
            for item in found:
                item.add_marker(pytest.mark.skip(reason=reason))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Let no other process run a benchmark meanwhile, its other fixtures included."""
        if not _is_benchmark(item):
            return (yield)
        try:
            with waiting_for(_lock_path(), _LONGEST_WAIT_S):
                self._current, self._session.kept = item, []
                item.stash[_KEPT] = self._session.kept
                try:
                    return (yield)
                finally:
                    self._current = None
        except StillLocked as error:
            raise pytest.UsageError(f"gpu_benchmark: {error}; end that process") from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Warn of a benchmark that timed nothing: it passes, whatever its code does."""
        returned = yield
        if _is_benchmark(item) and not item.stash.get(_KEPT, None):
            item.warn(pytest.PytestWarning("gpu_benchmark was asked for, but not called: nothing was timed or judged"))
        return returned

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the report what the test measured; pytest-xdist takes it along."""
        report = yield
        kept = item.stash.get(_KEPT, None)
        if call.when == "call" and kept:
            report.__dict__["gridwise"] = json.dumps([vars(one) for one in kept])
        return report

    def pytest_unconfigure(self) -> None:
        """Let go of the clocks."""
        self._session.close()

    # ---- in the process that writes

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test measured."""
        text = cast(str | None, getattr(report, "gridwise", None))
        if text is not None and not self._is_worker:
            worker = str(getattr(report, "worker_id", ""))
            self._of_tests[report.nodeid, worker] = [Kept(**one) for one in json.loads(text)]

    def _kept(self) -> list[Kept]:
        return [one for of_test in self._of_tests.values() for one in of_test]

    def _judged_nothing(self) -> bool:
        """Whether there was something to compare with, and nothing is judged."""
        kept = [] if self._is_worker or self._files.compare is None else self._kept()
        return bool(kept) and not any(one.is_judged for one in kept)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file; a run that judged nothing fails."""
        if self._judged_nothing() and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        documents = [one.document for one in self._kept()]
        if self._is_worker or self._files.json is None or not documents:
            return
        results: list[Result] = [result for document in documents for result in document.results]
        try:
            ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            complete = ended and not (session.shouldfail or session.shouldstop)  # -x and --maxfail leave tests out
            write(self._files.json, documents[0], results, append=self._files.appends, complete=complete)
        except (GridwiseError, OSError, StillLocked) as error:
            self._problem = f"{self._files.json.name} was not written: {error}"
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was measured, and what was written."""
        kept = self._kept()
        if self._is_worker or not kept:
            return
        terminalreporter.section("gridwise")
        for text in summary_lines(kept, self._files, has_workers=self._has_workers, verbose=self._verbose):
            terminalreporter.write_line(clean(text))
        if self._judged_nothing() and self._files.compare is not None:
            name = self._files.compare.name
            terminalreporter.write_line(f"FAILED: no benchmark was judged against {name}; measure {name} again")
        if self._files.json is not None:
            terminalreporter.write_line(clean(self._problem or self._written(self._files.json)))

    def _written(self, path: Path) -> str:
        if self._files.earlier is None:
            return f"results: {path.name}"
        earlier = len({result.process for result in self._files.earlier.results})
        return f"results: {path.name}, added to those of {earlier} earlier process{'es' if earlier != 1 else ''}"


def _process_of(worker: dict[str, Any] | None) -> int:
    """Return the number of a process of the run among those that measure."""
    if worker is None:
        return 0
    name = str(worker["workerid"])  # gw0, gw1, …
    number = name.removeprefix("gw")
    if not (name.startswith("gw") and number.isdecimal()):
        raise ArgumentError(
            f"the worker of pytest-xdist is called {name!r}, and its number among the processes is not known: leave "
            f"out id= in --tx, as in -n 5 --dist each"
        )
    return int(number)


def _is_benchmark(item: pytest.Item) -> bool:
    return _FIXTURE in getattr(item, "fixturenames", ())


def _lock_path() -> Path:
    """Return the path whose lock a benchmark holds, the same for all of the user's processes on this machine."""
    folder = code_folder("locks")
    # A lock that cannot be made keeps nobody out.
    if folder is None or not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir())
    return folder / "gridwise-gpu-benchmark"
