"""The single-pass scan: stalled tiles, epochs that wrap, both forms of the state, repetition."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.planning.plan import Kernel
from gridwise_py.runtime.context import context_of
from helpers.strategies import (
    AFFINE,
    KINDS,
    MODES,
    SHAPES,
    assert_same,
    exact_items,
    make_primitive,
    mode_for,
    operator,
    scan_reference,
    shape_options,
)

pytestmark = pytest.mark.thin(2)

STATES = ("u64", "u32x2")


@pytest.fixture(params=STATES)
def state(request, require):
    """A form of the state that the device can do."""
    if request.param == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    return request.param


@pytest.fixture(params=MODES)
def mode(request, require):
    """A form of the subgroups that the device can do."""
    if request.param == "native":
        require("subgroup")
    return request.param


def _make(device, state, mode="none", op=AFFINE, datatype="u32", kind="inclusive", **more):
    options = {**shape_options(device, "small", mode), **more}
    subgroups = mode_for(device, mode, options["workgroup_size"])
    return make_primitive(
        gw.Scan, device, datatype, op, kind, strategy="lookback", state=state, subgroups=subgroups, **options
    )


def _run(scan, device, x, **options):
    return scan.execute(input=gw.asarray(x, device), **options).output.to_numpy()


def _tile(scan):
    return 4 * scan.plan(gw.Layout.separate(input=1, output=1)).parameters["workgroup_size"]


@pytest.mark.parametrize("tickets", [False, True], ids=["by number", "by ticket"])
@pytest.mark.parametrize("stall_every", [1, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 7, 16))])
def test_tiles_that_never_post_are_computed_again(device, state, mode, stall_every, tickets):
    scan = _make(device, state, mode, stall_every=stall_every, spin_limit=2, tickets=tickets)
    for tiles in (1, 2, 9, 40):
        x = exact_items("affine", "u32", _tile(scan) * tiles - 5)
        want = scan_reference("affine", x)
        assert_same(_run(scan, device, x), want, f"{tiles} tiles")
        assert_same(_run(scan, device, x, trials=7), want, f"{tiles} tiles, 7 trials")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("op", "datatype"), [("add", "f32"), ("min", "f32"), ("max", "i32"), ("xor", "i32")])
def test_tiles_that_never_post_under_other_operators(device, op, datatype, kind):
    scan = _make(device, "u32x2", op=operator(op, datatype), datatype=datatype, kind=kind, stall_every=3, spin_limit=1)
    x = exact_items(op, datatype, 64 * 30 + 1, seed=1)
    assert_same(_run(scan, device, x, trials=3), scan_reference(op, x, kind))


@pytest.mark.parametrize("spin_limit", [1, 5000])
def test_any_spin_limit_is_right(device, state, mode, spin_limit):
    scan = _make(device, state, mode, spin_limit=spin_limit)
    x = exact_items("affine", "u32", _tile(scan) * 150 + 9)
    want = scan_reference("affine", x)
    for _ in range(2):
        assert_same(_run(scan, device, x, trials=3), want)


def test_a_spin_limit_that_stalled_tiles_reach_ends(device, state):
    """Every wait is bounded: with nobody posting, 30 tiles look 29 · 30 / 2 times the limit at most."""
    scan = _make(device, state, stall_every=1, spin_limit=1000)
    x = exact_items("affine", "u32", 64 * 30)
    assert_same(_run(scan, device, x), scan_reference("affine", x))


@pytest.mark.parametrize("epoch_bits", [1, 3])
def test_epochs_that_wrap_within_a_dispatch_of_trials(device, state, mode, epoch_bits):
    """More trials than epochs, so that words of an earlier round would count as posted were there any."""
    scan = _make(device, state, mode, epoch_bits=epoch_bits)
    x, y = (exact_items("affine", "u32", _tile(scan) * 20 + 3, seed) for seed in (1, 2))
    array, output = gw.asarray(x, device), gw.empty(x.size, "u32", device)
    for round_number in range(8):
        # The other input next time: what a stale word says would be wrong.
        items = (x, y)[round_number % 2]
        array.copy_from(items)
        scan.execute(input=array, output=output, trials=1 + 3 * round_number)
        assert_same(output.to_numpy(), scan_reference("affine", items), f"round {round_number}")


@pytest.mark.parametrize("stall_every", [0, 5])
def test_epochs_that_wrap_with_lengths_alternating(device, state, stall_every):
    scan = _make(device, state, epoch_bits=3, stall_every=stall_every, spin_limit=8)
    inputs = [exact_items("affine", "u32", n) for n in (64 * 33 + 1, 5, 64 * 9, 64 * 120 - 1, 65)]
    arrays = [gw.asarray(x, device) for x in inputs]
    wants = [scan_reference("affine", x) for x in inputs]
    for round_number in range(30):
        for array, want in zip(arrays, wants, strict=True):
            run = scan.execute(input=array, trials=1 + round_number % 5)
            assert_same(run.output.to_numpy(), want, f"round {round_number}, n={array.size}")


@pytest.mark.parametrize("tickets", [False, True], ids=["by number", "by ticket"])
def test_the_state_is_left_ready_for_the_next_dispatch(device, state, tickets):
    """No ticket given out, nobody finished, the next epoch; and a word of the last epoch for every tile."""
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    few = dataclasses.replace(measured, limits=limits)
    # Of a length of its own, so that no other test has used the state; 50 tiles in a grid of more workgroups.
    scan = _make(device, state, epoch_bits=3, tickets=tickets, capabilities=few)
    plan = scan.execute(input=gw.asarray(exact_items("affine", "u32", 64 * 50 - 11), device)).plan
    assert np.prod(plan.kernels[0].workgroups) > 50
    own = context_of(device).executor._plans[plan].own
    for dispatches in range(1, 20):
        control, states = (gw.Array(own[name], "u32").to_numpy() for name in ("control", "states"))
        np.testing.assert_array_equal(control[:4], [0, 0, dispatches % 8, 0])
        # Every tile has posted: so a word of another epoch is never older than one dispatch.
        assert states[:100].all()
        scan.execute()


@pytest.mark.parametrize("stall_every", [0, 1, 3, 5])
def test_every_so_many_tiles_and_no_others_never_post(device, state, stall_every):
    """Other tests could not tell: whatever is missing is computed again."""
    # Of a length of its own, so that no other test has used the state.
    tiles = 33
    scan = _make(device, state, stall_every=stall_every, spin_limit=2)
    plan = scan.execute(input=gw.asarray(exact_items("affine", "u32", 64 * tiles - 7), device)).plan
    words = gw.Array(context_of(device).executor._plans[plan].own["states"], "u32").to_numpy()[: 2 * tiles]
    posted = words.reshape(tiles, 2).any(axis=1)
    never = np.arange(1, tiles + 1) % stall_every == 0 if stall_every else np.zeros(tiles, bool)
    np.testing.assert_array_equal(posted, ~never)


@pytest.mark.slow
def test_the_full_epoch_of_14_bits_wraps(device, mode):
    scan = _make(device, "u32x2", mode)
    x, y = (exact_items("affine", "u32", _tile(scan) * 5 + 3, seed) for seed in (1, 2))
    array, output = gw.asarray(x, device), gw.empty(x.size, "u32", device)
    done = 0
    while done < (1 << 14) + 3000:
        items = (x, y)[done // 1000 % 2]
        array.copy_from(items)
        scan.execute(input=array, output=output, trials=1000)
        done += 1000
        assert_same(output.to_numpy(), scan_reference("affine", items), f"after {done} trials")


def test_a_repeated_call_sees_new_items(device, state):
    scan = _make(device, state)
    array, output = gw.empty(64 * 50 + 1, "u32", device), gw.empty(64 * 50 + 1, "u32", device)
    for seed in range(20):
        x = exact_items("affine", "u32", array.size, seed)
        array.copy_from(x)
        scan.execute(input=array, output=output)
        assert_same(output.to_numpy(), scan_reference("affine", x), f"call {seed}")


@pytest.mark.parametrize("tickets", [False, True], ids=["by number", "by ticket"])
@pytest.mark.parametrize("repeats", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_many_runs_are_all_right(device, state, mode, repeats, tickets):
    scan = _make(device, state, mode, tickets=tickets)
    x = exact_items("affine", "u32", _tile(scan) * 200 + 7)
    want = scan_reference("affine", x)
    array, output = gw.asarray(x, device), gw.empty(x.size, "u32", device)
    for i in range(repeats // 10):
        output.copy_from(np.zeros(x.size, np.uint32))
        scan.execute(input=array, output=output, trials=10)
        assert_same(output.to_numpy(), want, f"run {i}")


def test_the_default_shape_over_many_tiles(device, state):
    x = exact_items("add", "u32", 8192 * 100 + 1)
    scan = gw.Scan(device, "u32", strategy="lookback", tuning=gw.ScanTuning(state=state))
    assert_same(_run(scan, device, x, trials=3), scan_reference("add", x))


def test_several_calls_on_the_callers_encoder(device, state):
    scan = _make(device, state)
    inputs = [exact_items("affine", "u32", n, seed) for seed, n in enumerate([3000, 70, 3000, 1, 3000])]
    encoder = device.create_command_encoder()
    runs = [scan.execute(input=gw.asarray(x, device), encoder=encoder, trials=2) for x in inputs]
    again = [scan.record(encoder, input=gw.asarray(x, device))["output"] for x in inputs]
    device.queue.submit([encoder.finish()])
    for x, run, output in zip(inputs, runs, again, strict=True):
        assert run.encoder is encoder
        assert_same(run.output.to_numpy(), scan_reference("affine", x))
        assert_same(output.to_numpy(), scan_reference("affine", x))


def test_an_encoder_that_is_never_submitted_disturbs_nothing(device, state):
    scan = _make(device, state)
    x = exact_items("affine", "u32", 3000)
    array = gw.asarray(x, device)
    scan.execute(input=array, encoder=device.create_command_encoder())
    assert_same(scan.execute(input=array).output.to_numpy(), scan_reference("affine", x))


def test_scans_chained_on_one_encoder(device, state):
    """The output of one is the input of the next, with the same primitive and so the same state."""
    scan = _make(device, state)
    x = exact_items("affine", "u32", 3001)
    encoder = device.create_command_encoder()
    array = gw.asarray(x, device)
    for _ in range(4):
        array = scan.execute(input=array, encoder=encoder).output
        x = scan_reference("affine", x)
    device.queue.submit([encoder.finish()])
    assert_same(array.to_numpy(), x)


def test_two_scans_of_the_same_plan_interleaved(device, state):
    """Equal plans share their state, which each dispatch leaves ready for the next."""
    first, second = (_make(device, state) for _ in "ab")
    x, y = (exact_items("affine", "u32", 3001, seed) for seed in (1, 2))
    encoder = device.create_command_encoder()
    outputs = []
    for _ in range(3):
        outputs.append((first.execute(input=gw.asarray(x, device), encoder=encoder).output, x))
        outputs.append((second.execute(input=gw.asarray(y, device), encoder=encoder).output, y))
    device.queue.submit([encoder.finish()])
    for output, items in outputs:
        assert_same(output.to_numpy(), scan_reference("affine", items))


def test_it_is_one_dispatch_and_nothing_else(device, state):
    plan = _make(device, state).plan(gw.Layout.separate(input=10_000, output=10_000))
    assert [type(step) for step in plan.steps] == [Kernel]
    assert plan.parameters["state"] == state


def test_64_bit_words_need_a_device_that_has_them(device):
    without = dataclasses.replace(gw.capabilities(device), features=frozenset())
    options = {**SHAPES["small"], "subgroups": "none", "capabilities": without}
    assert make_primitive(gw.Scan, device, "u32", strategy="lookback", **options).state == "u32x2"
    with pytest.raises(gw.ArgumentError, match="shader-int64-atomic-all-ops"):
        make_primitive(gw.Scan, device, "u32", strategy="lookback", state="u64", **options)


@pytest.mark.parametrize(("bits", "most"), [(15, 14), (0, 14)])
def test_epochs_that_do_not_fit_the_word_are_refused(device, bits, most):
    with pytest.raises(gw.ArgumentError, match=f"from 1 to {most}"):
        _make(device, "u32x2", epoch_bits=bits)
