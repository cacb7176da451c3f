"""A plugin for pytest, for scripts/mutate.py: likely killers of a mutant run first; how long each test took is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options of this plugin."""
    group = parser.getgroup("mutation")
    group.addoption("--in-order", type=Path, help="JSON list of node ids; these run first, in this order.")
    group.addoption("--seconds-to", type=Path, help="JSON file to write: the seconds of each test that passed.")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests; those that the list does not know stay behind, as they were."""
    if (path := config.getoption("--in-order")) is not None:
        rank = {node: number for number, node in enumerate(json.loads(path.read_text(encoding="utf-8")))}
        items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))


def pytest_configure(config: pytest.Config) -> None:
    """Keep times only where a file is named for them."""
    if (path := config.getoption("--seconds-to")) is not None:
        config.pluginmanager.register(_Seconds(path))


class _Seconds:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = {}
        self.outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or report.when == "call":
            self.outcomes[report.outcome] += 1
        if report.passed and report.when == "call":
            self.seconds[report.nodeid] = round(report.duration, 4)

    def pytest_sessionfinish(self) -> None:
        content = {"passed": self.outcomes["passed"], "skipped": self.outcomes["skipped"], "tests": self.seconds}
        self.path.write_text(json.dumps(content), encoding="utf-8")
