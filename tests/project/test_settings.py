"""Environment variables: one place reads them, by one convention, and refuses what it does not know."""

import ast
import io
from pathlib import Path

import pytest

import gridwise_py as gw
from gridwise_py import settings
from gridwise_py.bench.report.console import make_console

PACKAGE = Path(gw.__file__).parent
FLAGS = {
    "GRIDWISE_DASK_CPU": (settings.dask_cpu, False),
    "GRIDWISE_HOLD_CLOCK": (settings.hold_clock, False),
    "GRIDWISE_JUDGE_BUSY": (settings.judge_busy, False),
    "GRIDWISE_LAUNCH_BLOCKING": (settings.launch_blocking, False),
    "GRIDWISE_MAP_ARRAYS": (settings.map_arrays, True),
    "GRIDWISE_TRACEBACK": (settings.traceback, False),
    "GRIDWISE_TUNING": (settings.uses_tuning, True),
}
FOLDERS = {"GRIDWISE_CACHE_DIR": settings.cache_dir, "GRIDWISE_DUMP_SHADERS": settings.dump_shaders,
           "GRIDWISE_FLEET_DIR": settings.fleet_dir}  # fmt: skip
OTHERS = {
    "GRIDWISE_ADAPTER": settings.adapter,
    "GRIDWISE_COPY_THREADS": settings.copy_threads,
    "GRIDWISE_ENGINE": settings.engine,
    "GRIDWISE_SCAN_STRATEGY": settings.scan_strategy,
    "GRIDWISE_SHADER_CHECKS": settings.shader_checks,
    "GRIDWISE_TIMEOUT_S": settings.timeout_s,
    "GRIDWISE_TOGGLES": settings.toggles,
}


def test_these_are_all_variables():
    assert set(settings.VARIABLES) == {*FLAGS, *FOLDERS, *OTHERS}


@pytest.mark.parametrize("name", FLAGS)
def test_flags(monkeypatch, name):
    read, default = FLAGS[name]
    monkeypatch.delenv(name, raising=False)
    assert read() is default
    for value, wanted in (("", default), ("1", True), ("on", True), ("0", False), ("off", False)):
        monkeypatch.setenv(name, value)
        assert read() is wanted, value
    monkeypatch.setenv(name, "perhaps")
    known = "1, 0, on, off(, auto)?"
    with pytest.raises(gw.ArgumentError, match=rf"{name}='perhaps' is unknown; known are {known}; unset it"):
        read()


def test_toggles_are_on_unless_they_are_off(monkeypatch):
    monkeypatch.setenv("GRIDWISE_TOGGLES", "a, b=off,c=1")
    assert settings.toggles() == {"a": True, "b": False, "c": True}
    monkeypatch.setenv("GRIDWISE_TOGGLES", "a=maybe")
    with pytest.raises(gw.ArgumentError, match="GRIDWISE_TOGGLES='a=maybe': a is 'maybe'; known are 1, 0, on, off"):
        settings.toggles()


def test_a_variable_without_effect_is_told_once(device, monkeypatch, tmp_path):
    monkeypatch.setenv("GRIDWISE_TIMEOUT", "3")
    monkeypatch.setenv("GRIDWISE_ELSE", "of other software")
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.warns(gw.GridwiseWarning) as told:
        _ = [gw.request_device(device.adapter) for _ in range(2)]
    first, second = sorted(str(one.message) for one in told)
    assert first.startswith(f"GRIDWISE_CACHE_DIR={tmp_path / 'file'}: File exists, so each process tests and compiles")
    assert second == "the environment variable GRIDWISE_TIMEOUT has no effect; did you mean 'TIMEOUT_S'?"


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(monkeypatch, tmp_path, name):
    read = FOLDERS[name]
    for value, wanted in (("", None), (str(tmp_path), tmp_path), ("0", Path.cwd() / "0")):
        monkeypatch.setenv(name, value)
        assert read() == wanted
    monkeypatch.delenv(name)
    assert read() is None


def test_an_adapter_is_any_text(monkeypatch):
    for value, wanted in (("", None), ("0", "0"), ("Some GPU", "Some GPU")):
        monkeypatch.setenv("GRIDWISE_ADAPTER", value)
        assert settings.adapter() == wanted


def test_a_number_of_threads_is_one_that_devices_take(monkeypatch):
    from gridwise_py.runtime.transfers import Transfers

    for value, wanted in (("", None), ("3", 3)):
        monkeypatch.setenv("GRIDWISE_COPY_THREADS", value)
        assert settings.copy_threads() == wanted
    assert Transfers(None).threads == 3
    for value in ("0", "-1", "two", "²", "9" * 5000):
        monkeypatch.setenv("GRIDWISE_COPY_THREADS", value)
        with pytest.raises(gw.ArgumentError, match=rf"COPY_THREADS='{value}' must be an integer from 1 to 999"):
            settings.copy_threads()


def test_a_scan_strategy_is_one_that_scan_takes(monkeypatch):
    monkeypatch.delenv("GRIDWISE_SCAN_STRATEGY", raising=False)
    assert settings.scan_strategy() == "auto"
    lengths = {"input": 99, "output": 99}
    for value in ("lookback", "reduce_then_scan"):
        monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", value)
        plan = gw.Scan.plan_for(capabilities=gw.Capabilities(), lengths=lengths)
        assert plan.parameters["strategy"] == settings.scan_strategy() == value
    monkeypatch.setenv("GRIDWISE_SCAN_STRATEGY", "1")
    with pytest.raises(gw.ArgumentError, match=r"STRATEGY='1'.*known are auto, reduce_then_scan, lookback"):
        settings.scan_strategy()


def test_the_columns_of_a_terminal_are_a_number_or_nothing(monkeypatch):
    sizes = {"": None, "80": 80, "wide": None, "-3": None, "0": None, "²": None, "9" * 5000: None}
    for value, wanted in sizes.items():
        monkeypatch.setenv("COLUMNS", value)
        monkeypatch.setenv("LINES", value)
        assert settings.terminal_columns() == wanted
        assert make_console(file=io.StringIO()).size == (wanted or 80, wanted or 25)


def _reads(tree):
    """The lines that reach for the environment, by any of its names in `os`."""
    names = {"environ", "environb", "getenv", "getenvb"}
    for node in ast.walk(tree):
        if (isinstance(node, ast.Attribute) and node.attr in names) or (
            isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names}
        ):
            yield node.lineno


def test_no_other_module_reads_the_environment():
    found = {
        path.relative_to(PACKAGE).as_posix(): list(_reads(ast.parse(path.read_text(encoding="utf-8"))))
        for path in PACKAGE.rglob("*.py")
    }
    assert found.pop("settings.py")
    assert {name: lines for name, lines in found.items() if lines} == {}
