"""Observers of clocks and power, on an invented driver."""

import sys
import types

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import observers
from gridwise_py.backend.gpu import Gpu, pci_address
from gridwise_py.backend.sysfs_observers import sysfs_gpus
from gridwise_py.bench.sampling import measure as measure_module

H200 = {"device": "NVIDIA H200", "vendor": "NVIDIA", "vendor_id": 0x10DE, "description": "580.1"}


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
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: {1: 1980}[kind],
        "nvmlDeviceGetPowerUsage": lambda handle: 350_500,
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(total=150 << 30, free=147 << 30, used=3 << 30),
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4 | 0x40,
    }
    for name, call in (calls | changes).items():
        setattr(fake, name, call)
    return fake


def _observe(info=H200):
    """What is observed where the GPU is the only one that it may be."""
    gpus = observers.gpus_like(info)
    return gpus[0].look() if len(gpus) == 1 else {}


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
        "max_sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "power_w": 350.5,
        "temperature_c": 41,
        "memory_used_bytes": 3 << 30,
        "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
    }


def test_names_may_be_bytes_and_one_of_several_gpus_is_found(driver):
    driver(_nvml((b"NVIDIA A100", b"NVIDIA H200")))
    assert _observe()["sm_clock_mhz"] == 1981


def _fails(*_):
    raise NotSupported("no")


def test_what_cannot_be_known_is_not_told(driver):
    for module in (
        None,  # the package is not installed
        _nvml(nvmlInit=_fails),
        _nvml(nvmlDeviceGetCount=_fails),
        _nvml(names=()),
        _nvml(names=("NVIDIA A100",)),
        _nvml(names=("NVIDIA H200", "NVIDIA H200")),  # which of the two?
    ):
        observers._nvml.cache_clear()
        driver(module)
        assert _observe() == {}


def test_a_driver_that_does_not_tell_everything(driver):
    driver(_nvml(nvmlDeviceGetPowerUsage=_fails))
    found = _observe()
    assert "power_w" not in found
    assert found["temperature_c"] == 41


def test_other_vendors_do_not_ask_nvidias_driver(driver):
    driver(_nvml(nvmlInit=lambda: pytest.fail("asked")))
    assert _observe({"device": "llvmpipe", "vendor": "llvmpipe", "vendor_id": 65541, "description": "Mesa"}) == {}


def test_unknown_reasons_are_kept():
    assert observers._reasons(0) == []
    assert observers._reasons(0x1 | 0x8000) == ["gpu_idle", "0x8000"]


def test_a_measurement_holds_a_look_before_and_after_each_block(device, monkeypatch, steady_clock):
    looks = iter(range(100))
    gpu = Gpu(None, lambda: {"sm_clock_mhz": next(looks)}, lambda: None)
    monkeypatch.setattr(measure_module, "gpu_of", lambda _: gpu)
    protocol = gw.SamplingProtocol(samples=4, block_trials=2, warmup_s=0.01, max_warmup_s=0.01, check_unit=False)
    m = gw.measure(gw.Copy(device), protocol=protocol, input=np.arange(100, dtype=np.uint32))
    assert [(b["before"]["sm_clock_mhz"], b["after"]["sm_clock_mhz"]) for b in m.observations["blocks"]] == [
        (0, 1),
        (2, 3),
    ]
    monkeypatch.setattr(measure_module, "gpu_of", lambda _: None)
    assert gw.measure(gw.Copy(device), protocol=protocol, input=np.arange(100, dtype=np.uint32)).observations == {}


# ---- the files of AMD's and Intel's drivers

AMD = {"device": "AMD Radeon RX 7900 XTX", "vendor": "AMD", "vendor_id": 0x1002, "device_id": 0x744C}
INTEL = {"device": "Intel(R) Arc(tm) A770", "vendor": "Intel", "vendor_id": 0x8086, "device_id": 0x56A0}


def _tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _ids(card, info):
    return {f"{card}/device/vendor": f"{info['vendor_id']:#x}\n", f"{card}/device/device": f"{info['device_id']:#x}\n"}


def test_amds_driver(tmp_path):
    hwmon = "card1/device/hwmon/hwmon3"
    root = _tree(
        tmp_path,
        _ids("card0", INTEL)
        | _ids("card1", AMD)
        | {
            "card1/device/pp_dpm_sclk": "0: 500Mhz\n1: 1255Mhz *\n2: 2304Mhz\n",
            "card1/device/pp_dpm_mclk": "0: 96Mhz\n1: 1249Mhz *\n",
            "card1/device/mem_info_vram_used": "3221225472\n",
            f"{hwmon}/freq1_input": "1254600000\n",
            f"{hwmon}/power1_average": "87250000\n",
            f"{hwmon}/temp1_input": "41000\n",
            "card1-DP-1/status": "connected\n",  # an output of the card
        },
    )
    expected = {
        "sm_clock_mhz": 1255,
        "max_sm_clock_mhz": 2304,
        "memory_clock_mhz": 1249,
        "power_w": 87.25,
        "temperature_c": 41,
        "memory_used_bytes": 3 << 30,
    }
    observe = sysfs_gpus(AMD, root)[0].look
    assert observe() == expected
    (root / hwmon / "freq1_input").unlink()
    (root / hwmon / "power1_average").rename(root / hwmon / "power1_input")
    assert observe() == expected
    (root / "card1/device/pp_dpm_sclk").write_text("S: 19Mhz *\n0: 500Mhz\n1: 2304Mhz\n")  # asleep
    assert observe()["sm_clock_mhz"] == 19
    for path in root.rglob("*"):
        if path.is_file() and path.name not in ("vendor", "device"):
            path.unlink()
    assert observe() == {}


@pytest.mark.parametrize(
    ("now", "highest"),
    [
        ("card0/device/tile0/gt0/freq0/act_freq", "card0/device/tile0/gt0/freq0/rp0_freq"),
        ("card0/gt/gt0/rps_act_freq_mhz", "card0/gt/gt0/rps_RP0_freq_mhz"),
        ("card0/gt_act_freq_mhz", "card0/gt_RP0_freq_mhz"),
    ],
    ids=["xe", "i915", "i915 before 5.18"],
)
def test_intels_drivers(tmp_path, now, highest):
    root = _tree(tmp_path, _ids("card0", INTEL) | {now: "600\n", highest: "2400\n"})
    assert sysfs_gpus(INTEL, root)[0].look() == {"sm_clock_mhz": 600, "max_sm_clock_mhz": 2400}


def test_a_card_that_is_not_certain_is_not_observed(tmp_path):
    assert sysfs_gpus(AMD, tmp_path / "none") == []
    root = _tree(tmp_path, _ids("card0", AMD))
    assert len(sysfs_gpus(AMD, root)) == 1
    assert sysfs_gpus(AMD | {"device_id": 0x73BF}, root) == []
    assert sysfs_gpus(H200 | {"vendor_id": 0x10DE, "device_id": 0x744C}, root) == []
    _tree(tmp_path, _ids("card1", AMD))  # which of the two?
    assert len(sysfs_gpus(AMD, root)) == 2
    (root / "card1/device/device").write_text("garbage")
    assert len(sysfs_gpus(AMD, root)) == 1


def test_addresses_and_used_memory_of_equal_gpus(driver, tmp_path):
    buses = [b"00000000:1B:00.0", b"00000001:1C:00.0", b"garbage"]
    driver(
        _nvml(
            ("NVIDIA H200",) * 3,
            nvmlDeviceGetPciInfo=lambda handle: types.SimpleNamespace(busId=buses[handle]),
            nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(used=handle << 30),
        )
    )
    gpus = observers.gpus_like(H200)
    assert [gpu.pci for gpu in gpus] == ["0000:1b:00.0", "0001:1c:00.0", None]
    assert [gpu.used_bytes() for gpu in gpus] == [0, 1 << 30, 2 << 30]
    for number in (0, 1):
        place = tmp_path / f"devices/pci0000:00/0000:0{number}:00.0"
        _tree(place, {"vendor": "0x1002\n", "device": "0x744c\n", "mem_info_vram_used": f"{number + 5}\n"})
        (tmp_path / f"card{number}").mkdir()
        (tmp_path / f"card{number}/device").symlink_to(place)
    found = sysfs_gpus(AMD, tmp_path)
    assert [(gpu.pci, gpu.used_bytes()) for gpu in found] == [("0000:00:00.0", 5), ("0000:01:00.0", 6)]


def test_addresses_of_drivers_are_written_alike():
    for text, address in (
        ("00000000:1B:00.0", "0000:1b:00.0"), ("0000:1b:00.0", "0000:1b:00.0"), ("1B:00.1", "0000:1b:00.1"),
        ("00010000:00:00.0", "10000:00:00.0"), ("", None), ("card0", None), ("0000:1b:00.0\x1b[2J", None),
        ("../../etc", None),
    ):  # fmt: skip
        assert pci_address(text) == address
