"""Benchmarks in pytest: the options, the mark and the fixture ``gpu_benchmark``.

pytest imports this module in each run in which gridwise_py is installed. So it lies outside of that package, whose
import brings wgpu, and imports it only where the options ask for it. All else is in `gridwise_py.bench.in_pytest`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gridwise_py.bench.in_pytest.counts import GpuCounts
    from gridwise_py.bench.in_pytest.fixture import GpuBenchmark

__all__ = ["FIXTURE", "SESSION", "gpu_benchmark", "gpu_counts"]

FIXTURE = "gpu_benchmark"
#: Under this name `gridwise_py.bench.in_pytest.plugin.Plugin` is among pytest's plug-ins.
SESSION = "gridwise session"
_WITHOUT = "a benchmark: it runs with pytest --gridwise"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("gridwise", "benchmarks of GPU work (gridwise_py)")
    add = group.addoption
    add("--gridwise", action="store_true", help="run the tests that use gpu_benchmark; else they are skipped")
    add("--gridwise-json", metavar="FILE", help="write the times as a results file, a new one")
    add("--gridwise-append", action="store_true", help="if that file exists, add this run to it as a further process")
    add("--gridwise-compare", metavar="FILE", help="judge the times against those of a results file")
    add("--gridwise-counts", metavar="FILE", help="fail where gpu_counts counts more than FILE has; add what it lacks")
    add("--gridwise-fail-ambiguous", action="store_true", help="fail a test that the comparison cannot decide")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and start the session that measures if an option asks for it."""
    config.addinivalue_line(
        "markers",
        "gridwise(**options): options of gpu_benchmark() for all of its calls in a test, such as gate=0.1, rounds=10",
    )
    options = ("gridwise", "gridwise_json", "gridwise_append", "gridwise_compare", "gridwise_fail_ambiguous")
    if any(map(config.getoption, options)):
        if pytest.version_tuple < (8,):
            raise pytest.UsageError(f"pytest --gridwise needs pytest 8 or newer, this is {pytest.__version__}")
        try:
            from gridwise_py.bench.in_pytest.plugin import start
        except ImportError as error:
            raise pytest.UsageError(f"pytest --gridwise: {error}: pip install 'gridwise-py[bench]'") from error
        config.pluginmanager.register(start(config), SESSION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what would measure, unless an option asks for it."""
    if not config.pluginmanager.hasplugin(SESSION):
        for item in items:
            if FIXTURE in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=_WITHOUT))


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> GpuBenchmark:
    """Time a kernel, primitive, sequence or callable; docs/howto/pytest.md says how."""
    plugin = request.config.pluginmanager.get_plugin(SESSION)
    if plugin is None:  # asked for by getfixturevalue(), which the collection does not see
        pytest.skip(_WITHOUT)
    return plugin.fixture_of(request.node)


@pytest.fixture
def gpu_counts(request: pytest.FixtureRequest) -> GpuCounts:
    """Count what a kernel, primitive, sequence or callable asks of a GPU; none is needed."""
    from gridwise_py.bench.in_pytest.counts import GpuCounts

    given = request.config.getoption("gridwise_counts")
    return GpuCounts(request.node.nodeid, None if given is None else Path(request.config.invocation_params.dir, given))
