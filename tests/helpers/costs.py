"""What tests cost: core-seconds and compiled pipelines by folder, shown at the end of a run.

``--costs FILE`` writes the same of each test, as JSON: ``{node id: [core-seconds, pipelines]}``.

On a software adapter compiling is most of the cost, so the number of pipelines is what a new test should keep low.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from wgpu.backends.wgpu_native import GPUDevice

#: A file with a larger share of the core-seconds is named.
SHARE = 0.03
_PROPERTY = "gridwise-cost"


@dataclass
class _Cost:
    tests: int = 0
    core_s: float = 0.0
    pipelines: int = 0

    def add(self, core_s: float, pipelines: int) -> None:
        self.tests += 1
        self.core_s += core_s
        self.pipelines += pipelines


class _Made:
    """Counts the pipelines that this process has made."""

    def __init__(self) -> None:
        self.count = 0
        make = GPUDevice.create_compute_pipeline

        def counted(*args, **kwargs):
            self.count += 1
            return make(*args, **kwargs)

        GPUDevice.create_compute_pipeline = counted


_made = _Made()


def _core_s() -> float:
    """Return the CPU time of this process and of the children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Costs:
    """A plugin of pytest: each process measures its tests, the first one adds them up."""

    def __init__(self) -> None:
        self._before = (_core_s(), _made.count)
        self._files: dict[str, _Cost] = defaultdict(_Cost)
        self._tests: dict[str, tuple[float, int]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        """Give the last report of a test what was spent since the test before it: fixtures of its module are in it."""
        report = yield
        if call.when == "teardown":
            now = (_core_s(), _made.count)
            spent = tuple(after - before for after, before in zip(now, self._before, strict=True))
            report.user_properties.append((_PROPERTY, spent))
            self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, spent in report.user_properties:
            if name == _PROPERTY and report.when == "teardown":
                self._files[report.nodeid.partition("::")[0]].add(*spent)
                self._tests[report.nodeid] = spent

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if config.option.costs is not None:
            config.option.costs.write_text(json.dumps(self._tests, indent=1) + "\n", encoding="utf-8")
        every = sum(cost.core_s for cost in self._files.values())
        if len(self._files) < 2 or not every:
            return
        folders: dict[str, _Cost] = defaultdict(_Cost)
        for file, cost in self._files.items():
            folder = folders[Path(file).parent.as_posix()]
            folder.tests += cost.tests
            folder.core_s += cost.core_s
            folder.pipelines += cost.pipelines
        terminalreporter.section("what the tests cost")
        total = _Cost(*(sum(getattr(c, name) for c in folders.values()) for name in ("tests", "core_s", "pipelines")))
        rows = sorted(folders.items(), key=lambda row: -row[1].core_s)
        for name, cost in [*rows, ("all", total)]:
            terminalreporter.line(
                f"{name:28}{cost.tests:6} tests{cost.core_s:9.1f} core-s{cost.pipelines:7} pipelines compiled"
            )
        dear = sorted(
            (item for item in self._files.items() if item[1].core_s > SHARE * every), key=lambda i: -i[1].core_s
        )
        for name, cost in dear:
            terminalreporter.line(
                f"over {SHARE:.0%}: {name} has {cost.core_s / every:.1%} ({cost.core_s:.1f} core-s, "
                f"{cost.pipelines} pipelines)"
            )
