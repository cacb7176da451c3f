"""What tests cost: core-seconds and compiled pipelines by folder, shown at the end of a run.

``--costs FILE`` writes the same of each test, as JSON: ``{node id: [core-seconds, pipelines, asked]}``, where `asked`
names every pipeline that the test uses, whoever compiled it. ``--summary FILE`` writes what came out, what was skipped
and why, and on which adapters.

On a software adapter compiling is most of the cost, so the number of pipelines is what a new test should keep low.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from wgpu.backends.wgpu_native import GPUDevice

import gridwise_py as gw
from gridwise_py.bench.results.context import host_context, run_context
from gridwise_py.runtime.pipelines import _Order

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
    """Counts the pipelines that this process has made, and names those that it asked for since they were last taken."""

    def __init__(self) -> None:
        self.count = 0
        self._asked: set[str] = set()
        make, order_of = GPUDevice.create_compute_pipeline, _Order.of

        def counted(*args, **kwargs):
            self.count += 1
            return make(*args, **kwargs)

        def noted(plan, kernel):
            order = order_of(plan, kernel)
            self._asked.add(f"{zlib.crc32(repr(order).encode()):08x}")
            return order

        GPUDevice.create_compute_pipeline = counted
        _Order.of = staticmethod(noted)

    def take_asked(self) -> list[str]:
        """Return the names, and begin anew."""
        names, self._asked = sorted(self._asked), set()
        return names


_made = _Made()


def _core_s() -> float:
    """Return the CPU time of this process and of the children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _loop_s() -> float:
    """Return how long ten million turns of a loop take: by this unit, a slow machine is told from slow tests."""
    begin_s = time.perf_counter()
    total = 0
    for turn in range(10**7):
        total += turn
    return time.perf_counter() - begin_s


class Costs:
    """A plugin of pytest: each process measures its tests, the first one adds them up."""

    def __init__(self) -> None:
        self._before = (_core_s(), _made.count)
        self._files: dict[str, _Cost] = defaultdict(_Cost)
        self._tests: dict[str, tuple[float, int, list[str]]] = {}
        self._begin_s = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        """Give the last report of a test what was spent since the test before it: fixtures of its module are in it."""
        report = yield
        if call.when == "teardown":
            now = (_core_s(), _made.count)
            spent = tuple(after - before for after, before in zip(now, self._before, strict=True))
            report.user_properties.append((_PROPERTY, (*spent, _made.take_asked())))
            self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, spent in report.user_properties:
            if name == _PROPERTY and report.when == "teardown":
                self._files[report.nodeid.partition("::")[0]].add(*spent[:2])
                self._tests[report.nodeid] = spent

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if config.option.costs is not None:
            config.option.costs.write_text(json.dumps(self._tests, indent=1) + "\n", encoding="utf-8")
        every = sum(cost.core_s for cost in self._files.values())
        folders: dict[str, _Cost] = defaultdict(_Cost)
        for file, cost in self._files.items():
            folder = folders[Path(file).parent.as_posix()]
            folder.tests += cost.tests
            folder.core_s += cost.core_s
            folder.pipelines += cost.pipelines
        total = _Cost(*(sum(getattr(c, name) for c in folders.values()) for name in ("tests", "core_s", "pipelines")))
        rows = [*sorted(folders.items(), key=lambda row: -row[1].core_s), ("all", total)]
        if config.option.summary is not None:
            summary = self._summary(terminalreporter.stats, config) | {"costs": {name: asdict(c) for name, c in rows}}
            config.option.summary.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        if len(self._files) < 2 or not every:
            return
        terminalreporter.section("what the tests cost")
        for name, cost in rows:
            terminalreporter.line(
                f"{name:28}{cost.tests:6} tests{cost.core_s:9.1f} core-s{cost.pipelines:7} pipelines compiled"
            )
        unit_s = min(_loop_s() for _ in range(5))
        terminalreporter.line(
            f"{total.core_s / unit_s:.0f} times what ten million turns of a Python loop take here, {unit_s:.2f} s"
        )
        dear = sorted(
            (item for item in self._files.items() if item[1].core_s > SHARE * every), key=lambda i: -i[1].core_s
        )
        for name, cost in dear:
            terminalreporter.line(
                f"over {SHARE:.0%}: {name} has {cost.core_s / every:.1%} ({cost.core_s:.1f} core-s, "
                f"{cost.pipelines} pipelines)"
            )

    def _summary(self, stats: dict[str, list[pytest.TestReport]], config: pytest.Config) -> dict[str, object]:
        reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in stats.get("skipped", ()))
        adapters = gw.list_adapters()
        context = run_context(gw.default_device())["context"] if adapters else host_context()
        return context | {
            "adapters": [f"{adapter.name}, {adapter.backend}, {adapter.driver}" for adapter in adapters],
            "tests": config.option.markexpr,
            "left_out": config.option.ignore or [],
            "workers": getattr(config.option, "numprocesses", None) or 1,
            "wall_s": round(time.monotonic() - self._begin_s, 1),
            "outcomes": {
                name: len(stats[name]) for name in ("passed", "failed", "error", "skipped") if stats.get(name)
            },
            "failed": [report.nodeid for name in ("failed", "error") for report in stats.get(name, ())],
            "skipped": dict(reasons),
        }
