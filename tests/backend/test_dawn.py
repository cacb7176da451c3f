"""The engine Dawn, beside wgpu in one process: on SwiftShader's Vulkan here, since Dawn refuses old lavapipes."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from gridwise_py.backend import queues
from gridwise_py.backend.queues import queue_is_idle, wait_idle, wait_method
from gridwise_py.runtime.context import context_of
from gridwise_py.runtime.device import device_key
from helpers.paths import with_helpers

N = 5000
BROKEN = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@compute @workgroup_size(64) fn main() { nothing(x[0]); }
"""
X = np.random.default_rng(43).integers(0, 2**32, N, dtype=np.uint32)


@pytest.fixture(scope="module")
def dawn(require):
    """A device of Dawn."""
    require("an adapter of Dawn")
    return gw.request_device(0, engine="dawn")


@pytest.fixture
def wgpu_device(device):
    """A device of wgpu, whatever GRIDWISE_ENGINE says."""
    return device if context_of(device).engine.name == "wgpu" else gw.request_device(engine="wgpu")


@pytest.mark.gpu
def test_without_the_package_the_engine_says_what_to_install(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wgpudawn" else find(name))
    with pytest.raises(gw.AdapterError, match=r"engine='dawn' needs .*wgpudawn.*: pip install 'gridwise-py\[dawn\]'$"):
        gw.request_device(engine="dawn")
    monkeypatch.setenv("GRIDWISE_ENGINE", "dawn")
    with pytest.raises(gw.AdapterError, match="wgpudawn"):
        gw.list_adapters()
    assert gw.list_adapters(engine="wgpu")


def test_unknown_engines_are_refused(monkeypatch):
    with pytest.raises(gw.AdapterError, match="engine='blink' is unknown; known are wgpu, dawn"):
        gw.request_device(engine="blink")  # pyright: ignore[reportArgumentType] - that is the test
    monkeypatch.setenv("GRIDWISE_ENGINE", "blink")
    with pytest.raises(gw.ArgumentError, match="GRIDWISE_ENGINE='blink' is unknown; known are wgpu, dawn"):
        gw.request_device()


def test_an_adapter_is_of_its_own_engine(dawn):
    assert isinstance(dawn, wgpu.GPUDevice)
    assert context_of(gw.request_device(dawn.adapter)).engine.name == "dawn"
    with pytest.raises(gw.AdapterError, match="of the engine 'dawn', and engine='wgpu' was asked for"):
        gw.request_device(dawn.adapter, engine="wgpu")


@pytest.mark.full  # SwiftShader compiles for 8 s
def test_both_engines_compute_in_one_process(wgpu_device, dawn):
    for one in (dawn, wgpu_device):
        x = gw.asarray(X, one)
        assert gw.sum(x).item() == X.sum(dtype=np.uint64)
        scan = gw.Scan(one, dtype="u32").execute(input=x).output
        np.testing.assert_array_equal(scan.to_numpy(), np.cumsum(X, dtype=np.uint32))
        np.testing.assert_array_equal(gw.sort(x).to_numpy(), np.sort(X))
        flags = gw.asarray(X & 1, one)
        np.testing.assert_array_equal(gw.flatnonzero(flags).to_numpy(), np.flatnonzero(X & 1))
    with pytest.raises(gw.GridwiseError):
        gw.add(gw.asarray(X, dawn), gw.asarray(X, wgpu_device))


def test_subgroups_have_one_name(dawn):
    has = "subgroups" in dawn.adapter.features
    assert ("subgroup" in dawn.features) is has
    assert (gw.capabilities(dawn).subgroup_size is not None) is has


def test_times_are_nanoseconds_in_fine_steps(dawn):
    if "timestamp-query" not in dawn.features:
        pytest.skip("no timestamps")
    times = gw.Copy(dawn).execute(input=gw.asarray(X, dawn), enable_gpu_timing=True, trials=3).get_timing_result()
    assert all(span.end_ticks > span.begin_ticks for span in times.spans)
    capabilities = gw.capabilities(dawn)
    assert capabilities.tick_period_ns == 1.0
    assert capabilities.tick_step_ns < 2**16  # of the steps that Dawn rounds to where nobody forbids it
    begin, end = gw.Event(dawn, enable_timing=True), gw.Event(dawn, enable_timing=True)
    begin.record()
    gw.sort(gw.asarray(X, dawn))
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) > 0


def test_batches_and_captures_without_the_fast_path(dawn):
    x, scan, total = gw.asarray(X, dawn), gw.Scan(dawn), gw.Reduce(dawn)
    with gw.batch(dawn):
        sums = scan.execute(input=x).output
        last = total.execute(input=sums).output
    wanted = np.cumsum(X, dtype=np.uint32)
    np.testing.assert_array_equal(sums.to_numpy(), wanted)
    assert last.item() == wanted.sum(dtype=np.uint32)
    y = gw.zeros(N, "u32", dawn)
    with gw.capture(dawn) as sequence:
        scan.execute(input=x, output=y)
    assert not y.to_numpy().any()
    x.copy_from(np.ones(N, np.uint32))
    sequence.execute()
    np.testing.assert_array_equal(y.to_numpy(), np.arange(1, N + 1))


@pytest.mark.parametrize("polling_ns", [0, queues._POLLING_NS])
def test_waits(dawn, monkeypatch, polling_ns):
    """Without polling a helper's thread blocks in Dawn."""
    monkeypatch.setattr(queues, "_POLLING_NS", polling_ns)
    assert wait_method(dawn) == "on_submitted_work_done"
    x, scan = gw.asarray(np.tile(X, 100), dawn), gw.Scan(dawn)
    # Of 5 µs each: other processes may stop this one between the submit and the look.
    trials = 1 if gw.capabilities(dawn).is_cpu else 10_000
    for _ in range(3):
        scan.execute(input=x, trials=trials)
        assert queue_is_idle(dawn) is False
        wait_idle(dawn)
        assert queue_is_idle(dawn)


def test_errors_are_those_of_wgpu(dawn):
    with pytest.raises(gw.ShaderError, match="unresolved"):
        gw.Kernel(dawn, BROKEN, {"x": "read"}, 1).execute(x=gw.asarray(X, dawn))
    with pytest.raises(wgpu.GPUValidationError):
        dawn.create_buffer(size=4, usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.STORAGE)
    x = gw.asarray(X, dawn)
    copy = gw.Copy(dawn)
    copy.execute(input=x)
    x.destroy()
    with pytest.raises(gw.BufferUsageError):
        copy.execute(input=x)
    made = gw.request_device(dawn.adapter)
    y = gw.asarray(X, made)
    made.destroy()
    for use in (y.to_numpy, lambda: gw.asarray(X, made), lambda: wait_idle(made)):
        with pytest.raises(gw.DeviceLostError):
            use()


def test_toggles_are_asked_for_and_shown(dawn, wgpu_device, monkeypatch):
    made = gw.request_device(dawn.adapter, toggles={"disable_robustness": True})
    switches = context_of(made).engine.switches
    assert switches["disable_robustness"]
    assert switches["timestamp_quantization"] is False
    assert "disable_robustness" not in context_of(dawn).engine.switches
    assert device_key(made) != device_key(dawn)
    text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>; "
    text += "@compute @workgroup_size(1) fn main() { x[0]++; }"
    for device, level in ((dawn, "all"), (made, "none")):  # of the whole device, whatever a text asks for
        kernel = gw.Kernel(device, text, {"x": "read_write"}, workgroups=1, shader_checks="bounds")
        assert kernel.execute(x=gw.zeros(4, "u32", device)).plan.shader_checks == (level,)
        assert "shader_checks" not in device_key(device)
    monkeypatch.setenv("GRIDWISE_TOGGLES", "timestamp_quantization=on")
    assert context_of(gw.request_device(dawn.adapter)).engine.switches["timestamp_quantization"]
    with pytest.raises(gw.AdapterError, match="no toggle 'disable_robustnes' of a device; known is disable_robustness"):
        gw.request_device(dawn.adapter, toggles={"disable_robustnes": True})
    with pytest.raises(gw.AdapterError, match="wgpu has no toggles"):
        gw.request_device(wgpu_device.adapter, toggles={"disable_robustness": True})


def test_findings_and_files_name_the_engine(wgpu_device, dawn):
    assert device_key(wgpu_device)["wgpu"] == wgpu.__version__
    ours = device_key(dawn)
    assert "wgpu" not in ours
    assert ours["dawn"].startswith(importlib.import_module("wgpudawn").__version__)
    context = importlib.import_module("gridwise_py.bench.results.context").run_context(dawn)
    assert context["context"]["versions"]["dawn"] == ours["dawn"]
    assert context["context"]["settings"]["dawn.timestamp_quantization"] is False


#: Run apart: what Dawn offers is decided when it is loaded.
PRODUCTS = """
import wgpudawn
import gridwise_py as gw
from gridwise_py.backend import dawn
from gridwise_py.planning.shaders import prologue
from helpers.cases import MATRICES

dawn.prepare()
adapter = wgpudawn.gpu.request_adapter_sync()
assert adapter.info["backend_type"] == "Null"
device = adapter.request_device_sync(
    required_features=["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"]
)
found = set()
for m, n, k in (
    (512, 512, 512), (512, 512, 520), (500, 300, 77), (500, 300, 76), (1024, 1024, 256), (4096, 4096, 4096),
    (4096, 4096, 8), (1, 8, 3),
):
    product = gw.MatMul(None, "f16", m=m, n=n, k=k, capabilities=MATRICES)
    plan = product.plan(gw.Layout.separate({"a": 2, "b": 2, "output": 2}, a=m * k, b=k * n, output=m * n))
    for shader in plan.shaders.values():
        if "subgroupMatrixLoad" in shader.text:
            device.create_shader_module(code=prologue("tint", shader.text) + shader.text)
            found.add(shader.text)
assert len(found) > 6, len(found)
broken = found.pop().replace("subgroup_matrix_right<f16, 8, 16>", "subgroup_matrix_right<f16, 8, 8>")
try:
    device.create_shader_module(code=prologue("tint", broken) + broken)
except wgpudawn.GPUValidationError:
    pass
else:
    raise AssertionError("matrices of 16 columns and of 8 rows were multiplied")
"""


def test_tint_takes_products_by_matrices(require):
    """By Dawn's backend without a GPU, which has every feature and computes nothing."""
    require("Dawn")
    done = subprocess.run(
        [sys.executable, "-c", PRODUCTS], env={**with_helpers(), "WGPU_BACKEND_TYPE": "Null"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
