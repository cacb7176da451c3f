"""What all tests share: devices, the watch on wgpu's errors, and skips that become failures.

``GRIDWISE_REQUIRE_GPU=1``
    There must be an adapter, and no test may be skipped but for a need that it declares (`helpers.needs`).
``GRIDWISE_TEST_REFUSE_FEATURES=1``
    Devices are made without any optional feature; tests that need one are skipped.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import os
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.runtime import device as device_module
from gridwise_py.runtime import gpu_clock, lookback_selftest
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import expect_software
from gridwise_py.runtime.pipelines import PipelineCache
from gridwise_py.runtime.transfers import usable_cpus
from helpers import costs, needs
from helpers.paths import TESTS
from helpers.renewed import KeptPipelines, renewed

# Seeded, as all random inputs are, and without a deadline: the first example compiles shaders. Where slow tests are
# left out, tests that name no number of examples run fewer.
hypothesis.settings.register_profile(
    "gridwise", deadline=None, derandomize=True, database=None, max_examples=25, print_blob=False
)
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("gridwise"), max_examples=10)
hypothesis.settings.load_profile("gridwise")


def _flag(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


# ---- what was found out on this machine before, or is now, is none of the tests' business ----


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, metavar="FILE", help="write each test's core-seconds and pipelines, as JSON")
    parser.addoption("--summary", type=Path, metavar="FILE", help="write what came out, and on which adapters, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(costs.Costs(), "gridwise costs")
    expect_software()  # tests are for any adapter
    if "not slow" in config.option.markexpr:
        hypothesis.settings.load_profile("quick")
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that started them
        folder = tempfile.TemporaryDirectory(prefix="gridwise-cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["GRIDWISE_CACHE_DIR"] = folder.name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """On two cores none for `make test`: a worker more collects and compiles all once more, for few tests."""
    is_short = "not full" in config.option.markexpr and usable_cpus() < 4
    return 0 if is_short else min(max(usable_cpus() // 2, 2), 8)


# ---- the tiers ----

#: What scripts/choose_tests.py left to `make test-full`: by file and function, the sets of parameters that `make test`
#: runs yet. What is not named here, as a new test, is run by both.
LEFT_OUT: dict[str, dict[str, list[str]]] = json.loads((TESTS / "left_out.json").read_text("utf-8"))


def _is_left_out(item: pytest.Item) -> bool:
    file, _, name = item.nodeid.removeprefix("tests/").partition("::")
    function, _, parameters = name.partition("[")
    kept = LEFT_OUT.get(file, {}).get(function)
    return kept is not None and parameters.removesuffix("]") not in kept


# ---- marks that follow from what a test is ----

DEVICE_FIXTURES = {"device", "fresh_device", "renewed_device"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a device by a fixture, its own or a fixture's; tests that make devices themselves have the mark.

    Of a test marked with ``thin(strength)``, mark as slow what is not needed for each value of each parameter to occur
    (strength 1), or each pair of values of two parameters (strength 2).
    """
    thinned = defaultdict(list)
    for item in items:
        if not DEVICE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("gpu")
        if _is_left_out(item):
            item.add_marker("full")
        thin = item.get_closest_marker("thin")
        if thin is not None and hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            thinned[item.path, item.originalname, thin.args[0]].append(item)
    for (_, _, strength), group in thinned.items():
        values = {item: _values(item, strength) for item in group}
        missing, chosen = frozenset().union(*values.values()), set()
        while missing:
            best = max(group, key=lambda item: len(values[item] & missing))
            missing -= values[best]
            chosen.add(best)
        for item in set(group) - chosen:
            item.add_marker("slow")


def _values(item: pytest.Item, strength: int) -> frozenset[tuple[tuple[str, int], ...]]:
    """Return the combinations of so many parameters' values that a test has."""
    values = [(name, id(value)) for name, value in item.callspec.params.items()]
    return frozenset(itertools.combinations(values, min(strength, len(values))))


# ---- skips that become failures ----


def _skip_to_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a report of a skip into one of a failure, where no skip is allowed."""
    if not report.skipped or hasattr(report, "wasxfail") or not _flag("GRIDWISE_REQUIRE_GPU"):
        return
    skip = report.longrepr
    reason = str(skip[2] if isinstance(skip, tuple) else skip).removeprefix("Skipped: ")
    if not reason.startswith(needs.PREFIX):
        report.outcome = "failed"
        report.longrepr = f"skipped, but GRIDWISE_REQUIRE_GPU=1 allows it only for a declared need: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    _skip_to_failure(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    report = yield
    _skip_to_failure(report)
    return report


# ---- what is kept on disk ----


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory) -> Iterator[str]:
    """A folder of the session's own for what would lie in the user's: no test writes there, nor learns from there."""
    folder = str(tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRIDWISE_CACHE_DIR", folder)
        # How busy the machine is must not decide which kernels the tests run.
        patch.setattr(lookback_selftest.LookbackProbe, "LIMIT_NS", 30_000_000_000)
        patch.setattr(lookback_selftest.LookbackProbe, "AGAIN_AT_MOST", 1.0)
        # Nor how long a GPU was idle which warnings a timed call has.
        patch.setattr(gpu_clock, "_follows_load", lambda device: False)
        yield folder


@pytest.fixture(autouse=True)
def no_columns(monkeypatch) -> None:
    """No width of a terminal from outside: workers of pytest-xdist have one."""
    monkeypatch.delenv("COLUMNS", raising=False)


# ---- devices ----


@functools.cache
def _has_adapter() -> bool:
    return bool(gw.list_adapters())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs an adapter where there is none, and what declares a need that is not met here."""
    if item.get_closest_marker("gpu"):
        if not _has_adapter():
            pytest.skip("no GPU adapter on this machine (a software one: Debian's mesa-vulkan-drivers)")
        _shared_device()
    _skip_without(*(name for mark in item.iter_markers("needs") for name in mark.args))


def _skip_without(*names: str) -> None:
    missing = needs.missing(names, _shared_device)
    if missing:
        pytest.skip(needs.PREFIX + ", ".join(missing))


def _make_device() -> wgpu.GPUDevice:
    if not _flag("GRIDWISE_TEST_REFUSE_FEATURES"):
        return gw.request_device()
    return gw.request_device().adapter.request_device_sync(label="no features", required_features=[])


@functools.cache
def _shared_device() -> wgpu.GPUDevice:
    device = _make_device()
    gw.capabilities(device)  # measured now, whatever the first test replaces
    # What one test has compiled, another finds, however many plans came between, and whether it names the device.
    context_of(device).executor.pipelines = KeptPipelines(device)
    device_module._default[:] = [device]
    return device


@pytest.fixture(scope="session")
def device() -> wgpu.GPUDevice:
    """The device that tests share, and with it everything that was compiled for it."""
    return _shared_device()


@pytest.fixture
def fresh_device() -> wgpu.GPUDevice:
    """A device of the test's own, on which nothing has run; each kernel that the test needs is compiled for it."""
    return _make_device()


@pytest.fixture
def renewed_device(device) -> Iterator[wgpu.GPUDevice]:
    """The shared device without memory, plans, pipelines and queries, as if new; each kernel is yet compiled once."""
    with renewed(device):
        yield device


@pytest.fixture(scope="session")
def require() -> Callable[..., None]:
    """Return a function that skips the test unless needs are met that only its parameters tell; else see ``needs``."""
    return _skip_without


@pytest.fixture(autouse=True)
def nothing_ahead(request, monkeypatch) -> None:
    """Kernels for other lengths are compiled when they are needed, not ahead in the background: most never are.

    Tests about what is compiled ahead have the mark ``ahead``.
    """
    if request.node.get_closest_marker("ahead") is None:
        monkeypatch.setattr(PipelineCache, "get_siblings_ahead", lambda self, plan: [])


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of Ctrl-C: shells have background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def steady_clock(monkeypatch) -> None:
    """A clock that stands still, as far as the canary tells, however busy the machine is."""
    from gridwise_py.bench.calibrate.canary import CanaryTime
    from gridwise_py.bench.sampling.sampler import Sampler

    monkeypatch.setattr(Sampler, "_canary_time", lambda self, stamps: CanaryTime(1000.0, 1.0))


# ---- errors that wgpu only logs ----


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def wgpu_errors() -> Iterator[list[str]]:
    """Fail the test if wgpu logs an error; a test that provokes one looks at this list and clears it."""
    logger, records = logging.getLogger("wgpu"), _Records()
    logger.addHandler(records)
    yield records.messages
    logger.removeHandler(records)
    if records.messages:
        pytest.fail(f"wgpu logged {len(records.messages)} errors:\n" + "\n".join(records.messages))
