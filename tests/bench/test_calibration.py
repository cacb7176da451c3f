"""What calibration finds, keeps and says: relations between its numbers, its file, and the warnings that come of it."""

import dataclasses
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.calibrate import calibration, probes
from gridwise_py.bench.calibrate.calibration import (
    Calibration,
    calibrate,
    calibrate_run,
    calibration_of,
    fastest_canary_ns,
    note_canary,
    unit_warnings,
)
from gridwise_py.bench.calibrate.probes import TickCheck, cache_knee_bytes
from gridwise_py.cli import main
from gridwise_py.internals import OwnKernel
from gridwise_py.runtime.context import DeviceContext, context_of
from gridwise_py.runtime.device import device_key
from helpers.bare import device_with

SMALL = 1 << 17


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def timed(device, require, folder):
    """A device of which nothing is known, neither here nor on disk."""
    require("timestamp-query")
    context_of(device).forget("calibration")
    yield device
    context_of(device).forget("calibration")


@pytest.fixture
def fast(monkeypatch):
    """Without the probes: what they would find."""
    found = {
        "keep_busy": lambda device, seconds: None,
        "check_tick": lambda device: TickCheck(60e6, 61e6),
        "floors_ns": lambda device: {"empty_pass": 4300.0, "dispatch_in_long_pass": 1600.0},
        "synchronising_ns": lambda device: {"submit": 20e3},
        "ceilings": lambda device, sizes: {
            "copy": [_point(n, 100.0) for n in sizes],
            "triad": [_point(n, 90.0) for n in sizes],
        },
        "fma_gflops": lambda device: 60e3,
        "peaks_gops": lambda device, names=None: dict.fromkeys(names or probes.peaks_of(device), 30e3),
    }
    calls = []

    def counted(name, probe):
        return lambda *args: (calls.append(name), probe(*args))[1]

    for name, probe in found.items():
        monkeypatch.setattr(probes, name, counted(name, probe))
    return calls


def _point(size, speed):
    return {"array_bytes": size, "moved_bytes": 2 * size, "gbytes_per_s": speed}


# ---- the probes, on a real device


def test_a_calibration(timed):
    steps = []
    found = calibrate(timed, max_array_bytes=SMALL, progress=steps.append)
    assert steps == [
        "warm-up",
        "unit of the tick",
        "floors",
        "synchronising",
        "copy and triad",
        "multiply-adds",
        "peaks by type",
        *([] if gw.capabilities(timed).is_cpu else ["workgroups at once"]),
    ]
    assert 0 < found.tick_check.ratio <= 1.02  # the span lies within the wall, whoever stops this process
    assert found.tick_period_ns == gw.timing_helper(timed).tick_period_ns
    assert set(found.floors_ns) == {"empty_pass", "dispatch_in_long_pass", "gap_between_passes", "submission"}
    assert found.floors_ns["empty_pass"] > 0
    assert found.floors_ns["submission"] > 0
    costs = found.synchronising_ns
    assert set(costs) == {"submit", "wait_when_idle", "wait_after_work", "readback_4_bytes"}
    assert all(ns > 0 for ns in costs.values())
    assert found.wait_method
    sizes = [1 << 16, 1 << 17]
    assert [point["array_bytes"] for point in found.copy] == [p["array_bytes"] for p in found.triad] == sizes
    assert [point["moved_bytes"] for point in found.copy] == [2 * size for size in sizes]
    assert [point["moved_bytes"] for point in found.triad] == [3 * size for size in sizes]
    assert all(point["gbytes_per_s"] > 0 for point in (*found.copy, *found.triad))
    assert found.fma_gflops > 0
    needed = probes.PEAK_FEATURES.items()
    assert set(found.peaks_gops) == {name for name, feature in needed if feature is None or feature in timed.features}
    assert all(gops > 0 for gops in found.peaks_gops.values())
    assert Calibration.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found
    assert calibration_of(timed) is found
    assert calibrate(timed) is found, "once per device and process"


def test_a_wrong_period_is_found(timed, monkeypatch):
    """A driver that says 52.08 where a tick is 1 ns (or ns where they are ticks) is off by that factor."""
    helper = gw.timing_helper(timed)
    right = 1.0  # of these ticks: work of 60 ms, on both clocks
    monkeypatch.setattr(probes, "bracket", lambda device, submit: (0, 1, 60_000_000))
    monkeypatch.setattr(probes, "_stamps", lambda *_, **__: (np.array([[[7, 60_000_007]]], np.uint64), 61e6))
    for wrong in (52.0833 * right, right / 52.0833):
        monkeypatch.setattr(helper, "tick_period_ns", wrong)
        context_of(timed).forget("calibration")
        (warning,) = unit_warnings(timed)
        assert "doubtful" in warning
        assert f"{wrong:g} ns a tick" in warning
        assert calibration.tick_check_of(timed).ratio == pytest.approx(60 / 61 * wrong / right)
        # And so does every Measurement.
        protocol = gw.SamplingProtocol(samples=2, warmup_s=0.01, max_warmup_s=0.01)
        m = gw.measure(gw.Copy(timed), protocol=protocol, input=np.arange(10, dtype=np.uint32))
        assert warning in m.warnings
    monkeypatch.setattr(helper, "tick_period_ns", right)
    context_of(timed).forget("calibration")
    assert unit_warnings(timed) == []


def test_the_triad_computes_what_it_says(device):
    a, b = np.random.default_rng(0).integers(0, 1 << 32, (2, 1003), dtype=np.uint32)
    triad = probes.Triad(device, "u32")
    run = triad.execute(a=gw.asarray(a, device), b=gw.asarray(b, device))
    np.testing.assert_array_equal(run.output.to_numpy(), a + np.uint32(3) * b)
    assert run.plan.work.moved_bytes == 3 * 4 * 1003


def test_the_flops_of_the_fma_kernel_are_those_that_it_does(device):
    """64 operations a round, none left out; with factors that make its sums negative it stores them."""
    from gridwise_py.planning.shaders import compose

    text = compose("fma.wgsl", datatype="f32")
    assert text.count("= fma(") * 4 * 2 == probes._FMA_FLOPS_PER_ROUND
    kernel = gw.Kernel(device, text, {"state": "read_write"}, 1, constants={"ROUNDS": 3})
    state = gw.asarray(np.array([1.5, -2000] + 62 * [0], dtype=np.float32), device)
    kernel.execute(state=state)
    # That of invocation x is the sum of eight chains from x, x + 1 … x + 7. One in eight of them shares a word.
    x = np.arange(256.0)[:, None] + np.arange(8)
    for _ in range(3):
        x = x * 2 - 1999
    assert (x.sum(axis=1) < 0).all()
    for word, found in enumerate(state.to_numpy()[2:10]):
        assert found in x.sum(axis=1)[word::8]
    assert not state.to_numpy()[10:].any()


def test_the_fma_kernel_never_stores(device):
    for datatype in ("f32", "f16", "i32", "f64"):
        feature = {"f32": None, **probes.PEAK_FEATURES}[datatype]
        if feature is not None and feature not in device.features:
            continue
        bound = probes.fma_kernel(1, datatype).bind(device)
        encoder = device.create_command_encoder()
        bound.encode(encoder)
        device.queue.submit([encoder.finish()])
        assert not gw.Array(next(iter(bound.own_buffers.values())), "u32").to_numpy().any()


def test_the_kernel_of_multiply_adds_in_other_types_computes_in_them(device):
    """With negative factors it stores: i32 wraps exactly, f16 has 11 bits, f64 more than f32."""
    from gridwise_py.planning.shaders import compose

    for datatype, numpy_type in (("i32", np.int32), ("f16", np.float16), ("f64", np.float64)):
        feature = probes.PEAK_FEATURES[datatype]
        if feature is not None and feature not in device.features:
            continue
        assert compose("fma.wgsl", datatype=datatype).count("= x0 * a + b" if datatype == "i32" else "= fma(x0") == 1
        state = gw.asarray(np.array([1.5, -20] + 62 * [0], dtype=np.float32), device)
        bound = OwnKernel("fma", 256, 1, (("ROUNDS", 3),), datatype).bind(device, state.buffer)
        encoder = device.create_command_encoder()
        bound.encode(encoder)
        device.queue.submit([encoder.finish()])
        # Eight chains of four lanes, of which the first has the invocation's number.
        lanes = np.array([[i, 1, 2, 3] for i in range(256)])[:, :, None] + np.arange(8)
        x = lanes.astype(numpy_type)
        for _ in range(3):
            x = (x * numpy_type(2) + numpy_type(-19)).astype(numpy_type)
        of_lane, found = x[:, 0].sum(axis=1, dtype=np.float64), state.to_numpy()[2:10]
        # Every eighth shares a word: each found one is the sum of one of those that store, to the type's precision.
        stores = x.sum(axis=(1, 2), dtype=np.float64) < 1
        for word in np.flatnonzero(found):
            lanes = of_lane[word::8][stores[word::8]]
            assert np.isclose(lanes, found[word], rtol=2e-2 if datatype == "f16" else 1e-6).any()
        assert found.any()


def test_atomic_additions_are_all_made(device):
    for datatype, dtype in (("u32", np.uint32), ("u64", np.uint64)):
        feature = probes.PEAK_FEATURES[f"atomic_{datatype}"]
        if feature is not None and feature not in device.features:
            continue
        bound = OwnKernel("atomics", 1 << 20, 3, (("ROUNDS", 5),), datatype).bind(device)
        before = gw.Array(next(iter(bound.own_buffers.values())), "u32").to_numpy().view(dtype).copy()
        encoder = device.create_command_encoder()
        bound.encode(encoder)
        device.queue.submit([encoder.finish()])
        added = gw.Array(next(iter(bound.own_buffers.values())), "u32").to_numpy().view(dtype) - before
        expected = np.zeros_like(added)
        for i in range(5):
            expected[(np.arange(3 * 256) + i * 4160) % len(added)] += 1
        np.testing.assert_array_equal(added, expected)


# ---- what is made of them


def test_the_unit_of_the_tick():
    for span, wall, ok in ((60, 60, True), (49, 61, True), (48, 61, False), (61.1, 60, True), (62, 60, False),
                           (0, 60, False)):  # fmt: skip
        assert TickCheck(span * 1e6, wall * 1e6).ok is ok


MIB = 1 << 20


def test_the_knee_of_the_cache():
    for speeds, knee_mib in [
        # moved MiB:  2    4     8     16    32    64   128   256
        ([500, 1000, 2000, 4000, 6000, 6500, 3000, 2500], 128),
        ([500, 1000, 2000, 4000, 6000, 3000, 2900, 3000], 64),
        ([500, 1000, 6000, 1500, 6100, 3000, 2900, 3000], 64),  # one slow sample is no knee
        ([500, 1000, 2000, 2500, 2600, 2600, 2600, 2600], None),
        ([500, 1000, 2000, 3000, 4000, 5000, 6000, 7000], None),
        ([500, 1000], None),
        ([], None),
    ]:
        points = [_point(MIB << i, float(speed)) for i, speed in enumerate(speeds)]
        assert cache_knee_bytes(points) == (None if knee_mib is None else knee_mib * MIB)


def test_the_flush_is_four_times_the_cache_within_the_limits(timed, fast, monkeypatch):
    copy = gw.Copy(timed)
    x = np.arange(100, dtype=np.uint32)
    protocol = gw.SamplingProtocol(samples=1, warmup_s=0.0, max_warmup_s=0.0)
    found = calibrate(timed)
    calibration._known(timed)["calibration"] = dataclasses.replace(found, cache_bytes=1 << 18)
    assert gw.measure(copy, mode="cold", protocol=protocol, input=x).protocol["flush_bytes"] == 4 << 18
    calibration._known(timed)["calibration"] = dataclasses.replace(found, cache_bytes=1 << 40)
    limit = timed.limits["max-storage-buffer-binding-size"]
    assert gw.measure(copy, mode="cold", protocol=protocol, input=x).protocol["flush_bytes"] == min(limit, 1 << 30)


# ---- the file


def test_it_is_kept_and_found_again(timed, fast, folder):
    found = calibrate(timed)
    (path,) = folder.glob("calibration-*")
    document = json.loads(path.read_text())
    assert document["device"] == device_key(timed)
    fast.clear()
    context_of(timed).forget("calibration")  # as another process
    assert calibrate(timed) == found
    assert unit_warnings(timed) == []
    assert fast == []
    assert calibrate(timed, refresh=True) == found
    assert "ceilings" in fast


def test_another_driver_or_version_finds_nothing(timed, fast, folder, monkeypatch):
    calibrate(timed)
    own = device_key(timed)
    for count, changed in enumerate(("driver", "adapter", "wgpu", "gridwise_py", "backend"), 2):
        context_of(timed).forget("calibration")
        key = {**own, changed: "another"}
        monkeypatch.setattr("gridwise_py.runtime.context.device_key", lambda device, key=key: key)
        assert calibration_of(timed) is None
        # All are kept: an adapter does not push out another one's.
        assert calibrate(timed).device == key
        assert len(list(folder.glob("calibration-*"))) == count


def _changed(**changes):
    return lambda text: json.dumps({**json.loads(text), **changes})


def _inside(change):
    def spoil(text):
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return spoil


def test_a_broken_file_is_ignored_and_written_anew(timed, fast, folder):
    found = calibrate(timed)
    (path,) = folder.glob("calibration-*")
    for spoil in (
        lambda text: text[: len(text) // 2],
        _changed(format=1),
        _changed(device={}),
        _inside(lambda document: document["calibration"].pop("floors_ns")),
        _inside(lambda document: document["tick_check"].update(span_ns="long")),
        *(lambda _, text=text: text for text in ("", "[]", "null", "\0", "\xff\xfe", "[" * 200_000)),
    ):
        path.write_bytes(spoil(path.read_text()).encode("latin-1"))
        context_of(timed).forget("calibration")
        assert calibration_of(timed) is None
        assert calibrate(timed) == found
        context_of(timed).forget("calibration")
        assert calibration_of(timed) == found


def test_a_folder_that_cannot_be_written_costs_only_time(timed, fast, folder):
    folder.write_text("a file where the folder should be")
    assert calibrate(timed).fma_gflops == 60e3


def test_the_check_of_the_tick_alone_is_kept_if_it_is_good(timed, fast, folder, monkeypatch):
    assert unit_warnings(timed) == []
    assert unit_warnings(timed) == []
    assert fast == ["check_tick"]
    context_of(timed).forget("calibration")
    assert unit_warnings(timed) == []
    assert fast == ["check_tick"]
    for path in folder.iterdir():
        path.unlink()
    context_of(timed).forget("calibration")
    monkeypatch.setattr(probes, "check_tick", lambda device: TickCheck(1e6, 60e6))
    assert len(unit_warnings(timed)) == 1
    calibrate_run(timed, [4000])  # keeps what else it found
    (path,) = folder.glob("calibration-*")
    document = json.loads(path.read_text())
    assert document["fma_gflops"] == 60e3
    assert document["tick_check"] is None, "the machine may have been busy: another process looks again"


# ---- beside a run


def test_without_timestamps_there_is_nothing_to_calibrate(device, folder):
    bare = device_with(device)
    with pytest.raises(gw.TimingUnavailable, match="timestamp-query"):
        calibrate(bare)


def test_a_run_measures_at_its_own_sizes(timed, fast):
    found = calibrate_run(timed, [4000, 4000, 1 << 16, 0, 10**12])
    is_cpu = gw.capabilities(timed).is_cpu
    limit, beyond_caches = (1 << 26, 1 << 26) if is_cpu else (1 << 30, 1 << 28)
    assert [point["array_bytes"] for point in found.copy] == [4000, 1 << 16, limit]
    assert found.floors_ns["empty_pass"] == 4300
    assert found.fma_gflops == 60e3
    many = calibrate_run(timed, [4 * n for n in range(1, 100)], cold=True).copy
    assert len(many) == 12
    assert (many[0]["array_bytes"], many[-1]["array_bytes"]) == (4, beyond_caches)
    assert calibrate_run(timed, []).copy == ()


def test_only_what_does_not_change_is_looked_up(timed, fast, folder):
    calibrate_run(timed, [4000])
    context_of(timed).forget("calibration")  # as another process
    fast.clear()
    found = calibrate_run(timed, [4000])
    assert fast == ["keep_busy", "ceilings", "floors_ns", "synchronising_ns"]
    assert found.fma_gflops == 60e3
    assert calibration_of(timed) is None, "a run is no full calibration"
    assert found.cache_bytes is None
    calibrate(timed)
    kept = calibration._known(timed)
    kept["calibration"] = dataclasses.replace(kept["calibration"], cache_bytes=1 << 20)
    assert calibrate_run(timed, [4000]).cache_bytes == 1 << 20


def test_a_run_without_timestamps_has_none(device, folder):
    assert calibrate_run(device_with(device), [4000]) is None


def test_the_fastest_canary_is_kept(timed, folder, monkeypatch):
    def is_a(adapter_type):
        capabilities = dataclasses.replace(gw.capabilities(timed), adapter_type=adapter_type)
        monkeypatch.setattr(DeviceContext, "capabilities", capabilities)

    is_a("CPU")
    note_canary(timed, 1000.0)
    assert fastest_canary_ns(timed) is None, "a CPU has no clock of its own"
    assert not folder.exists()
    is_a("Other")
    note_canary(timed, 1000.0)
    (path,) = folder.glob("calibration-*")
    note_canary(timed, 1200.0)
    note_canary(timed, 990.0)
    assert fastest_canary_ns(timed) == 990
    assert json.loads(path.read_text())["canary_ns"] == 1000, "1 % is not worth writing"
    note_canary(timed, 800.0)
    context_of(timed).forget("calibration")
    assert fastest_canary_ns(timed) == 800


# ---- the command


def test_the_command_shows_all_of_it(timed, fast, monkeypatch):
    monkeypatch.setattr("gridwise_py.request_device", lambda adapter: timed)
    runner = CliRunner()
    done = runner.invoke(main, ["calibrate"])
    assert done.exit_code == 0, done.output
    for words in ("ratio 0.9836: right", "4.30 µs", "read back 4 bytes", "not measured", " 100 ", "60000"):
        assert words in done.output, words
    done = runner.invoke(main, ["calibrate", "--format", "json", "--refresh"])
    document = json.loads(done.stdout)
    assert document["tick_check"]["ok"] is True
    assert math.isclose(document["tick_check"]["ratio"], 60 / 61)
    assert document == calibration_of(timed).to_json()
