"""measure() and benchmark() on a real device: what a Measurement holds, and that nothing else was measured."""

import gc
import itertools
import re
import sys
import threading

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.calibrate.canary import CanaryTime
from gridwise_py.bench.calibrate.kernels import CANARY, bind_flush
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.checks.check import Mismatch
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.sampling import measure
from gridwise_py.bench.sampling import sampler as sampling
from gridwise_py.bench.sampling.sampler import Sampler
from gridwise_py.bench.sampling.samples import Samples
from gridwise_py.bench.stats.series import StopReason
from gridwise_py.runtime.context import context_of
from helpers.bare import device_with

X = np.random.default_rng(7).integers(0, 1000, 20_011, dtype=np.uint32)


def _protocol(**options):
    defaults = {
        "samples": 6, "block_trials": 3, "submission_trials": 2, "warmup_s": 0.01, "max_warmup_s": 0.02,
        "canary_passes": 3, "flush_bytes": 1 << 18, "check_unit": False, "timeout_s": 60.0,
    }  # fmt: skip
    return gw.SamplingProtocol(**{**defaults, **options})


REAL_CANARY_TIME = Sampler._canary_time


@pytest.fixture(autouse=True)
def steady(steady_clock):
    """How many blocks there are must not depend on what else the machine does."""


@pytest.fixture
def scan(device):
    return gw.Scan(device, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64))


@pytest.fixture
def timed(require):
    require("timestamp-query")


# ---- the modes


@pytest.mark.parametrize("mode", ["hot", "cold", "latency", "batch"])
def test_a_measurement_says_everything(timed, device, scan, mode):
    m = gw.measure(scan, mode=mode, protocol=_protocol(batch_trials=2), case={"datatype": "u32"}, input=X)
    assert isinstance(m, gw.Measurement)
    assert (m.primitive, m.mode, m.n, m.case) == ("scan", Mode(mode), X.size, {"datatype": "u32"})
    assert m.correct
    assert m.error is None
    assert [s.name for s in m.kernels] == ["reduce blocks", "scan totals", "scan blocks"]
    assert np.array(m.ticks).shape == (6, 3, 2)
    assert m.tick_period_ns == gw.timing_helper(device).tick_period_ns
    assert m.stop_reason is StopReason.COUNT
    assert m.work["items"] == X.size
    assert len(m.shaders_sha256) == len(scan.bind(input=gw.asarray(X, device)).plan.shaders)
    assert m.time_ns == m.whole["gpu_span"].median_ns > 0
    assert m.gbytes_per_s > 0
    names = {"gpu_span", "gpu_sum", "gaps"}
    names |= {"hot": {"cpu_wall"}, "cold": set(), "batch": {"cpu_wall"}}.get(mode, {"cpu_wall", "submit", "encode"})
    assert set(m.whole) == names
    for series in (*m.kernels, m.whole["gpu_span"], m.whole["gpu_sum"], m.whole["gaps"]):
        assert len(series.samples_ns) + sum(series.invalid.values()) == 6, series.name
        assert series.summary.count == len(series.samples_ns)
    spans_ns = [(sample[-1][1] - sample[0][0]) * m.tick_period_ns for sample in m.ticks]
    trials = m.protocol["batch_trials"] if mode == "batch" else 1
    assert m.whole["gpu_span"].samples_ns == pytest.approx([ns / trials for ns in spans_ns])
    parts_ns = np.array(m.whole["gpu_sum"].samples_ns) + m.whole["gaps"].samples_ns
    np.testing.assert_allclose(parts_ns, m.whole["gpu_span"].samples_ns)
    begins = [begin for sample in m.ticks for begin, _ in sample]
    assert begins == sorted(begins), "kernels a, b, c, and again a, b, c"
    blocks = 2
    assert len(m.canary_ns) == 2 * blocks
    assert all(ns > 0 for ns in m.canary_ns)
    in_force = m.protocol
    assert in_force["mode"] == mode
    assert in_force["samples"] == 6
    assert in_force["wait_method"]
    assert in_force["warmup_measured_s"] >= 0.01
    assert in_force.get("flush_bytes") == 1 << 18
    if mode == "batch":
        assert in_force["batch_trials"] == 2


def test_sequences_several_kernels_and_functions_are_measured(timed, device, scan):
    """By one sampler: each kernel of them has an interval, a function one as a whole."""
    x = gw.asarray(X, device)
    total = gw.Reduce(device, "u32")
    with gw.capture(device) as calls:
        gw.sum(gw.cumsum(x))

    def record(encoder, input):
        scan.record(encoder, input=input)
        total.record(encoder, input=input)

    found = {
        "Sequence": gw.measure(calls, protocol=_protocol(samples=3)),
        "prefix + total": gw.measure({"prefix": scan, "total": total}, protocol=_protocol(samples=3), input=X),
        "record": gw.measure(record, mode="batch", protocol=_protocol(samples=3, batch_trials=2), input=x),
        "lambda": gw.measure(lambda: gw.cumsum(x), protocol=_protocol(samples=3)),
        "returned": gw.measure(
            gw.Benchmark(lambda: total.execute(input=x, enable_gpu_timing=True), reference=X.sum()),
            protocol=_protocol(samples=3),
        ),
    }
    assert [m.primitive for m in found.values()] == [*list(found)[:-1], "lambda"]
    assert [m.mode.value for m in found.values()] == ["hot", "hot", "batch", "latency", "latency"]
    of_calls = sum(len(call.plan.kernels) for call, _ in calls.calls)
    assert [len(m.kernels) for m in found.values()] == [of_calls, 4, 1, 1, 1]
    assert [m.kernels[0].median_ns is not None for m in found.values()] == [True, True, True, False, True]
    assert found["prefix + total"].kernels[-1].name == "total"
    assert [m.whole["cpu_wall"].summary.count for m in found.values()] == [2, 2, 3, 3, 3]  # per submission
    assert [name for name in found["lambda"].whole] == ["cpu_wall", "submit"], "nothing is encoded, nothing stamped"
    span, wall = (found["returned"].whole[name].samples_ns for name in ("gpu_span", "cpu_wall"))
    assert all(0 < a < b for a, b in zip(span, wall, strict=True))  # the wait around a call holds its kernels
    assert [m.checked for m in found.values()] == [False, False, False, False, True]
    assert found["returned"].correct


def test_passes_that_a_function_times_are_kernels(timed, device, scan):
    x, total = gw.asarray(X, device), gw.Reduce(device, "u32")

    def record(encoder, x, timing=None):
        copy_pass = encoder.begin_compute_pass(timestamp_writes=timing.span("own pass") if timing else None)
        copy_pass.end()
        total.record(encoder, input=x, timing=timing)
        scan.record(encoder, input=x, timing=timing)

    def submit():
        return total.execute(input=x, enable_gpu_timing=True), scan.execute(input=x, enable_gpu_timing=True)

    recorded, submitted = (
        gw.measure(record, protocol=_protocol(samples=3), x=x), gw.measure(submit, protocol=_protocol(samples=3)),
    )  # fmt: skip
    labels = [kernel.label for each in (total, scan) for kernel in each.bind(input=x).plan.kernels]
    assert [kernel.name for kernel in recorded.kernels] == ["own pass", *labels]
    assert [kernel.name for kernel in submitted.kernels] == labels
    for m in (recorded, submitted):
        assert all(kernel.median_ns for kernel in m.kernels[-2:])
        assert m.whole["gpu_span"].median_ns >= max(kernel.median_ns for kernel in m.kernels[-2:])
        assert len(result_of(m).kernels) == len(m.kernels)
    with pytest.raises(gw.ArgumentError, match="'batch' is not for a function that takes timing="):
        gw.measure(record, mode="batch", x=x)


def test_a_function_times_the_same_passes_each_time(timed, device, scan):
    x, calls = gw.asarray(X, device), []

    def record(encoder, x, timing=None):
        calls.append(timing)
        for _ in range(1 + (timing is not None and len(calls) > 1)):
            scan.record(encoder, input=x, timing=timing)

    def submit():
        calls.append(None)
        return [scan.execute(input=x, enable_gpu_timing=True) for _ in range(2 + (len(calls) > 1))]

    for run, arguments in ((record, {"x": x}), (submit, {})):
        calls.clear()
        with pytest.raises(gw.ArgumentError, match=f"{run.__name__} timed .* spans, but .* at its first call"):
            gw.measure(run, protocol=_protocol(samples=3), **arguments)


def test_the_result_of_a_function_is_checked(device):
    x = gw.asarray(X, device)
    for reference, right in ((np.cumsum(X), True), (X, False)):
        m = gw.measure(gw.Benchmark(lambda: gw.cumsum(x), reference=reference), protocol=_protocol(samples=2))
        assert (m.checked, m.correct) == (True, right)
    with pytest.raises(gw.ArgumentError, match=r"reference of the result has shape \(3,\), but .* \(20011,\)"):
        gw.measure(gw.Benchmark(lambda: gw.cumsum(x), reference=X[:3]), protocol=_protocol())
    with pytest.raises(gw.ArgumentError, match="the function returned None; let it return the result"):
        gw.measure(gw.Benchmark(lambda: print(gw.cumsum(x)), reference=X), device=device, protocol=_protocol())


def test_samples_begin_after_the_canary_before_them(timed, device, scan):
    sampler = Sampler(device, scan.bind(input=gw.asarray(X, device)).bound_plan, Mode.HOT, _protocol())
    sampler.warm_up()
    block = sampler.block(3)
    assert 0 < block.previous_end_ticks <= block.ticks[0, 0, 0]
    assert block.submissions == {2: (0, 0, 1), 1: (0, 1, 2)}[sampler.submission_trials]


def test_latency_is_the_wall_of_a_submission_per_trial(timed, scan):
    m = gw.measure(scan, mode="latency", protocol=_protocol(), input=X)
    assert len(m.whole["cpu_wall"].samples_ns) == len(m.whole["submit"].samples_ns) == 6
    for span, wall, submit in zip(*(m.whole[k].samples_ns for k in ("gpu_span", "cpu_wall", "submit")), strict=True):
        assert span <= 1.02 * wall  # from before the submission to after the wait, whoever stops this process
        assert submit <= wall


def test_the_size_of_a_batch_is_chosen(timed, device):
    """A millisecond, or 100 steps of a coarser clock; each sample of a measurement is so long."""
    bound = gw.Copy(device).bind(input=gw.asarray(X[:64], device)).bound_plan
    sampler = Sampler(device, bound, Mode.BATCH, _protocol())
    for trial_ns in (1e9, 1e4, 3.0):
        sampler._size(trial_ns)
        wanted_ns = max(1e6, 100 * (gw.capabilities(device).tick_step_ns or 0))
        assert sampler.batch_trials == -(-wanted_ns // trial_ns)
    m = gw.measure(gw.Copy(device), mode="batch", protocol=_protocol(samples=2), input=X[:64])
    assert m.protocol["batch_trials"] >= 1


def test_the_gpu_time_of_a_submission_is_capped(timed, scan):
    m = gw.measure(scan, protocol=_protocol(submission_trials=50, max_submission_gpu_s=1e-6), input=X)
    assert m.protocol["submission_trials"] == 1
    assert any("one trial takes" in w for w in m.warnings)
    assert len(m.whole["cpu_wall"].samples_ns) == 6
    m = gw.measure(
        scan, mode="batch", protocol=_protocol(samples=1, batch_trials=10**5, max_submission_gpu_s=0.01), input=X
    )
    assert m.protocol["batch_trials"] < 10**5
    assert any("was cut to" in w for w in m.warnings)


# ---- warm-up, canary, stopping


def test_warm_up_goes_on_until_stationary(timed, device, scan, monkeypatch):
    bound = scan.bind(input=gw.asarray(X, device)).bound_plan
    calls = itertools.count(1)
    monkeypatch.setattr(sampling, "is_stationary", lambda samples: next(calls) >= 4)
    warm = Sampler(device, bound, Mode.HOT, _protocol(warmup_s=0.0, max_warmup_s=30.0)).warm_up()
    assert warm.stationary
    assert next(calls) == 5
    monkeypatch.setattr(sampling, "is_stationary", lambda samples: False)
    m = gw.measure(scan, protocol=_protocol(warmup_s=0.0, max_warmup_s=0.1), input=X)
    assert 0.1 <= m.protocol["warmup_measured_s"] < 60
    assert not m.protocol["stationary"]
    assert any("not stationary" in w for w in m.warnings)


def _canaries(monkeypatch, times_ns, on_cpu=False):
    """The canary takes these times, in ns, and then the last of them: before and after each block, on a GPU."""
    monkeypatch.setattr(measure, "Samples", lambda *args, **options: Samples(*args, on_cpu=on_cpu))
    times = itertools.chain(times_ns, itertools.repeat(times_ns[-1]))
    monkeypatch.setattr(Sampler, "_canary_time", lambda *_: CanaryTime(next(times), 1.0))
    monkeypatch.setattr(Sampler, "_clock_is_up", lambda *_: True)


def test_the_canary_is_timed_around_each_block(timed, device, scan, monkeypatch):
    monkeypatch.setattr(Sampler, "_canary_time", REAL_CANARY_TIME)
    m = gw.measure(scan, protocol=_protocol(timeout_s=1e-6), input=X)
    assert len(m.canary_ns) == 2
    stamps = [stamp for sample in m.ticks for pair in sample for stamp in pair]
    assert all(ns > 0 for ns in m.canary_ns)
    sampler = Sampler(device, scan.bind(input=gw.asarray(X, device)).bound_plan, Mode.HOT, _protocol(canary_passes=5))
    session = gw.timing_helper(device).session()
    device.queue.submit([sampler._canary_commands(session)])
    session.submitted()
    ticks = session.ticks()
    assert ticks.shape == (5, 2)
    assert ticks.min() > max(stamps)
    lengths = (ticks[:, 1] - ticks[:, 0]) * sampler.period_ns
    assert sampler._canary_time(ticks).median_ns == np.median(lengths)


def test_blocks_at_another_clock_are_left_out_and_taken_again(timed, scan, monkeypatch):
    _canaries(monkeypatch, [3000.0, 1000.0, 1000.0, 1010.0, 1300.0, 1300.0, 1000.0])
    m = gw.measure(scan, protocol=_protocol(), input=X)
    assert m.canary_ns == (3000.0, 1000.0, 1000.0, 1010.0, 1300.0, 1300.0, 1000.0, 1000.0)
    assert not m.clock_moved
    assert m.protocol["block_samples"] == [3, 3, 3, 3]
    assert m.protocol["left_out_blocks"] == [0, 2]
    assert np.array(m.ticks).shape == (12, 3, 2), "raw stamps of all blocks"
    assert m.stop_reason is StopReason.COUNT
    for series in (*m.kernels, m.whole["gpu_span"], m.whole["gaps"]):
        assert len(series.samples_ns) == 6 - sum(series.invalid.values()) + series.invalid["other_clock"]
        assert series.invalid["other_clock"] == 6
    spans = [(sample[-1][1] - sample[0][0]) * m.tick_period_ns for sample in m.ticks]
    np.testing.assert_allclose(m.whole["gpu_span"].samples_ns, [*spans[3:6], *spans[9:]])
    assert len(m.whole["cpu_wall"].samples_ns) == 4
    assert any("6 of 12 samples were taken at another clock" in w for w in m.warnings)


def test_on_a_cpu_no_sample_is_left_out_for_a_clock(timed, device, scan, monkeypatch):
    """There the canary shows the other work of the machine, which is part of the noise."""
    _canaries(monkeypatch, [3000.0, 1000.0, 1000.0, 1500.0], on_cpu=True)
    m = gw.measure(scan, protocol=_protocol(), input=X)
    assert (m.clock_moved, m.protocol["left_out_blocks"], m.protocol["block_samples"]) == (False, [], [3, 3])
    assert not any("clock" in w for w in m.warnings)
    asked = []
    monkeypatch.setattr(measure, "Samples", lambda *args, **options: asked.append(options) or Samples(*args, **options))
    gw.measure(scan, protocol=_protocol(), input=X)
    assert asked == [{"on_cpu": gw.capabilities(device).is_cpu}]


def test_a_clock_that_never_stands_still_is_told(timed, scan, monkeypatch):
    _canaries(monkeypatch, [1000.0, 1100.0, 1210.0, 1330.0])
    m = gw.measure(scan, protocol=_protocol(timeout_s=1e-6, block_trials=6), input=X)
    assert m.clock_moved
    assert m.whole["gpu_span"].summary.count == 6, "there are no better ones"
    assert any("clock moved" in w for w in m.warnings)
    _canaries(monkeypatch, [1000.0])
    assert not gw.measure(scan, protocol=_protocol(), input=X).clock_moved


def test_the_warm_up_goes_on_while_the_canary_is_slow(timed, device, scan, monkeypatch):
    """Times look stationary on each step of a clock that comes up."""
    monkeypatch.setattr(sampling, "is_stationary", lambda samples: True)
    bound = scan.bind(input=gw.asarray(X, device)).bound_plan
    seen = iter([3000.0, 1500.0, 1040.0, 1020.0, 99.0])
    monkeypatch.setattr(Sampler, "_canary_time", lambda *_: CanaryTime(next(seen), 1.0))
    warm = Sampler(device, bound, Mode.HOT, _protocol(warmup_s=0.0, max_clock_warmup_s=60.0)).warm_up(1000.0)
    assert warm.clock_up
    assert next(seen) == 99.0, "the fourth is within 3 %"
    monkeypatch.setattr(Sampler, "_canary_time", lambda *_: CanaryTime(3000.0, 1.0))
    warm = Sampler(device, bound, Mode.HOT, _protocol(warmup_s=0.0, max_clock_warmup_s=0.05)).warm_up(1000.0)
    assert not warm.clock_up
    assert warm.seconds >= 0.05


def test_a_clock_below_its_best_is_told(timed, scan, monkeypatch):
    import gridwise_py.bench.sampling.measure as measuring

    noted = []
    monkeypatch.setattr(measuring, "fastest_canary_ns", lambda device: 500.0)
    monkeypatch.setattr(measuring, "note_canary", lambda device, ns: noted.append(ns))
    _canaries(monkeypatch, [1000.0])
    m = gw.measure(scan, protocol=_protocol(), input=X)
    assert noted == [1000.0]
    assert m.protocol["fastest_canary_ns"] == 500.0
    assert any("1.0 µs, and 0.5 µs at the fastest" in w for w in m.warnings)


def test_the_canary_computes_what_it_says(device):
    bound = CANARY.bind(device)
    encoder = device.create_command_encoder()
    bound.encode(encoder)
    device.queue.submit([encoder.finish()])
    x = np.arange(1, 65, dtype=np.uint32)
    for _ in range(512 * 8):
        x = x * np.uint32(747796405)
        x ^= x >> np.uint32(15)
    np.testing.assert_array_equal(gw.Array(next(iter(bound.own_buffers.values())), "u32").to_numpy(), x)


def test_the_flush_touches_every_word(device):
    for size_bytes in (16, 4096, 1 << 20, (1 << 20) + 48):
        bound, buffer = bind_flush(device, size_bytes)
        assert buffer.size == size_bytes
        encoder = device.create_command_encoder()
        bound.encode(encoder, trials=2)
        device.queue.submit([encoder.finish()])
        words = gw.Array(buffer, "u32").to_numpy().reshape(-1, 4)
        assert (words == [2, 6, 10, 14]).all()


def test_the_time_is_up(timed, scan):
    m = gw.measure(scan, protocol=_protocol(samples=10**6, timeout_s=0.05), input=X)
    assert m.stop_reason is StopReason.TIMEOUT
    assert 3 <= len(m.ticks) < 10**6


def test_the_rule_says_when_to_stop(timed, scan, monkeypatch):
    class After:
        def reason(self, samples_ns, elapsed_s):
            return StopReason.PLATEAU if len(samples_ns) >= 9 else None

    monkeypatch.setattr(gw.SamplingProtocol, "stopping", lambda protocol: After())
    m = gw.measure(scan, protocol=_protocol(samples=None), input=X)
    assert m.stop_reason is StopReason.PLATEAU
    assert len(m.ticks) == 9


# ---- inputs that are changed, and checks


def test_in_place_inputs_are_put_back_before_each_trial(timed, device, scan):
    x = gw.asarray(X, device)
    m = gw.measure(scan, protocol=_protocol(), input=x, output=x)
    assert m.correct
    assert m.protocol["restored"] == ["input"]
    assert "cpu_wall" not in m.whole, "a wall with copies in it would mislead"
    np.testing.assert_array_equal(x.to_numpy(), np.cumsum(X, dtype=np.uint32))


def test_a_batch_cannot_put_anything_back(timed, device, scan):
    x = gw.asarray(X, device)
    with pytest.raises(gw.OverlapError, match=r"input.*use mode 'hot'"):
        gw.measure(scan, mode="batch", protocol=_protocol(), input=x, output=x)
    np.testing.assert_array_equal(x.to_numpy(), X)


#: The end of what is printed; a busy machine is told behind it.
UNCHECKED = re.compile(r"not checked(; other work used [^;]*)?\)$")


class Wrong(gw.Copy):
    """Right at first; later the reference and the result differ."""

    def reference(self, input):
        return input + 1


def test_a_wrong_result_is_found(timed, device):
    m = gw.measure(Wrong(device), protocol=_protocol(), input=X)
    assert not m.correct
    assert m.mismatches[0].wrong_items == X.size
    unchecked = gw.measure(Wrong(device), protocol=_protocol(), check=False, input=X)
    assert unchecked.correct
    assert not unchecked.checked
    assert UNCHECKED.search(repr(unchecked))


def test_the_last_result_is_checked_too(timed, device, scan):
    seen = []

    def check(outputs):
        seen.append(outputs["output"].to_numpy())
        return None if len(seen) < 3 else Mismatch(0, 1, 2, 1)

    m = gw.measure(scan, protocol=_protocol(), check=check, input=X)
    assert len(seen) == 3, "on two fillers, and after the samples"
    assert m.mismatches == (Mismatch(0, 1, 2, 1),)


def test_a_cold_start_is_told_once_and_again_where_another_kernel_makes_room(timed, fresh_device, monkeypatch):
    gw.capabilities(fresh_device)

    def measured(workgroup_size):
        copy = gw.Copy(fresh_device, tuning=gw.ElementwiseTuning(workgroup_size=workgroup_size))
        return gw.measure(copy, protocol=_protocol(), input=X)

    first = measured(64)
    assert first.cold_start_ns > 0
    assert measured(64).cold_start_ns is None
    monkeypatch.setattr("gridwise_py.runtime.executor._MAX_PIPELINES", 1)
    for workgroup_size in (128, 64):
        assert measured(workgroup_size).cold_start_ns is not None


def test_nothing_to_do(scan):
    m = gw.measure(scan, protocol=_protocol(), input=X[:0])
    assert (m.n, m.kernels, m.whole, m.ticks, m.correct, m.time_ns) == (0, (), {}, (), True, None)


# ---- what stays as it was


def test_measuring_leaves_no_queries_and_no_collector_behind(timed, device):
    helper = gw.timing_helper(device)
    gc.collect()
    before = helper.pairs_in_use
    for mode in ("hot", "latency"):
        gw.measure(gw.Copy(device), mode=mode, protocol=_protocol(), input=X)
    assert gc.isenabled()
    gc.collect()
    assert helper.pairs_in_use == before


def test_an_interrupted_block_gives_its_queries_back(timed, device, scan, monkeypatch):
    sampler = Sampler(device, scan.bind(input=gw.asarray(X, device)).bound_plan, Mode.HOT, _protocol())
    sampler.warm_up()
    helper = gw.timing_helper(device)
    gc.collect()
    before = helper.pairs_in_use

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "bracket", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sampler.block(4)
    assert helper.pairs_in_use == before


def test_nothing_is_read_within_a_window(timed, device, scan, monkeypatch):
    """Timestamps are resolved after the last submission of a block."""
    open_window = []
    bracket = sampling.bracket

    def watched(*args):
        open_window.append(True)
        try:
            return bracket(*args)
        finally:
            open_window.pop()

    context = type(context_of(device))
    read = context.read_buffer
    monkeypatch.setattr(sampling, "bracket", watched)
    monkeypatch.setattr(context, "read_buffer", lambda *a, **o: pytest.fail("read") if open_window else read(*a, **o))
    from gridwise_py.timing import queries as timing

    words = timing.read_words
    monkeypatch.setattr(timing, "read_words", lambda *a: pytest.fail("read") if open_window else words(*a))
    assert gw.measure(scan, protocol=_protocol(), input=X).correct


# ---- devices without timestamps


def test_without_timestamps_there_are_walls_and_no_cold_mode(device):
    bare = device_with(device)
    m = gw.measure(gw.Copy(bare), protocol=_protocol(), input=X)
    assert set(m.whole) == {"cpu_wall"}
    assert [(k.name, k.samples_ns, k.summary) for k in m.kernels] == [("copy", (), None)]
    assert m.time_ns == m.whole["cpu_wall"].median_ns
    assert m.tick_period_ns is None
    assert any("timestamp-query" in w for w in m.warnings)
    with pytest.raises(gw.TimingUnavailable, match=r"cold.*timestamp-query.*hot"):
        gw.measure(gw.Copy(bare), mode="cold", protocol=_protocol(), input=X)


# ---- bad arguments


def test_bad_arguments(device, scan):
    with pytest.raises(gw.ArgumentError, match=r"'warm'.*cold, hot, batch, latency"):
        gw.measure(scan, mode="warm", input=X)
    with pytest.raises(gw.ArgumentError, match=r"'inputs'.*input"):
        gw.measure(scan, protocol=_protocol(), inputs=X)
    with pytest.raises(gw.ArgumentError, match=r"'x'.*input, output"):
        gw.measure(scan, protocol=_protocol(), restore=["x"], input=X)
    for subject, options, why in (
        (3, {}, "gw.measure takes a gw.Kernel .* not int"),
        ([], {}, "run holds nothing to measure"),
        (lambda encoder: None, {}, "lambda records on an encoder, but of which device"),
        (lambda: gw.sum(X), {"mode": "hot"}, "'hot' is not for a function that submits .* use mode 'latency'"),
        (lambda: None, {}, "used no device"),
        (lambda x: None, {}, r"lambda\(x\) can be called neither with .*, \(encoder, y\), to record, nor with \(y\)"),
        (lambda: gw.sum(X), {"restore": "y"}, "restore= is not for a function that submits"),
    ):
        with pytest.raises(gw.GridwiseError, match=why):
            gw.measure(subject, protocol=_protocol(), **options, **({"y": X} if "nor" in why else {}))
    with pytest.raises(gw.ArgumentError, match=r"input= is part of the gw\.Benchmark"):
        gw.measure(gw.Benchmark(scan, {"input": X}), input=X)
    with pytest.raises(gw.ArgumentError, match="samples is 0"):
        gw.SamplingProtocol(samples=0)
    with pytest.raises(gw.ArgumentError, match="never or always stop"):
        gw.SamplingProtocol(timeout_s=0)
    with pytest.raises(gw.ArgumentError, match="warmup_s is nan"):
        gw.SamplingProtocol(warmup_s=float("nan"))


# ---- benchmark


def test_benchmark_counts_its_calls_and_waits(device):
    copy, x = gw.Copy(device), gw.asarray(X, device)
    calls = []

    def fn():
        calls.append(1)
        return copy.execute(input=x)

    result = gw.benchmark(fn, n_warmup=2, n_iters=7)
    assert len(calls) == 9
    assert len(result.cpu_wall.samples_ns) == 7
    assert result.gpu_span is None
    walls = result.cpu_wall.samples_ns
    assert result.mean_ns == pytest.approx(np.mean(walls))
    assert result.median_ns == pytest.approx(np.median(walls))
    assert result.std_ns == pytest.approx(np.std(walls, ddof=1))
    assert result.wait_method
    once = gw.benchmark(fn, n_warmup=0, n_iters=1)
    assert once.std_ns is None
    assert re.fullmatch(r"BenchmarkResult\(CPU wall of 1 call: \S+ \S+ \(1 sample\)\)", repr(once))


def test_benchmark_takes_gpu_spans_from_what_is_returned(timed, device):
    scan, x = gw.Scan(device), gw.asarray(X, device)
    session_of = gw.timing_helper(device).session

    def recorded():
        session, encoder = session_of(), device.create_command_encoder()
        scan.record(encoder, timing=session, input=x)
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session

    def runs():
        return [scan.execute(enable_gpu_timing=True), scan.execute(enable_gpu_timing=True)]

    def result():
        return scan.execute(enable_gpu_timing=True).get_timing_result()

    for fn in (recorded, runs, result):
        found = gw.benchmark(fn, n_warmup=1, n_iters=5, device=device)
        assert len(found.gpu_span.samples_ns) == 5
        assert found.median_ns == found.gpu_span.median_ns
        for span, wall in zip(found.gpu_span.samples_ns, found.cpu_wall.samples_ns, strict=True):
            assert 0 < span <= 1.02 * wall


@pytest.fixture
def waited(monkeypatch):
    """The devices whose queues are waited for in the brackets."""
    found, run = set(), sys.modules["gridwise_py.runtime.run"]
    real = run.wait_idle
    monkeypatch.setattr(run, "wait_idle", lambda device: (found.add(device), real(device))[1])
    return found


def test_benchmark_waits_for_all_queues_that_are_used(device, fresh_device, monkeypatch, waited):
    """Whatever is returned, and whichever device is the default."""
    monkeypatch.setattr("gridwise_py.runtime.device._default", [device])
    gw.cumsum(X)
    x, y = gw.asarray(X, fresh_device), gw.asarray(X, device)
    scan, out = gw.Scan(fresh_device), gw.empty(X.size, "u32", fresh_device)

    def raw():
        """As code that knows this library only as a maker of devices."""
        encoder = fresh_device.create_command_encoder()
        encoder.clear_buffer(out.buffer)
        fresh_device.queue.submit([encoder.finish()])

    def in_a_thread():
        thread = threading.Thread(target=lambda: scan.execute(input=x, output=out))
        thread.start()
        thread.join()

    for fn, wanted in (
        (lambda: (scan.execute(input=x, output=out), None)[1], {fresh_device}),
        (lambda: (x.copy_from(X), None)[1], {fresh_device}),
        (in_a_thread, {fresh_device}),
        (raw, {fresh_device}),
        (lambda: x, {fresh_device}),
        (lambda: {"sums": [gw.cumsum(gw.ChunkedArray([x[:500], x[500:]]))]}, {fresh_device}),
        (lambda: (gw.cumsum(X), None)[1], {device}),
        (lambda: (gw.cumsum(X), gw.cumsum(x)), {device, fresh_device}),
        (lambda: [x, y], {device, fresh_device}),
    ):
        waited.clear()
        gw.benchmark(fn, n_warmup=1, n_iters=2)
        assert waited == wanted
    waited.clear()
    gw.benchmark(lambda: gw.cumsum(y), n_warmup=1, n_iters=2, device=fresh_device)
    assert waited == {device, fresh_device}


def test_benchmark_must_know_whose_queue_to_wait_for(device):
    with pytest.raises(gw.ArgumentError, match=r"used no device that this library knows.*device="):
        gw.benchmark(lambda: None)
    assert gw.benchmark(lambda: None, n_iters=2, device=device).cpu_wall.summary.count == 2
    with pytest.raises(gw.ArgumentError, match="n_iters is 0"):
        gw.benchmark(lambda: None, n_iters=0, device=device)


def test_benchmark_takes_events_for_the_span(device, require):
    """Also the same two in each call, as they are used with torch."""
    require("timestamp-query")
    start, end, x = gw.Event(device), gw.Event(device), gw.asarray(X, device)
    elapsed_ns = []

    def step():
        if start.query():
            elapsed_ns.append(start.elapsed_ns(end))
        start.record()
        gw.cumsum(x)
        end.record()
        return start, end

    found = gw.benchmark(step, n_warmup=1, n_iters=4)
    assert found.gpu_span.samples_ns == pytest.approx([*elapsed_ns[-3:], start.elapsed_ns(end)])
    with pytest.raises(gw.ArgumentError, match="one event"):
        gw.benchmark(lambda: step()[0])
    with pytest.raises(gw.ArgumentError, match="one without time"):
        gw.benchmark(lambda: (step()[0], gw.Event(device, enable_timing=False)))


def test_a_flush_that_is_smaller_than_the_cache_is_told():
    (warning,) = measure._flush_warnings(1 << 16, 1 << 20)
    assert "not of cold caches" in warning
    assert measure._flush_warnings(1 << 20, 1 << 20) == measure._flush_warnings(1 << 16, None) == []
