"""Devices without memory, devices that are lost: one exception with the cause, nothing half done, a next one works."""

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.paths import with_helpers
from helpers.running import python

X = np.arange(10_000, dtype=np.uint32)
PREFIX = np.cumsum(X, dtype=np.uint32)

USES = {
    "execute": lambda d, k: k["scan"].execute(),
    "execute with arrays": lambda d, k: k["scan"].execute(input=k["x"]),
    "execute, timed": lambda d, k: k["scan"].execute(enable_gpu_timing=k["timed"], enable_cpu_timing=True),
    "a new primitive": lambda d, k: gw.Scan(
        d, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64)
    ).execute(input=k["x"], output=k["y"]),
    "a user's operator": lambda d, k: gw.Reduce(
        d, op=gw.BinOp("xor", 0, np.bitwise_xor, wgsl="fn combine(a: T, b: T) -> T { return a ^ b; }")
    ).execute(input=k["x"], output=k["y"]),
    "to_numpy": lambda d, k: k["x"].to_numpy(),
    "copy_from": lambda d, k: k["x"].copy_from(X),
    "asarray": lambda d, k: gw.asarray(X, d),
    "empty": lambda d, k: gw.empty(3, "u32", d),
    "sum": lambda d, k: gw.sum(X, device=d),
    "event": lambda d, k: gw.Event(d, enable_timing=False).record(),
    "times": lambda d, k: k["run"].get_timing_result() if k["timed"] else k["x"].to_numpy(),
    "stream": lambda d, k: gw.stream(gw.Reduce(d), [X, X]),
    "a buffer of one's own": lambda d, k: gw.Array(k["own"], "u32"),
}


@pytest.fixture(scope="module")
def used(device):
    """A device that was destroyed after some work, and what was made on it."""
    made = gw.request_device(device.adapter)
    timed = "timestamp-query" in made.features
    x, y = gw.asarray(X, made), gw.empty(X.size, "u32", made)
    scan = gw.Scan(made, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=128))
    run = scan.execute(input=x, output=y, enable_gpu_timing=timed)
    own = made.create_buffer(size=16, usage=wgpu.BufferUsage.STORAGE)
    made.destroy()
    return made, {"x": x, "y": y, "scan": scan, "run": run, "timed": timed, "own": own}


@pytest.fixture
def lost(used, wgpu_errors):
    yield used
    wgpu_errors.clear()  # the loss is logged sooner or later


@pytest.mark.parametrize("use", USES)
def test_a_lost_device(device, lost, use):
    made, kept = lost
    for _ in range(2):
        with pytest.raises(gw.DeviceLostError, match=r"lost or destroyed \(.*request_device\(\)") as caught:
            USES[use](made, kept)
        assert isinstance(caught.value.__cause__, wgpu.GPUError), "wgpu's own error is the cause"
    # Another device does not mind.
    np.testing.assert_array_equal(gw.cumsum(X, device=device), PREFIX)


def test_queries_come_back_from_a_lost_device(lost):
    made, kept = lost
    if not kept["timed"]:
        return
    helper = gw.timing_helper(made)
    before = helper.pairs_in_use
    for _ in range(5):
        with pytest.raises(gw.DeviceLostError):
            kept["scan"].execute(enable_gpu_timing=True)
    assert helper.pairs_in_use == before


def test_waits_for_a_lost_device_raise_at_once(fresh_device, wgpu_errors):
    """Before any other call could notice: a wait for nothing would return as if all were well."""
    event = gw.Event(fresh_device, enable_timing=False)
    event.record()
    fresh_device.destroy()
    for wait in (gw.synchronize, lambda d: event.query(), lambda d: event.synchronize(), gw.synchronize):
        with pytest.raises(gw.DeviceLostError, match=r"lost or destroyed .*request_device\(\)"):
            wait(fresh_device)
    wgpu_errors.clear()


def test_a_lost_default_device_is_replaced(device, monkeypatch, wgpu_errors):
    inside.forget_default_device(monkeypatch)
    first = gw.default_device()
    kept = gw.asarray(X)
    assert gw.default_device() is first
    gw.request_device(first.adapter).destroy()  # another one that is lost changes nothing
    assert gw.default_device() is first
    first.destroy()
    np.testing.assert_array_equal(gw.asarray(X).to_numpy(), X)
    assert gw.default_device() is not first
    assert gw.default_device() is gw.default_device()
    with pytest.raises(gw.DeviceLostError):
        kept.to_numpy()
    wgpu_errors.clear()


LOST_MEANWHILE = """
import sys
import numpy as np, wgpu, gridwise_py as gw
from helpers.inside import Activity, Mapping, queues

X = np.arange(10_000, dtype=np.uint32)
Buffer = type(gw.request_device().create_buffer(size=16, usage=wgpu.BufferUsage.COPY_DST))
USES = {
    "to_numpy": lambda d, k: k["x"].to_numpy(),
    "execute": lambda d, k: k["scan"].execute(input=k["x"]),
    "times": lambda d, k: k["scan"].execute(
        enable_gpu_timing="timestamp-query" in d.features, enable_cpu_timing=True
    ).get_timing_result(),
    "stream": lambda d, k: list(gw.stream(k["scan"], [X, X, X])),
    "asarray": lambda d, k: gw.asarray(X, d),
    "copy_from": lambda d, k: k["y"].copy_from(k["x"]),
    "event": lambda d, k: gw.Event(d, enable_timing=False).record(),
    "sum": lambda d, k: gw.sum(X, device=d),
}


def before(owner, name):
    real = getattr(owner, name)
    def hooked(*args, **kwargs):
        device.destroy()
        return real(*args, **kwargs)
    setattr(owner, name, hooked)
    return lambda: setattr(owner, name, real)


def after(owner, name):
    real = getattr(owner, name)
    def hooked(*args, **kwargs):
        result = real(*args, **kwargs)
        device.destroy()
        return result
    setattr(owner, name, hooked)
    return lambda: setattr(owner, name, real)


POINTS = {
    "before a submission": lambda: before(Activity, "submitted"),
    "before a buffer is mapped": lambda: before(Mapping, "map_for_wgpu"),
    "while a buffer is mapped": lambda: before(queues, "_wait_until"),
    "after a buffer was mapped": lambda: after(Mapping, "map_for_wgpu"),
    "before a buffer is unmapped": lambda: before(Buffer, "unmap"),
}
reached = 0
for point, hook in POINTS.items():
    for use, function in USES.items():
        device = gw.request_device()
        kept = {"x": gw.asarray(X, device), "y": gw.empty(X.size, "u32", device), "scan": gw.Scan(device)}
        kept["scan"].execute(input=kept["x"])
        gw.sum(X, device=device)
        kept["x"].to_numpy()
        print(point, use, file=sys.stderr, flush=True)
        unhook = hook()
        try:
            function(device, kept)
            gw.synchronize(device)
        except gw.DeviceLostError:
            reached += 1
        finally:
            unhook()
np.testing.assert_array_equal(gw.cumsum(X, dtype=np.uint32), np.cumsum(X, dtype=np.uint32))
print("good", reached)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("map_arrays", "least"), [("off", 16), ("on", 10)])
def test_a_device_that_is_destroyed_in_the_middle_of_a_call(device, map_arrays, least):
    """wgpu would end the process, wait without end, or raise errors of its own."""
    done = python(LOST_MEANWHILE, **with_helpers(), GRIDWISE_MAP_ARRAYS=map_arrays)
    # Every use but asarray submits; most map and unmap a buffer, except where the arrays themselves are mapped.
    assert done.stdout.startswith("good ")
    assert int(done.stdout.split()[1]) >= least, done.stdout


@pytest.mark.needs("wgpu")
def test_a_loss_that_was_only_logged_is_raised_by_the_next_wait(device, lost, wgpu_errors):
    made, _ = lost
    made.create_command_encoder()  # here wgpu notices, and logs
    assert "DEVICE LOST!" in wgpu_errors
    for _ in range(2):
        with pytest.raises(gw.DeviceLostError, match=r"lost or destroyed .*; wgpu logged: .*(was lost|DEVICE LOST)"):
            gw.synchronize(made)
    gw.synchronize(device)  # it was not this one


# ---- memory


def _failing_after(device, monkeypatch, count):
    """Have the device refuse every buffer after `count` of them, as wgpu does where there is no memory."""
    left = [count]
    real = type(device)._create_buffer

    def create(self, *args, **kwargs):
        if self is device:
            left[0] -= 1
            if left[0] < 0:
                raise wgpu.GPUValidationError("Validation Error\n\nCaused by:\n  Not enough memory left.")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(type(device), "_create_buffer", create)
    return left


CALLS = {
    "scan": lambda d, x: (
        gw.Scan(d, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64))
        .execute(input=x)
        .output.to_numpy()
    ),
    "sort": lambda d, x: np.cumsum(gw.Sort(d).execute(input=x).output.to_numpy(), dtype=np.uint32),
    "one shot": lambda d, x: gw.cumsum(X, device=d),
    "stream": lambda d, x: np.concatenate(list(gw.stream(gw.Scan(d), [X[:4000], X[4000:]]))),
    "timed": lambda d, x: _timed(d, x),
}


def _timed(device, x):
    run = gw.Scan(device).execute(input=x, enable_gpu_timing="timestamp-query" in device.features)
    if "timestamp-query" in device.features:
        run.get_timing_result()
    return run.output.to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_no_memory_at_each_buffer_of_a_call(renewed_device, monkeypatch, call):
    """The first buffer fails, then the second, and so on: always the same error, and then the call works."""
    x = gw.asarray(X, renewed_device)
    gw.capabilities(renewed_device)
    gw.Scan(renewed_device)  # the self-test of look-back; what fails in there only chooses another strategy
    failures = 0
    while True:
        with monkeypatch.context() as patch:
            left = _failing_after(renewed_device, patch, failures)
            try:
                result = CALLS[call](renewed_device, x)
                break
            except gw.DeviceMemoryError:
                failures += 1
        assert left[0] < 0
        assert failures < 100
    np.testing.assert_array_equal(result, PREFIX)
    assert failures > 0
    np.testing.assert_array_equal(CALLS[call](renewed_device, x), PREFIX)
    gw.synchronize(renewed_device)
    assert inside.pairs_in_use(renewed_device) == 0


def test_a_call_without_memory_leaves_what_was_bound(renewed_device, monkeypatch):
    x = gw.asarray(X, renewed_device)
    scan = gw.Scan(renewed_device)
    output = gw.empty(X.size, "u32", renewed_device)
    scan.execute(input=x, output=output)
    longer = gw.asarray(np.ones(300_000, dtype=np.uint32), renewed_device)
    with monkeypatch.context() as patch:
        _failing_after(renewed_device, patch, 0)
        with pytest.raises(gw.DeviceMemoryError):
            scan.execute(input=longer, output=None)
    assert scan.execute().output.buffer is output.buffer
    np.testing.assert_array_equal(output.to_numpy(), PREFIX)


@pytest.mark.slow
@pytest.mark.needs("linux")
def test_no_memory_for_real(device):
    """In a process that may have only some memory more than it has."""
    code = """
    import resource
    import numpy as np, gridwise_py as gw
    X = np.arange(10_000, dtype=np.uint32)
    device = gw.request_device()
    if device.adapter.info["adapter_type"] != "CPU":
        print("skipped")  # its memory is not the process's
        raise SystemExit
    x = gw.asarray(X, device)
    scan = gw.Scan(device)
    scan.execute(input=x).output.to_numpy()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = used + (600 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    kept, failed = [], 0
    for _ in range(12):
        try:
            kept.append(gw.empty(25 << 20, "u32", device))  # 100 MiB
        except gw.DeviceMemoryError as error:
            failed += 1
            assert "104857600 bytes" in str(error) and "memory" in str(error)
            # The device goes on, and so do primitives on it.
            assert (scan.execute(input=x).output.to_numpy() == np.cumsum(X, dtype=np.uint32)).all()
    assert failed and kept, (failed, len(kept))
    made = len(kept)
    kept.clear()
    kept = [gw.empty(25 << 20, "u32", device) for _ in range(made)]  # what was dropped can be had again
    print("good")
    """
    assert python(code).stdout in ("good\n", "skipped\n")


# ---- what is told from texts


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (wgpu.GPUValidationError("Validation Error\n\nCaused by:\n    Parent device is lost"), gw.DeviceLostError),
        (wgpu.GPUValidationError("Device lost"), gw.DeviceLostError),
        (wgpu.GPUValidationError("Not enough memory left."), gw.DeviceMemoryError),
        (wgpu.GPUValidationError("Out of memory"), gw.DeviceMemoryError),
        (wgpu.GPUOutOfMemoryError("none"), gw.DeviceMemoryError),
        (wgpu.GPUValidationError("bind group 0 is not compatible"), gw.DeviceError),
    ],
)
def test_what_wgpu_raises_is_told_from_its_text(renewed_device, monkeypatch, error, kind):
    def refuse(**_options):
        raise error

    monkeypatch.setattr(renewed_device, "create_buffer", refuse, raising=False)
    with pytest.raises(gw.DeviceError) as caught:
        gw.empty(3, "u32", renewed_device)
    assert type(caught.value) is kind
    assert " ".join(str(error).split()) in str(caught.value)
