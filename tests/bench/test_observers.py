"""Observers of clocks and power, on an invented driver."""

import sys
import types

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.sampling import measure as measure_module
from gridwise_py.bench.sampling import observers

H200 = {"device": "NVIDIA H200", "vendor": "NVIDIA", "description": "580.1"}


class NotSupported(Exception):
    """As pynvml.NVMLError."""


def _nvml(names=("NVIDIA H200",), **changes):
    """A pynvml of GPUs with these names."""
    fake = types.ModuleType("pynvml")
    fake.asked = []
    calls = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: len(names),
        "nvmlDeviceGetHandleByIndex": lambda i: i,
        "nvmlDeviceGetName": lambda handle: names[handle],
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind] + handle,
        "nvmlDeviceGetPowerUsage": lambda handle: 350_500,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(total=150 << 30, free=147 << 30, used=3 << 30),
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4 | 0x40,
    }
    for name, call in (calls | changes).items():
        setattr(fake, name, call)
    return fake


def _observe(info=H200):
    observer = observers._nvidia_observer(info)
    return observer() if observer is not None else {}


@pytest.fixture
def driver(monkeypatch):
    """Return a function that installs an invented pynvml (None: not installed)."""
    observers._nvml.cache_clear()
    yield lambda module: monkeypatch.setitem(sys.modules, "pynvml", module)
    observers._nvml.cache_clear()


def test_what_is_observed(driver):
    driver(_nvml())
    assert _observe() == {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "power_w": 350.5,
        "temperature_c": 41,
        "memory_used_bytes": 3 << 30,
        "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
    }


def test_names_may_be_bytes_and_one_of_several_gpus_is_found(driver):
    driver(_nvml((b"NVIDIA A100", b"NVIDIA H200")))
    assert _observe()["sm_clock_mhz"] == 1981


def test_without_the_package_nothing_is_observed(driver):
    driver(None)
    assert _observe() == {}


def _fails(*_):
    raise NotSupported("no")


@pytest.mark.parametrize(
    "module",
    [
        _nvml(nvmlInit=_fails),
        _nvml(nvmlDeviceGetCount=_fails),
        _nvml(names=()),
        _nvml(names=("NVIDIA A100",)),
        _nvml(names=("NVIDIA H200", "NVIDIA H200")),  # which of the two?
    ],
)
def test_what_cannot_be_known_is_not_told(driver, module):
    driver(module)
    assert _observe() == {}


def test_a_driver_that_does_not_tell_everything(driver):
    driver(_nvml(nvmlDeviceGetPowerUsage=_fails))
    found = _observe()
    assert "power_w" not in found
    assert found["temperature_c"] == 41


def test_other_vendors_do_not_ask_nvidias_driver(driver):
    driver(_nvml(nvmlInit=lambda: pytest.fail("asked")))
    assert _observe({"device": "llvmpipe", "vendor": "llvmpipe", "description": "Mesa"}) == {}


def test_unknown_reasons_are_kept():
    assert observers._reasons(0) == []
    assert observers._reasons(0x1 | 0x8000) == ["gpu_idle", "0x8000"]


def test_a_measurement_holds_a_look_before_and_after_each_block(device, monkeypatch, steady_clock):
    looks = iter(range(100))
    monkeypatch.setattr(measure_module, "observe", lambda _: {"sm_clock_mhz": next(looks)})
    protocol = gw.SamplingProtocol(samples=4, block_trials=2, warmup_s=0.01, max_warmup_s=0.01, check_unit=False)
    m = gw.measure(gw.Copy(device), protocol=protocol, input=np.arange(100, dtype=np.uint32))
    assert [(b["before"]["sm_clock_mhz"], b["after"]["sm_clock_mhz"]) for b in m.observations["blocks"]] == [
        (0, 1),
        (2, 3),
    ]
    monkeypatch.setattr(measure_module, "observe", lambda _: {})
    assert gw.measure(gw.Copy(device), protocol=protocol, input=np.arange(100, dtype=np.uint32)).observations == {}
