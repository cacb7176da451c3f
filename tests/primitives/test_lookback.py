"""The single-pass scan: stalled tiles, epochs that wrap, both forms of the state, repetition."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from helpers import inside
from helpers.strategies import (
    AFFINE,
    SMALL,
    assert_same,
    exact_items,
    make_primitive,
    scan_reference,
)

STATES = ("u64", "u32x2")
TILE = 256


@pytest.fixture(params=STATES)
def state(request, require):
    """A form of the state that the device can do."""
    if request.param == "u64":
        require("shader-int64", "shader-int64-atomic-all-ops")
    return request.param


@pytest.fixture
def make(device):
    """Make a scan; of forms that the device cannot do, the one that it can."""

    def made(state="u32x2", subgroups="none", op=AFFINE, datatype="u32", kind="inclusive", **more):
        if subgroups == "native" and "subgroup" not in device.features:
            subgroups = "none"
        if state == "u64" and not {"shader-int64", "shader-int64-atomic-all-ops"} <= set(device.features):
            state = "u32x2"
        options = {**SMALL, "state": state, "subgroups": subgroups, **more}
        return make_primitive(gw.Scan, device, datatype, op, kind, strategy="lookback", **options)

    return made


def _run(scan, device, x, **options):
    return scan.execute(input=gw.asarray(x, device), **options).output.to_numpy()


def test_any_spin_limit_is_right(device, make):
    """Also one that stalled tiles reach: with nobody posting, 30 tiles look 29 · 30 / 2 times the limit at most."""
    for spin_limit, stall_every, tiles in ((1, 0, 150), (1000, 1, 30)):
        scan = make(subgroups="native", spin_limit=spin_limit, stall_every=stall_every)
        x = exact_items("affine", "u32", TILE * tiles + 9)
        for _ in range(2):
            assert_same(_run(scan, device, x, trials=3), scan_reference("affine", x), f"{spin_limit}")


def test_epochs_that_wrap_within_a_dispatch_of_trials(device, make):
    """More trials than epochs, so that words of an earlier round would count as posted were there any."""
    for options in (
        {"state": "u64", "subgroups": "native", "epoch_bits": 1}, {"state": "u32x2", "epoch_bits": 3},
    ):  # fmt: skip
        scan = make(**options)
        x, y = (exact_items("affine", "u32", TILE * 20 + 3, seed) for seed in (1, 2))
        array, output = gw.asarray(x, device), gw.empty(x.size, "u32", device)
        for round_number in range(8):
            # The other input next time: what a stale word says would be wrong.
            items = (x, y)[round_number % 2]
            array.copy_from(items)
            scan.execute(input=array, output=output, trials=1 + 3 * round_number)
            assert_same(output.to_numpy(), scan_reference("affine", items), f"{options}, round {round_number}")


@pytest.mark.parametrize("faults", [{}, {"state": "u64", "stall_every": 5, "spin_limit": 8}], ids=["", "stalls"])
def test_epochs_that_wrap_with_lengths_alternating(device, make, faults):
    scan = make(epoch_bits=3, **faults)
    inputs = [exact_items("affine", "u32", n) for n in (TILE * 33 + 1, 5, TILE * 9, TILE * 120 - 1, TILE + 1)]
    arrays = [gw.asarray(x, device) for x in inputs]
    wants = [scan_reference("affine", x) for x in inputs]
    for round_number in range(20):
        for array, want in zip(arrays, wants, strict=True):
            run = scan.execute(input=array, trials=1 + round_number % 5)
            assert_same(run.output.to_numpy(), want, f"round {round_number}, n={array.size}")


@pytest.mark.parametrize("tickets", [False, True], ids=["by number", "by ticket"])
def test_the_state_is_left_ready_for_the_next_dispatch(device, make, state, tickets):
    """No ticket given out, nobody finished, the next epoch; and a word of the last epoch for every tile."""
    measured = gw.capabilities(device)
    limits = {**measured.limits, "max-compute-workgroups-per-dimension": 7}
    few = dataclasses.replace(measured, limits=limits)
    # Of a length of its own, so that no other test has used the state; 50 tiles in a grid of more workgroups.
    scan = make(state, epoch_bits=3, tickets=tickets, capabilities=few)
    plan = scan.execute(input=gw.asarray(exact_items("affine", "u32", TILE * 50 - 11), device)).plan
    assert np.prod(plan.kernels[0].workgroups) > 50
    for dispatches in range(1, 20):
        control = inside.own_words(device, plan, "control")
        np.testing.assert_array_equal(control[:4], [0, 0, dispatches % 8, 0])
        # Every tile has posted: so a word of another epoch is never older than one dispatch.
        assert inside.state_words(device, plan, 50).all()
        scan.execute()


@pytest.mark.parametrize("stall_every", [0, 1, 3])
def test_every_so_many_tiles_and_no_others_never_post(device, make, stall_every):
    """Other tests could not tell: whatever is missing is computed again."""
    # Of a length of its own, so that no other test has used the state.
    tiles = 33
    scan = make(stall_every=stall_every, spin_limit=2)
    plan = scan.execute(input=gw.asarray(exact_items("affine", "u32", TILE * tiles - 7), device)).plan
    posted = inside.state_words(device, plan, tiles).any(axis=1)
    never = np.arange(1, tiles + 1) % stall_every == 0 if stall_every else np.zeros(tiles, bool)
    np.testing.assert_array_equal(posted, ~never)


@pytest.mark.slow
def test_the_full_epoch_of_14_bits_wraps(device, make):
    scan = make("u32x2", "native")
    x, y = (exact_items("affine", "u32", TILE * 5 + 3, seed) for seed in (1, 2))
    array, output = gw.asarray(x, device), gw.empty(x.size, "u32", device)
    done = 0
    while done < (1 << 14) + 3000:
        items = (x, y)[done // 1000 % 2]
        array.copy_from(items)
        scan.execute(input=array, output=output, trials=1000)
        done += 1000
        assert_same(output.to_numpy(), scan_reference("affine", items), f"after {done} trials")


def test_calls_on_the_callers_encoder(device, make, state):
    """Of two scans with one plan, and so one state, which each dispatch leaves ready; and of one that nobody submits.

    The output of one is the input of the next.
    """
    first, second = make(state), make(state)
    inputs = [exact_items("affine", "u32", n, seed) for seed, n in enumerate([3000, 70, 3000, 1, 3000])]
    first.execute(input=gw.asarray(inputs[0], device), encoder=device.create_command_encoder())
    encoder = device.create_command_encoder()
    runs = [first.execute(input=gw.asarray(x, device), encoder=encoder, trials=2) for x in inputs]
    again = [second.record(encoder, input=run.output)["output"] for run in runs]
    device.queue.submit([encoder.finish()])
    for x, run, output in zip(inputs, runs, again, strict=True):
        assert run.encoder is encoder
        once = scan_reference("affine", x)
        assert_same(run.output.to_numpy(), once)
        assert_same(output.to_numpy(), scan_reference("affine", once))


def test_it_is_one_dispatch_and_nothing_else(make, state):
    plan = make(state).plan(gw.Layout.separate(input=10_000, output=10_000))
    assert [type(step).__name__ for step in plan.steps] == ["Kernel"]
    assert plan.parameters["state"] == state


def test_64_bit_words_need_a_device_that_has_them(device):
    without = dataclasses.replace(gw.capabilities(device), features=frozenset())
    options = {**SMALL, "capabilities": without}
    assert make_primitive(gw.Scan, device, "u32", strategy="lookback", **options).state == "u32x2"
    with pytest.raises(gw.ArgumentError, match="shader-int64-atomic-all-ops"):
        make_primitive(gw.Scan, device, "u32", strategy="lookback", state="u64", **options)


def test_epochs_that_do_not_fit_the_word_are_refused(make):
    for bits in (15, 0):
        with pytest.raises(gw.ArgumentError, match="from 1 to 14"):
            make("u32x2", epoch_bits=bits)
