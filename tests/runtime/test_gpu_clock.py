"""A timed call on a GPU that was idle says so; the adapter of these tests, a CPU, plays the GPU."""

import json
import time
import warnings

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import queues, waits
from gridwise_py.backend.activity import IDLE_NS, Activity
from gridwise_py.backend.device_state import state_of
from gridwise_py.backend.gpu import Gpu
from gridwise_py.bench.sampling import benchmark
from gridwise_py.runtime import gpu_clock, gpu_identity
from gridwise_py.runtime.context import context_of

X = np.arange(1000, dtype=np.uint32)
MS = 1_000_000
FOLLOWS_LOAD = gpu_clock._follows_load  # of the library, which tests replace
LOW = "up to 3 times too long"


class Time:
    """Stands still but for pauses, so that a slow machine makes none."""

    def __init__(self):
        self.now_ns = time.perf_counter_ns()

    def perf_counter_ns(self):
        return self.now_ns

    monotonic = staticmethod(time.monotonic)

    def pause(self, pause_ns=2 * MS):
        self.now_ns += pause_ns


@pytest.fixture
def clock(monkeypatch):
    """The time that activities are noted by."""
    made = Time()
    monkeypatch.setattr(queues, "perf_counter_ns", made.perf_counter_ns)
    monkeypatch.setattr(waits, "time", made)
    monkeypatch.setattr(gpu_clock, "time", made)
    return made


@pytest.fixture
def gpu(renewed_device, clock, monkeypatch, require):
    """A device that counts as a GPU that was not used before, whose clock nobody holds, and no driver tells."""
    require("timestamp-query")
    monkeypatch.setattr(state_of(renewed_device), "activity", Activity())
    monkeypatch.setattr(gpu_clock, "_follows_load", lambda device: True)
    monkeypatch.setattr(gpu_identity, "gpus_like", lambda info: [])
    monkeypatch.setattr(gpu_clock.clock, "is_held", lambda info, **_: False)
    return renewed_device


def _timed(device, **options):
    x = gw.asarray(X, device)
    return gw.Copy(device).execute(input=x, **({"enable_gpu_timing": True} | options)).get_timing_result()


def _busy_for(device, clock, busy_ns, idle_ns=None):
    """Let the GPU have been at work for so long until now."""
    activity = state_of(device).activity
    activity.begin_ns, activity.last_ns, activity.idle_ns = clock.now_ns - busy_ns, clock.now_ns, idle_ns


def _clock_warnings(result):
    return [warning for warning in result.warnings if LOW in warning]


def test_a_call_after_a_pause_is_marked_everywhere(gpu, clock):
    assert _clock_warnings(_timed(gpu))  # though the device was probed just before
    clock.pause()
    result = _timed(gpu)
    (warning,) = _clock_warnings(result)
    assert "was idle for" in warning
    assert "is not held" in warning
    assert warning in repr(result)
    assert LOW in result._repr_html_()


def test_the_trace_has_the_warning(gpu, tmp_path):
    result = _timed(gpu)
    result.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["args"]["warnings"] for event in events if event.get("args", {}).get("warnings")] == [
        list(result.warnings)
    ]


@pytest.mark.parametrize(
    "timing", [{"enable_gpu_timing": True}, {"enable_gpu_timing": False, "enable_cpu_timing": True}]
)
def test_only_a_gpu_that_was_long_at_work_has_its_clock_back(gpu, clock, timing):
    _timed(gpu)
    _busy_for(gpu, clock, 100 * MS, idle_ns=3 * MS)
    (warning,) = _clock_warnings(_timed(gpu, **timing))
    assert "was idle for 3.00 ms" in warning
    _busy_for(gpu, clock, 600 * MS, idle_ns=3 * MS)
    assert not _clock_warnings(_timed(gpu, **timing))


def test_no_warning_where_the_clock_is_held(gpu, monkeypatch):
    monkeypatch.setattr(gpu_clock.clock, "is_held", lambda info, **_: True)
    assert not _clock_warnings(_timed(gpu))


@pytest.mark.needs("a CPU adapter", "timestamp-query")
def test_the_clock_of_a_cpu_is_nobodys_to_hold(renewed_device, monkeypatch):
    monkeypatch.setattr(gpu_clock, "_follows_load", FOLLOWS_LOAD)
    time.sleep(0.002)
    assert not _clock_warnings(_timed(renewed_device))
    with gpu_clock.clock_held(renewed_device) as state:
        assert state == "not applicable"


def test_the_clock_that_the_driver_tells(gpu, clock, monkeypatch):
    seen = {"sm_clock_mhz": 555, "max_sm_clock_mhz": 1980}
    monkeypatch.setattr(gpu_identity, "gpus_like", lambda info: [Gpu(None, lambda: seen, lambda: None)])
    assert "555 of 1,980 MHz" in _clock_warnings(_timed(gpu))[0]
    seen["sm_clock_mhz"] = 1905
    clock.pause()
    assert not _timed(gpu).warnings
    seen["sm_clock_mhz"] = 555
    clock.pause()
    run = gw.Copy(gpu).execute(input=gw.asarray(X, gpu), enable_gpu_timing=True)
    clock.pause(1000 * MS)  # so long after the call, the driver tells another clock
    assert "MHz" not in _clock_warnings(run.get_timing_result())[0]


def test_a_result_without_a_kernel_has_no_warning(gpu):
    nothing = gw.Copy(gpu).execute(input=gw.empty(0, "u32", gpu), enable_gpu_timing=True, enable_cpu_timing=True)
    assert nothing.get_timing_result().warnings == ()


def test_nvidias_users_are_told_how_to_hold_it(gpu, clock, monkeypatch):
    monkeypatch.setattr(gpu_clock.clock, "is_nvidia", lambda info, **_: False)
    assert "gw.hold_clock()" not in _clock_warnings(_timed(gpu))[0]
    monkeypatch.setattr(gpu_clock.clock, "is_nvidia", lambda info, **_: True)
    clock.pause()
    assert "gw.hold_clock()" in _clock_warnings(_timed(gpu))[0]


def test_the_first_work_of_a_process(gpu):
    doubt = gpu_clock.ClockDoubt(gpu, submitted_ns=0, busy_ns=0, idle_ns=None)
    assert "the GPU had not been used before" in doubt.warning(1000.0)
    assert doubt.warning(0.6e9) is None  # so long a call brings the clock back itself


@pytest.mark.parametrize("maps", [True, False])
def test_uploads_do_not_count_as_work(gpu, clock, monkeypatch, maps):
    """Where they are submissions, too, and the queue has the guard that counts those of others."""
    monkeypatch.setattr(context_of(gpu).memory, "is_mappable", maps and context_of(gpu).memory.is_mappable)
    queues.guard_queue(gpu)
    _timed(gpu)
    activity = state_of(gpu).activity
    last_ns = activity.last_ns
    clock.pause()
    gw.asarray(np.zeros(1 << 22, dtype=np.uint32), gpu)
    assert activity.last_ns == last_ns


class Held:
    released = 0

    def release(self):
        self.released += 1


def test_commands_hold_the_clock_where_they_can(gpu, monkeypatch):
    held = Held()
    monkeypatch.setattr(gpu_clock.clock, "hold", lambda info, *, pci: held)
    with gpu_clock.clock_held(gpu) as state:
        assert (state, held.released) == ("held", 0)
    assert held.released == 1
    with pytest.raises(KeyError), gpu_clock.clock_held(gpu):
        raise KeyError
    assert held.released == 2

    def refuse(info, *, pci):
        warnings.warn("two GPUs may be meant", gw.GridwiseWarning, stacklevel=2)

    monkeypatch.setattr(gpu_clock.clock, "hold", refuse)
    with gpu_clock.clock_held(gpu) as state:
        assert state == "not held"
    monkeypatch.setattr(gpu_clock.clock, "is_held", lambda info, **_: True)  # by other code of the process
    with gpu_clock.clock_held(gpu) as state:
        assert state == "held"


def _never():
    pytest.fail("asked")


class TestActivity:
    def test_submissions_in_a_row_are_one_stretch(self):
        activity = Activity()
        for now in (5 * MS, 5 * MS + IDLE_NS - 1, 6 * MS):
            activity.submitted(now, _never)
            activity.waited(now, now + 10)
        assert (activity.begin_ns, activity.busy_ns, activity.idle_ns) == (5 * MS, MS, None)

    def test_a_pause_begins_another_one(self):
        activity = Activity()
        activity.submitted(0, _never)
        activity.waited(0, 3 * MS)  # the GPU was at work until here
        activity.submitted(3 * MS + IDLE_NS - 1, _never)
        assert activity.begin_ns == 0
        activity.waited(9 * MS, 9 * MS + 1)  # nothing to wait for: it was done before
        activity.submitted(9 * MS + 2, _never)
        assert (activity.begin_ns, activity.idle_ns) == (9 * MS + 2, 9 * MS + 2 - (3 * MS + IDLE_NS - 1))

    @pytest.mark.parametrize(("is_idle", "begin_ns"), [(False, 0), (True, 50 * MS), (None, 50 * MS)])
    def test_work_that_nobody_waited_for_may_still_go_on(self, is_idle, begin_ns):
        activity = Activity()
        activity.submitted(0, _never)
        activity.submitted(50 * MS, lambda: is_idle)
        assert activity.begin_ns == begin_ns


def test_a_benchmark_passes_the_warning_on(gpu, clock, monkeypatch):
    x, copy = gw.asarray(X, gpu), gw.Copy(gpu)
    bracket = benchmark.bracket  # its walls go on by the true clock
    monkeypatch.setattr(benchmark, "bracket", lambda *calls: (*bracket(*calls)[:2], time.perf_counter_ns()))

    def call(pause_ns=2 * MS):
        clock.pause(pause_ns)
        return copy.execute(input=x, enable_gpu_timing=True)

    found = gw.benchmark(call, n_iters=3)
    (warning,) = found.warnings
    assert warning.startswith("3 of 3 calls: ")
    assert LOW in warning
    assert warning in repr(found)
    assert LOW in found._repr_html_()
    _busy_for(gpu, clock, 600 * MS)
    assert not gw.benchmark(lambda: call(0), n_iters=3).warnings


def test_a_profile_passes_the_warning_on(gpu, clock):
    x, copy = gw.asarray(X, gpu), gw.Copy(gpu)
    with gw.profile(gpu) as prof:
        for _ in range(2):
            clock.pause()
            copy.execute(input=x)
        _busy_for(gpu, clock, 600 * MS)
        copy.execute(input=x)
    averages = prof.key_averages()
    (warning,) = averages.warnings
    assert warning.startswith("2 of 3 timed calls: ")
    assert LOW in averages.table(width=1000)
    assert LOW in averages._repr_html_()
    with gw.profile(gpu) as prof:
        _busy_for(gpu, clock, 600 * MS)
        copy.execute(input=x)
    assert not prof.warnings
