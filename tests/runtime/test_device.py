"""Adapters and devices: choosing one, measuring one, and living with whatever a user brings."""

import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.bare import device_with

X = np.arange(10_007, dtype=np.uint32)


class FakeAdapter:
    """What `list_adapters` and the choice look at."""

    features = frozenset({"timestamp-query", "subgroup"})

    def __init__(self, name, kind, backend="Vulkan"):
        self.info = {"device": name, "adapter_type": kind, "backend_type": backend}
        self.info |= {"vendor": "maker", "description": "driver 1"}


FAKES = [
    FakeAdapter("llvmpipe", "CPU"), FakeAdapter("Iris Xe", "IntegratedGPU"),
    FakeAdapter("GeForce", "DiscreteGPU", "OpenGL"), FakeAdapter("H200", "DiscreteGPU"),
    FakeAdapter("Strange", "Unknown"), FakeAdapter("H200", "DiscreteGPU"), FakeAdapter("New kind", "QuantumGPU"),
]  # fmt: skip


class Chosen(Exception):
    """An adapter is asked for a device."""


@pytest.mark.needs("wgpu")
def test_adapters_are_listed_and_chosen(device, monkeypatch):
    """Discrete ones before integrated ones before CPUs; those of OpenGL are hidden unless asked for."""

    def choose(adapter, *_):
        raise Chosen(FAKES.index(adapter))

    inside.let_adapters_make(monkeypatch, device, choose)
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", lambda: list(FAKES), raising=False)
    monkeypatch.delenv("GRIDWISE_ADAPTER", raising=False)
    listed = gw.list_adapters()
    assert [a.name for a in listed] == ["H200", "H200", "Iris Xe", "Strange", "New kind", "llvmpipe"]
    assert [a.index for a in listed] == list(range(6))
    assert str(listed[0]) == "[0] H200 (DiscreteGPU, Vulkan, driver 1)"
    assert listed[0].features == ("subgroup", "timestamp-query")
    assert [a.name for a in gw.list_adapters(include_opengl=True)][:3] == ["GeForce", "H200", "H200"]
    for wanted, index in (
        (None, 3), (1, 5), ("1", 5), (" 2 ", 1), ("iris", 1), ("LLVM", 0), ("cpu", 0), ("[3]", 4), ("h200", 3),
    ):  # fmt: skip
        with pytest.raises(Chosen) as chosen:
            gw.request_device(wanted)
        assert chosen.value.args == (index,)
    for wanted in (6, -1, "-1", "99", "²", "9" * 5000, "nvidia", "GeForce", "", "  ", True, 1.5, ["0"]):
        with pytest.raises(gw.AdapterError) as caught:
            gw.request_device(wanted)
        message = str(caught.value)
        assert isinstance(caught.value, LookupError)
        assert "[0] H200" in message
        assert "[5] llvmpipe" in message
        assert "GeForce (" not in message, "OpenGL is not listed"


@pytest.mark.gpu  # which engine runs is asked of a device
@pytest.mark.needs("wgpu")
def test_no_adapter_at_all_says_what_to_install(monkeypatch):
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", list, raising=False)
    assert gw.list_adapters() == []
    with pytest.raises(gw.AdapterError, match=r"mesa-vulkan-drivers.*include_opengl=True"):
        gw.request_device()


def test_request_device_by_index_part_of_a_name_and_adapter(device):
    first = gw.list_adapters()[0]
    for wanted in (0, "0", first.name[:6].upper(), device.adapter):
        made = gw.request_device(wanted)
        assert made is not device
        assert isinstance(made, wgpu.GPUDevice)
    assert gw.request_device(0).adapter.info["device"] == first.name


def test_request_device_by_environment(device, monkeypatch):
    first = gw.list_adapters()[0]
    monkeypatch.setenv("GRIDWISE_ADAPTER", first.name[:6].lower())
    assert gw.request_device().adapter.info["device"] == first.name
    monkeypatch.setenv("GRIDWISE_ADAPTER", "no such thing")
    with pytest.raises(gw.AdapterError, match=r"'no such thing'(.|\n)*\[0\]"):
        gw.request_device()
    gw.request_device(0)  # an argument counts more
    monkeypatch.setenv("GRIDWISE_ADAPTER", "")
    gw.request_device()


def test_every_useful_feature_of_the_adapter_is_requested(device):
    made = gw.request_device(device.adapter)
    for feature in ("timestamp-query", "subgroup", "shader-int64", "shader-int64-atomic-all-ops"):
        assert (feature in made.features) == (feature in gw.list_adapters()[0].features)
    for name in ("max-storage-buffer-binding-size", "max-buffer-size"):
        assert made.limits[name] == device.adapter.limits[name]


@pytest.mark.slow
@pytest.mark.needs("linux")  # the lines come from its Wayland library
@pytest.mark.parametrize("use", ["gw.sum", "gridwise info", "WAYLAND_DISPLAY"])
def test_a_process_without_a_runtime_folder_prints_nothing(device, use):
    """libwayland complains of XDG_RUNTIME_DIR, where containers and ssh sessions have none."""
    code = f"""
import os, sys
import numpy as np, gridwise_py as gw
if {use!r} == "gridwise info":
    from gridwise_py.cli import main
    sys.argv = ["gridwise", "info"]
    main()
assert gw.sum(np.ones(1000, np.uint32)) == 1000
gw.list_adapters()
import ctypes
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
before = os.environ.get("WAYLAND_DISPLAY")
assert getenv(b"WAYLAND_DISPLAY") == (None if before is None else before.encode())
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "WAYLAND_DISPLAY")}
    if use == "WAYLAND_DISPLAY":
        environment[use] = "wayland-7"
    done = subprocess.run(
        [sys.executable, "-W", "ignore:no GPU was found", "-c", code],
        capture_output=True, text=True, timeout=1200, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_cpu_that_nobody_asked_for_is_told_once(device, monkeypatch):
    one_that_is_a_cpu = inside.let_the_adapter_be_a_cpu(monkeypatch)
    monkeypatch.delenv("GRIDWISE_ADAPTER", raising=False)
    for ask, is_told in (
        (lambda: gw.sum(np.ones(9, np.uint32)), True),
        (gw.request_device, True),
        (lambda: gw.request_device("cpu"), False),
        (lambda: gw.request_device(0), False),
        (lambda: gw.request_device(*one_that_is_a_cpu()), False),
    ):
        inside.forget_software_warning(monkeypatch)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ask()
            gw.request_device(*(() if is_told else ("cpu",)))
        assert len(told) == is_told
        if is_told:
            assert told[0].category is gw.GridwiseWarning
            assert told[0].filename == __file__, "the caller's line"
            assert "GRIDWISE_ADAPTER=cpu" in str(told[0].message)
    monkeypatch.setenv("GRIDWISE_ADAPTER", "cpu")
    gw.request_device()  # a warning would be an error here


def test_capabilities_are_measured(device):
    capabilities = gw.capabilities(device)
    assert gw.capabilities(device) is capabilities
    assert capabilities.adapter == device.adapter.info["device"]
    assert capabilities.adapter_type == device.adapter.info["adapter_type"]
    assert capabilities.features == frozenset(device.features)
    assert capabilities.limits["max-buffer-size"] == device.limits["max-buffer-size"]
    if "subgroup" in device.features:
        assert capabilities.subgroup_size in (4, 8, 16, 32, 64, 128)
        assert capabilities.subgroup_mode(None).kind == "native"
    if "timestamp-query" in device.features:
        assert capabilities.tick_period_ns > 0
        assert capabilities.tick_step_ns is None or capabilities.tick_step_ns >= capabilities.tick_period_ns


def test_the_probed_subgroup_size_is_what_a_kernel_sees(device, require):
    require("subgroup")
    capabilities = gw.capabilities(device)
    text = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(128)
fn main(@builtin(subgroup_size) s: u32, @builtin(local_invocation_index) i: u32) { y[i] = s; }
"""
    sizes = gw.Kernel(device, text, {"y": "read_write"}, 1).execute(y=gw.empty(128, "u32", device)).output
    assert set(sizes.to_numpy()) == {capabilities.subgroup_size}


def test_a_device_of_the_users_without_any_feature(device):
    """Everything works, also without subgroups; times of the GPU are None, with one warning."""
    bare = device_with(device)
    capabilities = gw.capabilities(bare)
    assert not set(capabilities.features) & {"subgroup", "timestamp-query", "shader-int64"}
    assert (capabilities.subgroup_size, capabilities.tick_period_ns, capabilities.tick_step_ns) == (None, None, None)
    x, scan, add = gw.asarray(X, bare), gw.Scan(bare, strategy="lookback"), gw.VectorAdd(bare)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs = [
            scan.execute(input=x, enable_gpu_timing=True),
            scan.execute(enable_gpu_timing=True, enable_cpu_timing=True, trials=2),
            add.execute(a=x, b=x, enable_gpu_timing=True),
        ]
        results = [run.get_timing_result() for run in runs]
    np.testing.assert_array_equal(runs[1].output.to_numpy(), np.cumsum(X, dtype=np.uint32))
    np.testing.assert_array_equal(runs[2].output.to_numpy(), X + X)
    (mine,) = (w for w in caught if issubclass(w.category, gw.GridwiseWarning))
    assert "timestamp-query" in str(mine.message)
    assert mine.filename == __file__, "the warning points at the caller"
    for result in results:
        for value in (result.gpu_total_time_ns, result.gpu_span_ns, result.gaps_ns, result.tick_period_ns):
            assert value is None
        assert result.per_trial.gpu_total_time_ns is None
        assert "not measured" in repr(result)
    assert results[0].cpu_total_time_ns is None
    assert results[1].cpu_total_time_ns > 0
    with pytest.raises(gw.TimingUnavailable, match="timestamp-query"):
        gw.timing_helper(bare)


def test_arrays_of_two_devices_are_refused_together(device, fresh_device):
    mine, foreign = gw.asarray(X, device), gw.asarray(X, fresh_device)
    for call, message in (
        (lambda: gw.VectorAdd(device).execute(a=mine, b=foreign), r"another device.*asarray\(.*to_numpy\(\), device\)"),
        (lambda: gw.add(mine, foreign), "different devices"),
        (lambda: gw.sum(foreign, device=device), "different devices"),
        (lambda: gw.asarray(foreign.buffer, device, dtype="u32"), "device"),
    ):
        with pytest.raises(gw.BufferUsageError, match=message):
            call()
    assert gw.asarray(foreign, device).device is device  # asked for, so copied
    np.testing.assert_array_equal(foreign.to_numpy(), X)


@pytest.mark.needs("module:pygfx")
@pytest.mark.gpu
def test_the_device_that_pygfx_shares_works():
    import pygfx.renderers.wgpu as renderers

    shared = renderers.get_shared().device
    np.testing.assert_array_equal(gw.cumsum(X, dtype=np.uint32, device=shared), np.cumsum(X, dtype=np.uint32))


def test_a_gpu_that_is_not_there_is_marked_comes_last_and_is_not_tried(device, monkeypatch):
    """Mesa lists one where RADV_FORCE_FAMILY is set, and Dawn's process ends as it tries it."""

    facts = {"device": "Null hardware (RADV GFX1100)", "adapter_type": "DiscreteGPU"}
    null, engine = SimpleNamespace(info={**device.adapter.info, **facts}), inside.engine_of(device)
    monkeypatch.setattr(engine, "adapters", lambda: [null, device.adapter])
    monkeypatch.setattr(engine, "features_of", lambda thing: set())
    monkeypatch.setattr(engine, "request_device", lambda *_: pytest.fail("tried"))
    first, last = gw.list_adapters()
    assert (first.problem, last.problem) == (None, "it is no hardware, only a compiler; unset RADV_FORCE_FAMILY")
    assert str(last).endswith("unset RADV_FORCE_FAMILY")
    with pytest.raises(gw.DeviceError, match=r"'Null hardware .*' makes no device: it is no hardware"):
        gw.request_device("null")


@pytest.mark.parametrize("error", [RuntimeError("Parent device is lost"), wgpu.GPUError("no memory")])
def test_an_adapter_that_makes_no_device(device, monkeypatch, error):
    """Mesa lists GPUs that are not there (RADV_FORCE_FAMILY)."""

    def refuse(*_arguments):
        raise error

    inside.let_adapters_make(monkeypatch, device, refuse)
    with pytest.raises(gw.DeviceError, match=rf"is listed, but makes no device \({error}\); update its driver"):
        gw.request_device(device.adapter)
