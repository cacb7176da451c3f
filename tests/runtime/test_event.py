"""Event: the semantics of torch.cuda.Event, on any wgpu work, with a pool of queries that never runs dry."""

import gc
import itertools
import warnings

import numpy as np
import pytest
import wgpu

import gridwise_py as gw
from helpers import inside
from helpers.bare import device_with
from helpers.renewed import renewed

X = np.arange(1_000_003, dtype=np.uint32)


@pytest.fixture(scope="module", params=["stamps", "passes"])
def made(request, device, require):
    """A device that stamps between passes, and one that must take passes of its own."""
    require("timestamp-query", "timestamp-query-inside-encoders")
    more = ["timestamp-query-inside-encoders"] if request.param == "stamps" else []
    made = device_with(device, "timestamp-query", *more)
    assert gw.timing_helper(made).stamps_encoders == (request.param == "stamps")
    return made


@pytest.fixture
def timed(made):
    """The device, with no query in use."""
    with renewed(made):
        yield made


def _work(device, trials=1):
    x = gw.asarray(X, device)
    return gw.Copy(device).execute(input=x, trials=trials)


# ---- times


def test_the_time_between_two_events(timed):
    _work(timed)
    start, end = gw.Event(timed), gw.Event(timed)
    start.record()
    run = gw.Copy(timed).execute(input=gw.asarray(X, timed), enable_gpu_timing=True)
    end.record()
    end.synchronize()
    elapsed_ns = start.elapsed_ns(end)
    assert start.elapsed_time(end) == elapsed_ns * 1e-6
    # The copy's own stamps lie between the two events.
    first, last = start._span(""), end._span("")
    spans = run.get_timing_result().spans
    assert first.end_ticks <= spans[0].begin_ticks <= spans[-1].end_ticks <= last.begin_ticks
    assert elapsed_ns >= run.get_timing_result().gpu_span_ns
    assert elapsed_ns == (last.begin_ticks - first.end_ticks) * last.tick_period_ns


def test_backwards_is_negative_and_itself_is_zero(timed):
    first, second = gw.Event(timed), gw.Event(timed)
    first.record()
    _work(timed)
    second.record()
    second.synchronize()
    assert second.elapsed_ns(first) == -first.elapsed_ns(second) < 0
    assert first.elapsed_ns(first) == 0.0


def test_on_an_encoder_of_ones_own_between_ones_own_passes(timed):
    encoder = timed.create_command_encoder()
    events = [gw.Event(timed) for _ in range(4)]
    for event in events[:-1]:
        event.record(encoder)
        encoder.begin_compute_pass().end()
        gw.Copy(timed).record(encoder, input=gw.asarray(X, timed))
    events[-1].record(encoder)
    timed.queue.submit([encoder.finish()])
    events[-1].synchronize()
    assert all(a.elapsed_ns(b) > 0 for a, b in itertools.pairwise(events))


def test_recorded_again_it_forgets_the_time_before(timed):
    start, end, later = (gw.Event(timed) for _ in range(3))
    start.record()
    end.record()
    end.synchronize()
    before = end._span("")
    _work(timed)
    end.record()
    later.record()
    later.synchronize()
    assert end._span("").begin_ticks > before.begin_ticks
    assert end.elapsed_ns(later) > 0
    gc.collect()
    assert gw.timing_helper(timed).pairs_in_use == 0


def test_the_period_scales_the_time(timed, monkeypatch):
    start, end = gw.Event(timed), gw.Event(timed)
    start.record()
    end.record()
    end.synchronize()
    ns = start.elapsed_ns(end)
    monkeypatch.setattr(gw.timing_helper(timed), "tick_period_ns", 52.0 * gw.timing_helper(timed).tick_period_ns)
    assert start.elapsed_ns(end) == pytest.approx(52 * ns)


# ---- what is asked too early


def test_never_recorded(timed):
    event, other = gw.Event(timed), gw.Event(timed)
    assert event.query() is False
    for ask in (event.synchronize, event.wait, lambda: event.elapsed_time(other)):
        with pytest.raises(gw.TimingNotReady, match=r"never recorded; call event\.record\(\) first"):
            ask()


def test_not_submitted(timed):
    encoder = timed.create_command_encoder()
    start, end = gw.Event(timed), gw.Event(timed)
    start.record()
    end.record(encoder)
    assert end.query() is False
    for ask in (end.synchronize, end.wait, lambda: start.elapsed_time(end)):
        with pytest.raises(gw.TimingNotReady, match=r"not submitted; call device\.queue\.submit"):
            ask()
    timed.queue.submit([encoder.finish()])
    end.wait()
    end.synchronize()
    assert end.query() is True
    assert start.elapsed_ns(end) > 0


def test_not_done_yet(timed, monkeypatch):
    """Without a wait the answer would be whatever the queries held before."""
    start, end = gw.Event(timed), gw.Event(timed)
    start.record()
    end.record()
    inside.let_queue_be_busy(monkeypatch)
    assert end.query() is False
    with pytest.raises(gw.TimingNotReady, match=r"call event\.synchronize\(\) first"):
        start.elapsed_time(end)
    end.synchronize()
    start.synchronize()
    assert start.elapsed_time(end) > 0


@pytest.mark.slow
def test_query_turns_true_without_a_wait(timed):
    _work(timed)
    gw.synchronize(timed)
    event = gw.Event(timed)
    x = gw.asarray(X, timed)
    encoder = timed.create_command_encoder()
    gw.Copy(timed).record(encoder, input=x, trials=200)
    event.record(encoder)
    # In one submission: lavapipe's submit waits for the end of the submission before.
    timed.queue.submit([encoder.finish()])
    seen = [event.query()]
    while not seen[-1]:
        seen.append(event.query())
    assert seen[0] is False, "a queue with 200 copies ahead of the event cannot be empty"


def test_query_waits_where_wgpu_cannot_tell(timed, monkeypatch):
    waits = []
    inside.let_queue_be_busy(monkeypatch, None)
    inside.before_waits(monkeypatch, waits.append)
    event = gw.Event(timed)
    event.record()
    assert event.query() is True
    assert len(waits) == 1


def test_stamps_that_are_no_time_are_no_number(timed, monkeypatch):
    start, end = gw.Event(timed), gw.Event(timed)
    start.record()
    end.record()
    end.synchronize()
    monkeypatch.setattr(gw.TimingSession, "ticks", lambda self: np.array([[0, 0]], dtype=np.uint64))
    with pytest.raises(gw.TimingUnavailable, match="0 and 0 ticks"):
        start.elapsed_time(end)


def test_nothing_waits_unasked(device, monkeypatch):
    """Calls and events do not wait; a profile counts the waits that were asked for."""
    x, scan = gw.asarray(X, device), gw.Scan(device)
    with monkeypatch.context() as patch:
        inside.before_waits(patch, lambda _device: pytest.fail("a call waited"))
        for _ in range(5):
            scan.execute(input=x)
            gw.Event(device, enable_timing=False).record()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gw.GridwiseWarning)  # where the device has no timestamps
        prof = gw.profile(device)
        with prof:
            for _ in range(5):
                scan.execute(input=x)
                gw.synchronize(device)
    assert {row.name: row.calls for row in prof.key_averages()}["wait"] == 5


# ---- the constructor and wait, as in torch


def test_without_timing(device):
    """Also on a device without timestamps."""
    bare = device_with(device)
    event = gw.Event(bare, enable_timing=False, blocking=True)
    encoder = bare.create_command_encoder()
    event.record(encoder)
    with pytest.raises(gw.TimingNotReady, match="not submitted"):
        event.synchronize()
    bare.queue.submit([encoder.finish()])
    event.synchronize()
    assert event.query()
    with pytest.raises(gw.TimingUnavailable, match="enable_timing=True"):
        event.elapsed_time(event)
    with pytest.raises(gw.TimingUnavailable, match="timestamp-query"):
        gw.Event(bare)


@pytest.mark.parametrize(("option", "reason"), [("interprocess", "another process"), ("external", "CUDA graphs")])
def test_what_webgpu_cannot_do_is_refused(device, option, reason):
    with pytest.raises(gw.ArgumentError, match=reason):
        gw.Event(device, **{option: True})


def test_two_devices(timed, device):
    ours, theirs = gw.Event(timed), gw.Event(device)
    ours.record()
    theirs.record()
    with pytest.raises(gw.ArgumentError, match="clocks"):
        ours.elapsed_time(theirs)
    ours.wait(timed)
    ours.wait(timed.queue)
    with pytest.raises(gw.ArgumentError, match="one queue and no streams"):
        ours.wait(device.queue)
    with pytest.raises(gw.BufferUsageError, match="another device"):
        ours.record(device.create_command_encoder())
    assert ours.query() or not ours.query()  # still as it was: recorded once
    ours.synchronize()


# ---- queries


def test_work_that_is_never_submitted_may_not_hold_all_queries(timed, monkeypatch):
    inside.limit_queries(monkeypatch, sets=2, pairs=8)
    encoder = timed.create_command_encoder()
    events = [gw.Event(timed) for _ in range(17)]
    for event in events[:16]:
        event.record(encoder)
    with pytest.raises(gw.TimingUnavailable, match=r"all 16 pairs of timestamp queries .* submit these encoders"):
        events[16].record(encoder)
    timed.queue.submit([encoder.finish()])
    events[16].record()
    events[16].synchronize()
    assert events[0].elapsed_ns(events[16]) >= 0, "they are taken back once it is submitted"


def test_reading_many_events_costs_one_submission(timed, monkeypatch):
    events = [gw.Event(timed) for _ in range(50)]
    for event in events:
        event.record()
    events[-1].synchronize()
    count = inside.note_calls(monkeypatch, timed.queue, "submit")
    for a, b in itertools.pairwise(events):
        a.elapsed_ns(b)
    assert len(count) == 1


def test_dropped_events_give_their_queries_back(timed):
    helper = gw.timing_helper(timed)
    encoders = []
    for own in (True, False):
        for _ in range(20):
            event = gw.Event(timed)
            encoders.append(None if own else timed.create_command_encoder())
            event.record(encoders[-1])
        del event
        gc.collect()
    # Those on encoders that can still be submitted are kept until it is known.
    assert helper.pairs_in_use == 20
    for encoder in encoders[20:30]:
        timed.queue.submit([encoder.finish()])
    helper.collect()
    assert helper.pairs_in_use == 10
    del encoder
    encoders.clear()
    gc.collect()
    helper.collect()
    assert helper.pairs_in_use == 0


def test_an_error_while_recording_leaves_the_event_as_it_was(timed, monkeypatch):
    event, end = gw.Event(timed), gw.Event(timed)
    event.record()
    end.record()
    end.synchronize()
    before = event._span("")

    def fails(*_args, **_kwargs):
        raise wgpu.GPUError("invented")

    with monkeypatch.context() as patch:
        patch.setattr(gw.Event, "_stamp", fails)
        with pytest.raises(gw.DeviceError, match="invented"):
            event.record()
    assert event._span("") == before
    assert gw.timing_helper(timed).pairs_in_use == 0


def test_without_a_device_it_takes_the_one_in_use(timed, device, monkeypatch):
    """As in torch; of several any may be the wrong queue, so it asks."""
    uses = inside.let_devices_be_in_use(monkeypatch, default=device)
    event, encoder = gw.Event(enable_timing=True), timed.create_command_encoder()
    assert not event.query()
    with pytest.raises(gw.TimingNotReady, match=r"never recorded"):
        event.elapsed_time(event)
    event.record(encoder)
    assert event.device is timed
    for known, wanted in (({}, device), ({timed: 0}, timed), ({device: 0, timed: 3}, timed)):
        uses.clear()
        uses.update(known)
        event = gw.Event()
        event.record()
        event.synchronize()
        assert event.device is wanted
    uses[device] = 1
    with pytest.raises(gw.ArgumentError, match=r"2 devices are in use.*gw\.Event\(device\)"):
        gw.Event().record()


def test_synchronize_without_a_device_waits_for_all(device, fresh_device, monkeypatch):
    gw.zeros(1, "u32", fresh_device)  # so that the library knows it
    waited = []
    inside.before_waits(monkeypatch, waited.append)
    gw.synchronize()
    assert {device, fresh_device} <= set(waited)
    waited.clear()
    gw.synchronize(fresh_device)
    assert waited == [fresh_device]
    fresh_device.destroy()
    gw.synchronize()
    with pytest.raises(gw.DeviceLostError):
        gw.synchronize(fresh_device)
