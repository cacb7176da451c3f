"""The contract of the stopwatch, one promise per test."""

import gc
import math
import weakref
from concurrent import futures

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gridwise_py as gw
from helpers import inside

X = np.random.default_rng(4).integers(0, 1000, 200_003, dtype=np.uint32)
PREFIX = np.cumsum(X, dtype=np.uint32)


@pytest.fixture
def timed_device(renewed_device, require):
    """A device with timestamps, none of whose queries are in use."""
    require("timestamp-query")
    return renewed_device


@pytest.fixture
def helper(timed_device):
    return gw.timing_helper(timed_device)


@pytest.fixture
def few_queries(monkeypatch):
    """Sets of 16 pairs of queries, and one set unless the test says otherwise."""
    inside.limit_queries(monkeypatch, sets=1, pairs=16)


@pytest.fixture
def x(timed_device):
    return gw.asarray(X, timed_device)


def _scan(device):
    return gw.Scan(device, strategy="reduce_then_scan")


def _passes(helper, session, count, encoder=None):
    """Record empty passes with times of `session`; return the encoder."""
    encoder = encoder or helper.device.create_command_encoder()
    for i in range(count):
        encoder.begin_compute_pass(timestamp_writes=session.span(f"pass {i}")).end()
    return encoder


def _submit(device, encoder):
    device.queue.submit([encoder.finish()])


def _stamps(*runs):
    """All ticks of some runs, in the order of their passes."""
    spans = [span for run in runs for span in run.get_timing_result().spans]
    return [tick for span in spans for tick in (span.begin_ticks, span.end_ticks)]


# ---- what a result holds


def test_the_contract(timed_device, x):
    scan = _scan(timed_device)
    out = gw.empty_like(x)
    run = scan.execute(input=x, output=out, enable_gpu_timing=True, enable_cpu_timing=True, trials=10)
    t = scan.get_timing_result()
    assert run.get_timing_result() is t
    assert isinstance(t.gpu_total_time_ns, list)
    assert t.labels == tuple(kernel.label for kernel in run.plan.kernels)
    assert t.labels == ("reduce blocks", "scan totals", "scan blocks")
    assert len(t.gpu_total_time_ns) == 3
    assert all(isinstance(ns, float) and ns > 0 for ns in t.gpu_total_time_ns)
    assert isinstance(t.cpu_total_time_ns, float)
    assert t.trials == 10
    assert t.per_trial.gpu_total_time_ns == [ns / 10 for ns in t.gpu_total_time_ns]
    assert t.per_trial.cpu_total_time_ns == t.cpu_total_time_ns / 10
    assert t.per_trial.gpu_span_ns == t.gpu_span_ns / 10
    assert len(t.gaps_ns) == 2
    assert t.gpu_span_ns == pytest.approx(sum(t.gpu_total_time_ns) + sum(t.gaps_ns))
    assert 0 < t.submit_time_ns <= t.cpu_total_time_ns
    assert t.encode_time_ns > 0
    assert t.wait_method in ("on_submitted_work_done", "device_poll", "read_buffer")
    assert t.tick_period_ns == gw.timing_helper(timed_device).tick_period_ns
    np.testing.assert_array_equal(out.to_numpy(), PREFIX)


def test_trials_of_numpy_are_an_int_in_the_result(timed_device, x):
    """100 of int8 times 2 is -56 in numpy, with a warning only."""
    copy = gw.Copy(timed_device)
    t = copy.execute(input=x, output=gw.empty_like(x), enable_cpu_timing=True, trials=np.int8(100)).get_timing_result()
    assert type(t.trials) is int
    assert 2 * t.trials == 200


def test_totals_are_not_divided_by_trials(timed_device):
    """40 trials run between two stamps, and the total is what lies between these."""
    text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;"
    text += "@compute @workgroup_size(1) fn main() { x[0]++; }"
    x = gw.zeros(1, "u32", timed_device)
    count = gw.Kernel(timed_device, text, {"x": "write"}, 1)  # that trials go on where the last one ended is wanted
    t = count.execute(x=x, trials=40, enable_gpu_timing=True).get_timing_result()
    (span,) = t.spans
    assert t.gpu_total_time_ns == [(span.end_ticks - span.begin_ticks) * span.tick_period_ns]
    assert x.item() == 40


def test_what_was_not_measured_is_none(timed_device, x):
    scan = _scan(timed_device)
    for gpu, cpu in ((True, False), (False, True), (True, True)):
        t = scan.execute(input=x, enable_gpu_timing=gpu, enable_cpu_timing=cpu).get_timing_result()
        for value in (t.gpu_total_time_ns, t.gpu_span_ns, t.gaps_ns, t.tick_period_ns, t.per_trial.gpu_span_ns):
            assert (value is not None) == gpu
        for value in (t.cpu_total_time_ns, t.submit_time_ns, t.encode_time_ns, t.wait_method):
            assert (value is not None) == cpu
        assert (t.per_trial.cpu_total_time_ns is not None) == cpu


def test_a_run_that_was_not_timed_says_how_to(timed_device, x):
    scan = _scan(timed_device)
    with pytest.raises(gw.TimingUnavailable, match="enable_gpu_timing=True"):
        scan.get_timing_result()
    run = scan.execute(input=x)
    for ask in (scan.get_timing_result, run.get_timing_result):
        with pytest.raises(gw.TimingUnavailable, match="enable_gpu_timing=True"):
            ask()


def test_an_untimed_run_leaves_the_last_timed_one(timed_device, x):
    scan = _scan(timed_device)
    timed = scan.execute(input=x, enable_gpu_timing=True)
    scan.execute(input=x)
    assert scan.get_timing_result() is timed.get_timing_result()
    again = scan.execute(input=x, enable_gpu_timing=True, trials=2)
    assert scan.get_timing_result().trials == 2
    assert again.get_timing_result() is scan.get_timing_result()


def test_no_items_take_no_kernel(timed_device):
    empty = gw.empty(0, "u32", timed_device)
    t = _scan(timed_device).execute(input=empty, enable_gpu_timing=True, enable_cpu_timing=True).get_timing_result()
    assert not t.gpu_total_time_ns
    assert t.gpu_span_ns is None
    assert t.cpu_total_time_ns > 0


def test_gpu_time_lies_within_the_cpus(timed_device):
    """A check of the unit: the CPU's clock is read before the submission and after the wait, whoever stops it there."""
    x = gw.asarray(np.ones(1 << 20, dtype=np.uint32), timed_device)
    run = _scan(timed_device).execute(input=x, trials=20, enable_gpu_timing=True, enable_cpu_timing=True)
    t = run.get_timing_result()
    assert 0 < t.gpu_span_ns <= 1.02 * t.cpu_total_time_ns
    assert sum(t.gpu_total_time_ns) <= t.gpu_span_ns * 1.0001


def test_the_cpus_time_includes_the_wait(timed_device, monkeypatch):
    """An idle queue before, an idle queue after: work that was submitted earlier does not count."""
    works = inside.note_calls(monkeypatch, timed_device.queue, "submit")
    clock = inside.let_only_waits_take_time(monkeypatch, works, each_ns=1_000_000)
    scan, x = _scan(timed_device), gw.asarray(X, timed_device)
    gw.synchronize(timed_device)
    works.clear()
    for _ in range(3):
        scan.execute(input=x, output=gw.empty_like(x))
    t = scan.execute(enable_cpu_timing=True).get_timing_result()
    assert (t.cpu_total_time_ns, t.submit_time_ns, t.encode_time_ns) == (1e6, 0.0, 0.0)
    assert clock() > 1_000_000, "it had waited for the work before"
    assert not works


# ---- several at once


def test_results_are_read_in_any_order(timed_device, helper, x):
    scan = _scan(timed_device)
    sizes = [200_003, 10, 100_000, 1000]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        runs = [scan.execute(input=x[:n], enable_gpu_timing=True, trials=i + 1) for i, n in enumerate(sizes)]
        results = {i: runs[i].get_timing_result() for i in order}
        spans = [results[i].spans for i in range(4)]
        begins = [each[0].begin_ticks for each in spans]
        assert begins == sorted(begins), "each result is that of its run"
        assert [results[i].trials for i in range(4)] == [1, 2, 3, 4]
        assert [len(each) for each in spans] == [len(run.plan.kernels) for run in runs]
        assert helper.pairs_in_use == 0
        assert [run.get_timing_result().spans for run in runs] == spans, "what was read stays"


def test_threads_that_read_at_once_get_the_same(timed_device, monkeypatch):
    """The counts of a run and its doubts are read once, so nobody may find them gone."""
    x = gw.u32("x")
    items = gw.asarray(np.arange(1000, dtype=np.uint32), timed_device)
    run = gw.Select(timed_device, x, where=x < 10).execute(x=items, enable_gpu_timing=True)
    spans, others = gw.TimingSession.spans, []

    def while_another_reads(session):
        if not others:
            others.append(pool.submit(run.get_timing_result))
            futures.wait(others, timeout=0.2)
        return spans(session)

    monkeypatch.setattr(gw.TimingSession, "spans", while_another_reads)
    with futures.ThreadPoolExecutor() as pool:
        first = run.get_timing_result()
    assert first is others[0].result()
    assert first.work.moved_bytes == items.nbytes + 4 * 10 + 4


def test_results_can_be_read_never(timed_device, helper, x):
    scan = _scan(timed_device)
    for _ in range(5):
        scan.execute(input=x[:100], enable_gpu_timing=True)
    del scan
    gc.collect()
    assert helper.pairs_in_use == 0


@pytest.mark.parametrize(("pairs_per_set", "count"), [(16, 80), pytest.param(2048, 9000, marks=pytest.mark.slow)])
def test_more_unread_runs_than_there_are_queries(timed_device, helper, few_queries, monkeypatch, pairs_per_set, count):
    """Then host memory holds them, in order."""
    inside.limit_queries(monkeypatch, sets=1, pairs=pairs_per_set)
    scan, small = _scan(timed_device), gw.asarray(X[:64], timed_device)
    scan.execute(input=small, output=gw.empty_like(small))
    runs = [scan.execute(enable_gpu_timing=True) for _ in range(count)]
    spans = [run.get_timing_result().spans[0] for run in runs]
    assert all(span.valid for span in spans)
    begins = [span.begin_ticks for span in spans]
    assert begins == sorted(begins)
    assert len(set(begins)) > count // 2
    assert helper.pairs_in_use == 0
    assert len(helper._sets) == 1


def test_a_session_larger_than_a_set(timed_device, helper, few_queries, monkeypatch):
    inside.limit_queries(monkeypatch, sets=3, pairs=16)
    session = helper.session()
    _submit(timed_device, _passes(helper, session, 40))
    session.submitted()
    spans = session.spans()
    assert [span.label for span in spans] == [f"pass {i}" for i in range(40)]
    begins = [span.begin_ticks for span in spans]
    assert begins == sorted(begins)
    assert all(span.valid for span in spans)
    assert len(helper._sets) == 3


# ---- what was not submitted


def test_times_before_the_submission_are_not_ready_and_disturb_no_others(timed_device, helper, x):
    encoder = timed_device.create_command_encoder()
    scan, another = _scan(timed_device), _scan(timed_device)
    waiting = scan.execute(input=x, encoder=encoder, enable_gpu_timing=True)
    other = another.execute(input=x, enable_gpu_timing=True)
    for ask in (waiting.get_timing_result, waiting.get_timing_result, scan.get_timing_result):
        with pytest.raises(gw.TimingNotReady, match="submit"):
            ask()
    assert other.get_timing_result().gpu_span_ns > 0
    commands = encoder.finish()
    with pytest.raises(gw.TimingNotReady):
        waiting.get_timing_result()
    timed_device.queue.submit([commands])
    assert all(ns > 0 for ns in waiting.get_timing_result().gpu_total_time_ns)
    assert waiting.get_timing_result().spans[0].begin_ticks > other.get_timing_result().spans[-1].end_ticks
    assert helper.pairs_in_use == 0


def test_a_dropped_encoder_does_not_disturb_others(timed_device, helper, x):
    """Its queries were never written: reading them would give zeros, or times of something else."""
    scan = _scan(timed_device)
    done = scan.execute(input=x, enable_gpu_timing=True)
    encoder = timed_device.create_command_encoder()
    dropped = scan.execute(input=x, encoder=encoder, enable_gpu_timing=True)
    del encoder
    later = [scan.execute(input=x, enable_gpu_timing=True) for _ in range(5)]
    del dropped
    gc.collect()
    later += [scan.execute(input=x, enable_gpu_timing=True) for _ in range(5)]
    stamps = _stamps(done, *later)
    assert 0 not in stamps
    assert stamps == sorted(stamps)


def test_a_result_that_is_dropped_before_its_encoder_is_submitted(timed_device, helper, x):
    """The passes write their queries when the encoder is submitted: nobody else may have them then."""
    scan = _scan(timed_device)
    encoders = []
    for _ in range(4):
        encoders.append(timed_device.create_command_encoder())
        scan.execute(input=x, encoder=encoders[-1], enable_gpu_timing=True)
        scan._last_timed = None
    gc.collect()
    assert helper.pairs_in_use == 4 * 3, "all may still be written"
    runs = [scan.execute(input=x, enable_gpu_timing=True) for _ in range(3)]
    for encoder in encoders:
        _submit(timed_device, encoder)
    stamps = _stamps(*runs)
    assert stamps == sorted(stamps), "a later submission did not write into these"
    helper.collect()
    assert helper.pairs_in_use == 0


@pytest.mark.parametrize("end", ["submitted after a reclaim", "dropped encoder", "unmarked"])
def test_queries_of_dropped_sessions_come_back(timed_device, helper, end):
    for _ in range(3):
        session = helper.session()
        encoder = _passes(helper, session, 10)
        assert helper.pairs_in_use == 10
        if end != "unmarked":
            session.mark(encoder)
        if end == "submitted after a reclaim":
            helper.collect()
            _submit(timed_device, encoder)
        del session, encoder
        gc.collect()
        if end != "unmarked":
            helper.collect()
        assert helper.pairs_in_use == 0


def test_a_failed_run_in_between(timed_device, helper, x, monkeypatch):
    scan = _scan(timed_device)
    out = gw.empty_like(x)
    before = scan.execute(input=x, output=out, enable_gpu_timing=True)
    in_use = helper.pairs_in_use
    for wrong in (
        {"trials": 0},
        {"input": x[:5], "output": x[1:3]},
        {"input": gw.empty(3, "f32", timed_device)},
        {"nothing": x},
    ):
        with pytest.raises(gw.ArgumentError):
            scan.execute(enable_gpu_timing=True, enable_cpu_timing=True, **wrong)
    assert helper.pairs_in_use == in_use

    def no_submit(_commands):
        raise RuntimeError("the queue is on fire")

    with monkeypatch.context() as patch:
        patch.setattr(timed_device.queue, "submit", no_submit, raising=False)
        for cpu in (False, True):
            with pytest.raises(RuntimeError, match="on fire"):
                scan.execute(input=x, output=out, enable_gpu_timing=True, enable_cpu_timing=cpu)
    assert gc.isenabled()
    assert helper.pairs_in_use == in_use
    after = scan.execute(input=x, output=out, enable_gpu_timing=True)
    assert after.get_timing_result().spans[0].begin_ticks > before.get_timing_result().spans[-1].end_ticks
    assert scan.get_timing_result() is after.get_timing_result()
    np.testing.assert_array_equal(out.to_numpy(), PREFIX)


@pytest.mark.parametrize("how", [True, "inside"])
def test_a_run_that_fails_while_it_is_recorded_on_a_callers_encoder(timed_device, helper, x, monkeypatch, how, require):
    """Its first passes are on the encoder and will write their queries: nobody else may get these."""
    if how == "inside":
        require("timestamp-query-inside-passes")
    scan = _scan(timed_device)
    out = gw.empty_like(x)
    scan.execute(input=x, output=out)
    encoder = timed_device.create_command_encoder()
    original = gw.TimingSession.span

    def third_fails(self, label):
        if label == "scan blocks":
            raise gw.TimingUnavailable("no query is free")
        return original(self, label)

    with monkeypatch.context() as patch:
        patch.setattr(gw.TimingSession, "span", third_fails)
        with pytest.raises(gw.TimingUnavailable):
            scan.execute(encoder=encoder, enable_gpu_timing=how)
    runs = [scan.execute(enable_gpu_timing=how) for _ in range(2)]
    expected = [run.plan.kernels[0].label for run in runs]
    _submit(timed_device, encoder)
    stamps = _stamps(*runs)
    assert stamps == sorted(stamps)
    assert expected == ["reduce blocks"] * 2


def test_a_helper_for_ones_own_passes(timed_device, helper):
    assert isinstance(helper, gw.TimingHelper)
    session = helper.session()
    encoder = _passes(helper, session, 3)
    with pytest.raises(gw.TimingNotReady):
        session.ticks()
    _submit(timed_device, encoder)
    session.submitted()
    spans = session.spans()
    assert [span.label for span in spans] == ["pass 0", "pass 1", "pass 2"]
    assert session.ticks().dtype == np.uint64
    assert session.ticks().shape == (3, 2)
    marked = helper.session()
    marked.mark(_passes(helper, marked, 1))
    for closed in (session, marked):
        with pytest.raises(gw.TimingUnavailable, match="closed"):
            closed.span("late")
    empty = helper.session()
    empty.submitted()
    assert empty.spans() == []


def test_queries_are_resolved_in_a_submission_of_their_own(timed_device, helper, x, monkeypatch):
    """On some drivers timestamps that are resolved in the same submission are wrong."""
    scan, encoder = _scan(timed_device), type(timed_device.create_command_encoder())
    resolved = inside.note_calls(monkeypatch, encoder, "resolve_query_set")
    submitted = inside.note_calls(monkeypatch, timed_device.queue, "submit")
    run = scan.execute(input=x, enable_gpu_timing=True)
    assert (len(submitted), len(resolved)) == (1, 0)
    run.get_timing_result()
    assert (len(submitted), len(resolved)) == (2, 1)


# ---- ticks and nanoseconds


def test_ticks_are_scaled_by_the_period(timed_device, helper, x, monkeypatch):
    """On some GPUs a tick is not a nanosecond; here and on many others it is, so the period is made up."""
    period = 52.0833
    monkeypatch.setattr(helper, "tick_period_ns", period)
    scan = _scan(timed_device)
    t = scan.execute(input=x, enable_gpu_timing=True, trials=3).get_timing_result()
    assert t.tick_period_ns == period
    assert t.gpu_total_time_ns == [(s.end_ticks - s.begin_ticks) * period for s in t.spans]
    assert t.gpu_span_ns == (t.spans[-1].end_ticks - t.spans[0].begin_ticks) * period
    assert t.gaps_ns == [(b.begin_ticks - a.end_ticks) * period for a, b in zip(t.spans, t.spans[1:], strict=False)]
    assert t.per_trial.gpu_total_time_ns[0] == t.gpu_total_time_ns[0] / 3


@example(begin=2**62 + 1, length=1001, period=1.0)
@given(begin=st.integers(1, 2**63), length=st.integers(0, 2**40), period=st.sampled_from([1.0, 52.0833, 83.333]))
def test_large_counts_are_subtracted_exactly(begin, length, period):
    """A float64 holds no difference of two large counts: integers first, then the scale."""
    span = gw.Span("k", begin, begin + length, period)
    assert span.valid
    assert span.ns == length * period


def test_validity():
    """A stamp that is missing or goes backwards is no time; equal stamps are below the resolution, and count as 0."""
    for begin, end, ns in ((0, 0, None), (0, 5, None), (5, 0, None), (6, 5, None), (5, 5, 0.0), (5, 6, 2.0)):
        span = gw.Span("k", begin, end, 2.0)
        assert (span.valid, span.ns) == (ns is not None, ns)


def test_an_invalid_span_is_none_and_is_told():
    spans = (gw.Span("a", 10, 20, 1.0), gw.Span("b", 40, 30, 1.0), gw.Span("c", 50, 60, 1.0))
    t = gw.TimingResult(("a", "b", "c"), 2, spans)
    assert t.gpu_total_time_ns == [10.0, None, 10.0]
    assert t.per_trial.gpu_total_time_ns == [5.0, None, 5.0]
    assert t.gpu_span_ns is None
    assert t.gaps_ns is None
    assert "b not measured" in repr(t)


def test_the_first_dispatch_of_a_pipeline_is_told(fresh_device):
    """Drivers may prepare it then: 47 ms, and 0.4 in the next call."""

    def is_told(run):
        return any("first dispatch of a pipeline" in warning for warning in run.get_timing_result().warnings)

    copy, reduce, items = gw.Copy(fresh_device), gw.Reduce(fresh_device), np.ones(5000, np.uint32)
    arrays = [gw.asarray(items[:n], fresh_device) for n in (4000, 4000, 5000)]  # other arrays, and the same kernel
    assert [is_told(copy.execute(input=x, enable_cpu_timing=True)) for x in arrays] == [True, False, False]
    with gw.capture(fresh_device) as sequence:
        reduce.execute(input=arrays[0])
    assert [is_told(sequence.execute(enable_cpu_timing=True)) for _ in range(2)] == [True, False]


def test_a_calls_own_submission_is_not_the_work_of_others(timed_device, x, monkeypatch):
    """Also by the queue's method, which counts the callers' own submissions once there was one."""
    inside.use_public_calls(monkeypatch, timed_device)
    copy, encoder = gw.Copy(timed_device), timed_device.create_command_encoder()
    copy.record(encoder, input=x)
    _submit(timed_device, encoder)
    for n, gpu in ((0, False), (5, False), (5, True)):
        result = copy.execute(input=x[:n], enable_cpu_timing=True, enable_gpu_timing=gpu).get_timing_result()
        warnings = result.warnings
        assert not any("work of others" in warning for warning in warnings)
    submissions = iter([lambda: _submit(timed_device, timed_device.create_command_encoder())])
    inside.during_timed_calls(monkeypatch, lambda submit: (submit(), next(submissions)()))
    (warning,) = copy.execute(input=x[:5], enable_cpu_timing=True).get_timing_result().warnings
    assert "work of others: 1 submission" in warning


def test_a_run_warns_of_invalid_stamps(timed_device, x, monkeypatch):
    scan = _scan(timed_device)
    scan.execute(input=x)
    run = scan.execute(input=x, enable_gpu_timing=True)
    monkeypatch.setattr(gw.TimingSession, "ticks", lambda self: np.array([[5, 9], [0, 0], [9, 7]], dtype=np.uint64))
    t = run.get_timing_result()
    assert t.gpu_total_time_ns == [4.0 * t.tick_period_ns, None, None]
    assert len(t.warnings) == 2
    assert "'scan totals'" in t.warnings[0]
    assert "end 7" in t.warnings[1]


def test_nothing_is_ever_nan_or_a_made_up_zero():
    t = gw.TimingResult(("a",), 3)
    for value in (t.gpu_total_time_ns, t.gpu_span_ns, t.gaps_ns, t.cpu_total_time_ns, t.submit_time_ns):
        assert value is None
    assert t.per_trial.gpu_total_time_ns is None
    assert "nan" not in repr(t)


# ---- how it looks


def test_repr_is_one_line():
    spans = (gw.Span("reduce", 1, 1_500_001, 1.0), gw.Span("scan", 1_600_000, 1_600_900, 1.0))
    t = gw.TimingResult(("reduce", "scan"), 2, spans, cpu_total_time_ns=4e6)
    text = repr(t)
    assert "\n" not in text
    for part in ("per trial of 2", "reduce 750 µs", "scan 450 ns", "GPU span 800 µs", "CPU wall 2.00 ms"):
        assert part in text
    assert "no kernels" in repr(gw.TimingResult((), 1))


def test_html_escapes_labels():
    spans = (gw.Span("<script>alert('x')</script> & co", 1, 2, 1.0),)
    html = gw.TimingResult((spans[0].label,), 1, spans)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&amp; co" in html
    assert "GPU span" in html
    assert "not measured" in html
    assert "<table" in html
    assert "per trial, 1 trial<" in html
    assert "per trial, 2 trials<" in gw.TimingResult((spans[0].label,), 2, spans)._repr_html_()


# ---- lifetimes


def test_a_timed_run_that_is_dropped_keeps_no_output(timed_device, x):
    """`release` is for memory: the primitive's last timed run, and what was read of it, hold no array."""
    scan = _scan(timed_device)
    run = scan.execute(input=x, enable_gpu_timing=True)
    gone = weakref.ref(run.output.buffer)
    del run
    scan.release()
    gc.collect()
    assert gone() is None
    assert scan.get_timing_result().gpu_span_ns > 0


def test_the_garbage_collector_is_on_again(timed_device, x):
    scan = _scan(timed_device)
    scan.execute(input=x, enable_cpu_timing=True)
    assert gc.isenabled()
    gc.disable()
    try:
        scan.execute(input=x, enable_cpu_timing=True)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_tick_step_is_a_multiple_of_the_period(timed_device):
    capabilities = gw.capabilities(timed_device)
    if capabilities.tick_step_ns is not None:
        steps = capabilities.tick_step_ns / capabilities.tick_period_ns
        assert math.isclose(steps, round(steps))
