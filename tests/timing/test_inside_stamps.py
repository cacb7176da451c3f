"""Timestamps inside of passes, and what taking timestamps adds to a call."""

import json
import types

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.runtime import timing_overhead as overhead_module
from gridwise_py.timing.overhead import StampCost, TimingOverheads
from gridwise_py.timing.result import Span
from helpers import inside
from helpers.bare import device_with

X = np.random.default_rng(39).integers(0, 1 << 32, 20_003, dtype=np.uint32)
INSIDE = "timestamp-query-inside-passes"


@pytest.fixture
def stamping(device, require):
    """A device that takes timestamps inside of passes."""
    require(INSIDE)
    return device


@pytest.fixture
def passes_begun(monkeypatch, device):
    """Notes the passes that are begun by the public call."""
    return inside.note_calls(monkeypatch, type(device.create_command_encoder()), "begin_compute_pass")


def _scan(device):
    return gw.Scan(device, strategy="reduce_then_scan", tuning=gw.ScanTuning(workgroup_size=64, vecs=1))


def test_where_nothing_is_timed_kernels_share_a_pass(device, monkeypatch):
    """A pass costs several dispatches."""
    begun, x, scan = inside.note_native_calls(monkeypatch, device, "begin_pass"), gw.asarray(X, device), _scan(device)
    assert len(scan.bind(input=x).plan.kernels) > 1
    scan.record(device.create_command_encoder(), input=x, trials=2)
    scan.execute(input=x)
    assert len(begun) == 2


def _check_sum_rule(result, kernels):
    """Kernels and gaps are the span, and each pass has the stamps of its kernels inside."""
    assert len(result.spans) == len(result.labels) == kernels
    assert all(span.valid for span in (*result.spans, *result.passes))
    assert sum(result.gpu_total_time_ns) + sum(result.gaps_ns) == pytest.approx(result.gpu_span_ns)
    ticks = [tick for span in result.spans for tick in (span.begin_ticks, span.end_ticks)]
    assert ticks == sorted(ticks)  # each is written when all work before it has ended
    first, last = result.passes[0], result.passes[-1]
    assert first.begin_ticks <= ticks[0]
    assert ticks[-1] <= last.end_ticks
    around_ns = (last.end_ticks - first.begin_ticks) * first.tick_period_ns
    before_ns = (ticks[0] - first.begin_ticks) * first.tick_period_ns
    after_ns = (last.end_ticks - ticks[-1]) * first.tick_period_ns
    parts_ns = before_ns + sum(result.gpu_total_time_ns) + sum(result.gaps_ns) + after_ns
    assert parts_ns == pytest.approx(around_ns)


def test_kernels_and_gaps_are_the_span_within_one_pass(stamping, passes_begun):
    x = gw.asarray(X, stamping)
    for primitive, reference in ((_scan(stamping), np.cumsum(X, dtype=np.uint32)), (gw.Sort(stamping), np.sort(X))):
        passes_begun.clear()
        run = primitive.execute(input=x, enable_gpu_timing="inside", trials=2 if primitive.name == "Scan" else 1)
        result = run.get_timing_result()
        kernels = len(run.plan.kernels)
        assert kernels > 1
        assert len(passes_begun) == len(result.passes) == 1
        _check_sum_rule(result, kernels)
        assert np.array_equal(run.output.to_numpy(), reference)
        passes_begun.clear()
        by_passes = primitive.execute(input=x, enable_gpu_timing=True).get_timing_result()
        assert len(passes_begun) == kernels
        assert by_passes.labels == result.labels
        assert by_passes.passes == ()


def test_stamps_are_right_before_and_after_each_kernel(monkeypatch):
    from gridwise_py.backend.raw_commands import RawDispatch
    from gridwise_py.runtime import executor

    done = []
    compute = types.SimpleNamespace(
        set_pipeline=lambda pipeline: None, set_bind_group=lambda index, group: None, end=lambda: done.append("end"),
        dispatch_workgroups=lambda *xyz: done.append(xyz),
    )  # fmt: skip
    encoder = types.SimpleNamespace(
        begin_compute_pass=lambda **options: done.append(options["timestamp_writes"]) or compute
    )
    monkeypatch.setattr(executor, "write_timestamp", lambda to, queries, index: done.append(index))
    pairs = iter([(0, 1), (4, 5)])

    def span(label):
        begin, end = next(pairs)
        return {"query_set": None, "beginning_of_pass_write_index": begin, "end_of_pass_write_index": end}

    timing = types.SimpleNamespace(inside=True, span=span, shared_pass=lambda label: f"pass of {label}")
    steps = [(RawDispatch(label, None, None, (i, 1, 1)), 2) for i, label in enumerate("ab")]
    executor.encode_steps(encoder, steps, timing)
    assert done == ["pass of a", 0, (0, 1, 1), (0, 1, 1), 1, 4, (1, 1, 1), (1, 1, 1), 5, "end"]


def test_a_fill_between_kernels_ends_the_shared_pass(stamping):
    from gridwise_py.planning.plan import Fill, Plan
    from gridwise_py.runtime.context import context_of
    from gridwise_py.runtime.internal_kernels import NOTHING

    one = NOTHING.plan()
    steps = (*one.steps * 2, Fill("buffer", 0, 256), *one.steps)
    bound = context_of(stamping).executor.bind(Plan("two passes", one.buffers, steps, one.shaders, one.work), {})
    session = gw.timing_helper(stamping).session(inside=True)
    encoder = stamping.create_command_encoder()
    bound.encode(encoder, timing=session)
    stamping.queue.submit([encoder.finish()])
    session.submitted()
    assert (bound.pass_count, len(session.passes()), session.span_count, len(session.spans())) == (2, 2, 3, 3)
    assert session.ticks().shape == (3, 2)
    first, second = session.passes()
    assert first.end_ticks <= session.spans()[2].begin_ticks
    assert second.begin_ticks <= session.spans()[2].begin_ticks


def test_batches_sequences_and_encoders_of_the_caller(stamping, passes_begun, tmp_path):
    x, scan = gw.asarray(X, stamping), _scan(stamping)
    kernels = len(scan.execute(input=x, enable_gpu_timing=True).plan.kernels)
    with gw.batch(stamping):
        runs = [scan.execute(input=x, enable_gpu_timing="inside") for _ in range(2)]
    for run in runs:
        _check_sum_rule(run.get_timing_result(), kernels)
    with gw.capture(stamping) as sequence:
        scan.execute(input=scan.execute(input=x, output=gw.empty_like(x)).output, output=gw.empty_like(x))
    passes_begun.clear()
    result = sequence.execute(enable_gpu_timing="inside").get_timing_result()
    assert len(passes_begun) == len(result.passes) == 1  # as without timing
    _check_sum_rule(result, 2 * kernels)
    result.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "kernel" for event in events) == 2 * kernels
    assert sum(event.get("cat") == "pass" for event in events) == 1
    encoder = stamping.create_command_encoder()
    recorded = scan.execute(input=x, encoder=encoder, enable_gpu_timing="inside")
    session = gw.timing_helper(stamping).session(inside=True)
    scan.record(encoder, timing=session, input=x)
    stamping.queue.submit([encoder.finish()])
    session.submitted()
    _check_sum_rule(recorded.get_timing_result(), kernels)
    assert (len(session.spans()), len(session.passes())) == (kernels, 1)
    with gw.profile(stamping) as profile:
        profiled = scan.execute(input=x, enable_gpu_timing="inside").get_timing_result()
    _check_sum_rule(profiled, kernels)
    times = {row.name: row.gpu_time_total_ns for row in profile.key_averages() if row.name in profiled.labels}
    assert times == pytest.approx(dict(zip(profiled.labels, profiled.gpu_total_time_ns, strict=True)))


def test_own_dispatches_in_an_open_pass(stamping):
    session = gw.timing_helper(stamping).session()
    encoder = stamping.create_command_encoder()
    compute = encoder.begin_compute_pass()
    for label in ("a", "b"):
        with session.around(compute, label):
            pass
    compute.end()
    stamping.queue.submit([encoder.finish()])
    session.submitted()
    a, b = session.spans()
    assert (a.label, b.label) == ("a", "b")
    assert 0 < a.begin_ticks <= a.end_ticks <= b.begin_ticks <= b.end_ticks


def test_a_kind_that_is_none_and_a_device_that_cannot(stamping):
    x, scan = gw.asarray(X, stamping), _scan(stamping)
    before = scan.execute(input=x[:100]).output
    with pytest.raises(gw.ArgumentError, match=r"'insight'.*\"inside\""):
        scan.execute(input=x, enable_gpu_timing="insight")
    assert scan.execute().output is before  # the earlier arguments are still bound
    with gw.capture(stamping) as sequence:
        scan.execute(input=x)
    lacking = device_with(stamping, "timestamp-query")
    y, other = gw.asarray(X[:100], lacking), _scan(lacking)
    adapter = stamping.adapter.info["device"]
    for call in (
        lambda: other.execute(input=y, enable_gpu_timing="inside"),
        lambda: other.bind(input=y).execute(enable_gpu_timing="inside"),
        lambda: gw.timing_helper(lacking).session(inside=True),
    ):
        with pytest.raises(gw.TimingUnavailable, match=f"{INSIDE}.*request_device.*enable_gpu_timing=True"):
            call()
    with pytest.raises(gw.ArgumentError, match="insight"):
        sequence.execute(enable_gpu_timing="insight")
    from gridwise_py.timing.queries import without_inside

    info = types.SimpleNamespace(info={"device": adapter}, features={"timestamp-query"})
    assert adapter in without_inside(types.SimpleNamespace(adapter=info))


# ---- what it adds


def test_what_timing_adds_is_computed_from_passes_and_kernels():
    overheads = TimingOverheads({"passes": StampCost(1000.0, 50.0, 7.0), "inside": StampCost(300.0, None, 7.0)}, 5)
    by_passes = overheads.of(inside=False, kernels=5, passes=2)
    assert (by_passes.gpu_ns, by_passes.cpu_ns) == (3000.0, 78.0)  # three passes more than without timing
    inside = overheads.of(inside=True, kernels=5, passes=2)
    assert (inside.gpu_ns, inside.cpu_ns) == (1500.0, None)
    assert overheads.of(inside=True, kernels=0, passes=0).gpu_ns is None
    assert TimingOverheads({}, 5).of(inside=True, kernels=5, passes=2) is None


def test_differences_of_invented_times():
    many = overhead_module._MANY
    walls = {("", 1): [100, 300, 200], ("", many): [1000, 3000, 2000]}
    # In each round 40 ns more for one kernel, and 10 more for each further one.
    walls |= {(kind, 1): [w + 40 for w in walls["", 1]] for kind in ("passes", "inside")}
    walls |= {(kind, many): [w + 40 + 10 * (many - 1) for w in walls["", many]] for kind in ("passes", "inside")}
    spans = {"": [500.0, 500.0, 9e9], "passes": [500.0 + 6 * (many - 1)] * 3, "inside": [None, 500.0 + 2 * many, None]}
    found = overhead_module._judged(walls, spans, ("passes", "inside"))
    assert found == TimingOverheads({"passes": StampCost(6.0, 40.0, 10.0), "inside": StampCost(2.0, 40.0, 10.0)}, 3)
    spans["inside"] = [None, None, None]
    assert overhead_module._judged(walls, spans, ("passes", "inside")).costs["inside"].gpu_unit_ns is None


def test_results_have_it_once_it_was_measured(fresh_device, require, monkeypatch):
    require(INSIDE)
    monkeypatch.setattr(overhead_module, "_SAMPLES", 3)
    monkeypatch.setattr(overhead_module, "_BUSY_S", 0.0)
    copy, x = gw.Copy(fresh_device), gw.asarray(X, fresh_device)
    assert copy.execute(input=x, enable_gpu_timing="inside").get_timing_result().overhead is None
    found = gw.timing_overhead(fresh_device)
    assert gw.timing_overhead(fresh_device) is found
    assert found.samples == 3
    for how in (True, "inside"):
        result = copy.execute(input=x, enable_gpu_timing=how).get_timing_result()
        cost = found.costs["inside" if how == "inside" else "passes"]
        assert result.overhead == cost.of(1, 1 if how == "inside" else 0)
        assert result.overhead.gpu_ns == (cost.gpu_unit_ns if how == "inside" else 0)
    assert copy.execute(input=x, enable_cpu_timing=True).get_timing_result().overhead is None


def test_stamps_of_a_reset_counter_are_no_time():
    whole = overhead_module._span_ns(types.SimpleNamespace(passes=list, spans=lambda: [Span("a", 9, 5, 1.0)]))
    assert whole is None
