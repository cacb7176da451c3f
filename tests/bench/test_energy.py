"""Joules per call, by an invented sensor and clock; the sensors that drivers have; what cannot be measured."""

import csv
import io
import json
import math
import re
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.backend import observers
from gridwise_py.backend.gpu import EnergySensor, Gpu
from gridwise_py.backend.sysfs_observers import sysfs_gpus
from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report import page_tables
from gridwise_py.bench.report.comparison import comparison_table, render
from gridwise_py.bench.report.console import make_console
from gridwise_py.bench.report.table import results_export, results_table
from gridwise_py.bench.results.reader import read_results
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.sampling import energy as energy_module
from gridwise_py.bench.sampling.energy import Meter, energy_in_windows, window_of
from gridwise_py.bench.stats.energy import EnergyResult, EnergyWindow, energy_of, judge_energy, pooled_energy
from gridwise_py.bench.sweep.runner import Request, run_jobs
from gridwise_py.bench.sweep.suite import Job, in_rounds
from gridwise_py.display.quantities import format_energy
from helpers.results import document, loaded, measurement

STEP_S = 0.1


class Board:
    """A GPU with a clock and a sensor of its own: what runs takes time and energy, and the sensor sees it in steps."""

    def __init__(self, kind="counter"):
        self.now, self.joules, self.seen = 100.0, 5e6, 5e6
        self.watts, self.degrees, self.silent = 0.0, 50.0, False
        self.sensor = EnergySensor("an invented sensor", kind, self.read, STEP_S)
        self.meter = Meter(self.sensor, lambda: self.now)

    def spend(self, seconds, watts):
        self.watts = watts
        end = self.now + seconds
        while self.now < end:
            boundary = (math.floor(self.now / STEP_S + 1e-9) + 1) * STEP_S
            step = min(boundary, end) - self.now
            self.joules += watts * step
            self.now += step
            if self.now == boundary:
                self.seen = self.joules

    def read(self):
        if self.silent:
            return None
        return self.seen if self.sensor.kind == "counter" else self.watts

    def work(self, calls, watts, seconds=0.01, noise=0.0, drift=0.0):
        """What runs a piece of so many calls; its power has noise, and rises with time."""
        random = np.random.default_rng(calls)

        def run():
            self.spend(seconds, watts * (1 + noise * random.standard_normal() + drift * (self.now - 100.0)))
            return calls

        return run

    def measure(self, run, windows=5, window_s=2.0):
        return energy_in_windows(run, self.meter, window_s, windows, lambda: self.degrees)


@pytest.mark.parametrize("kind", ["counter", "power"])
def test_joules_of_a_call_are_power_by_time_by_calls(kind):
    board = Board(kind)
    found = board.measure(board.work(7, 300.0))
    assert found.joules == pytest.approx(300.0 * 0.01 / 7, rel=0.006)  # a window ends within 10 ms of a step
    assert found.low_j <= found.joules <= found.high_j
    assert found.power_w == pytest.approx(300.0, rel=0.006)
    assert (len(found.windows), found.reason, found.warnings) == (5, None, ())
    assert all(2.0 <= window.duration_s < 2.2 and window.steps >= 19 for window in found.windows)
    assert "mJ per call" in repr(found)
    assert "at 300 W, 5 windows" in repr(found)


def test_what_runs_before_a_window_is_not_in_it():
    """A hot kernel right before: its part of the sensor's step must not count."""
    board = Board()
    for seconds in (0.05, 0.033):
        board.spend(seconds, 10_000.0)
        window = window_of(board.meter, board.work(1, 100.0), 1.0, lambda: None)
        assert window.energy_j / window.calls == pytest.approx(1.0, rel=0.02)


def test_ten_percent_are_told_apart_and_equal_ones_are_not():
    board = Board()
    old, new, same = (board.measure(board.work(10, watts, noise=0.03), 6) for watts in (300.0, 330.0, 300.0))
    more, equal = judge_energy(old, new, 0.02), judge_energy(old, same, 0.02)
    assert (more.kind.value, equal.kind.value) == ("slower", "same"), "slower: more energy"
    assert more.low <= 1.1 <= more.high
    assert judge_energy(new, old, 0.02).kind.value == "faster"
    assert judge_energy(old, same, 1e-6).kind.value == "ambiguous"


def test_below_the_resolution_there_is_no_number_but_a_reason():
    board = Board()
    found = board.measure(board.work(7, 300.0), window_s=0.05)
    assert (found.joules, found.low_j, found.high_j, found.power_w) == (None, None, None, None)
    assert "below the sensor's resolution: an invented sensor stepped" in found.reason
    assert "needs 10 (its step is about 100 ms)" in found.reason
    assert found.windows
    assert judge_energy(found, found, 0.02) is None
    assert "not measured: below" in repr(found)
    long = board.measure(board.work(3, 300.0, seconds=5.0), 2)
    assert long.joules == pytest.approx(500.0, rel=0.03)
    assert long.low_j is None  # two windows have no interval
    assert len(long.windows) == 2


def test_a_sensor_that_stands_still_fails_or_begins_anew():
    board = Board()
    board.sensor = EnergySensor("still", "counter", lambda: 5.0, STEP_S)
    board.meter = Meter(board.sensor, lambda: board.now)
    assert "still stepped 0 times" in board.measure(board.work(1, 300.0)).reason
    for value in (None, 1.0):
        board = Board()
        run, count = board.work(1, 300.0), 0

        def breaks(board=board, run=run, value=value):
            nonlocal count
            count += 1
            if count == 400:
                board.silent = value is None
                board.seen = board.joules = value or 0.0
            return run()

        found = board.measure(breaks)
        assert found.joules is None
        assert "did not answer in every window, or began anew" in found.reason


def test_the_temperature_is_noted_and_its_drift_is_a_warning():
    board = Board()
    run = board.work(1, 300.0)

    def warms():
        board.degrees += 0.01
        return run()

    found = board.measure(warms)
    temperatures = [window.temperature_c for window in found.windows]
    assert temperatures == sorted(temperatures)
    assert "°C after the first window" in found.warnings[0]
    assert "doubtful" in repr(found)
    board.degrees = None
    assert board.measure(run).warnings == ()


# ---- on a device


@pytest.fixture
def sensed(device, monkeypatch):
    """The shared device with a sensor that says 100 W by the true clock, in steps of 1 ms."""
    import time

    def read():
        return math.floor(time.perf_counter() * 1e3) / 1e3 * 100.0

    gpu = Gpu(None, dict, lambda: None, lambda: EnergySensor("100 W", "counter", read, 0.001))
    monkeypatch.setattr(energy_module, "gpu_of", lambda _: gpu)
    monkeypatch.setattr(energy_module, "_WARM_S", 0.0)
    monkeypatch.setattr(energy_module, "_CHUNK_S", 0.001)
    return device


def test_calls_of_every_kind(sensed):
    x = gw.asarray(np.arange(1000, dtype=np.uint32), sensed)
    scan, protocol = gw.Scan(sensed), _with_energy()
    with gw.capture(sensed) as sequence:
        gw.cumsum(x)
    for work, more in ((scan, {"input": x}), (sequence, {}), (lambda: gw.cumsum(x), {"device": sensed})):
        found = gw.measure(work, protocol=protocol, **more).energy
        assert (found.reason, len(found.windows)) == (None, 3)
        assert found.power_w > 0
        assert found.joules == pytest.approx(np.mean([w.energy_j / w.calls for w in found.windows]))
    np.testing.assert_array_equal(scan.execute(input=x).output.to_numpy(), np.cumsum(np.arange(1000)))


def test_without_a_sensor_there_is_a_reason(device, monkeypatch):
    x = gw.asarray(np.arange(10, dtype=np.uint32), device)
    monkeypatch.setattr(energy_module, "gpu_of", lambda _: None)
    found = gw.measure(gw.Copy(device), input=x, protocol=_with_energy()).energy
    assert (found.joules, found.sensor) == (None, None)
    assert found.reason.startswith("no sensor: ")
    gpu = types.SimpleNamespace(adapter=types.SimpleNamespace(info={"device": "X1", "adapter_type": "DiscreteGPU"}))
    assert "X1 tells neither energy nor power" in energy_module._no_sensor(gpu, known=True)
    assert "extra nvidia" in energy_module._no_sensor(gpu, known=False)


def _with_energy(**options):
    return gw.SamplingProtocol(
        samples=3, warmup_s=0, max_warmup_s=0.01, energy_windows=3, energy_window_s=0.02, check_unit=False, **options
    )


# ---- a column of results


def _file(joules, windows=6, **fields):
    """A document of one case whose trials took about so many joules; None: a sensor that did not step."""
    taken = (
        [EnergyWindow(joules * (1 + 0.002 * k) * 1000, 2.0, 1000, 20, 50.0) for k in range(windows)] if joules else []
    )
    energy = energy_of(taken, "a sensor") if joules else EnergyResult(reason="below the sensor's resolution")
    return loaded(document([measurement(energy=energy, **fields)]))


def test_a_run_with_energy_has_a_column_of_it_everywhere(sensed, tmp_path):
    protocol = _with_energy(batch_trials=2)
    jobs = [Job(Case.build(name, 1000, "u32", op), Mode(mode), k) for k, (name, op, mode) in enumerate(
        [("copy", None, "batch"), ("scan", "add", "hot"), ("scan", "add", "cold")]
    )]  # fmt: skip
    path = tmp_path / "run.json"
    made = run_jobs(Request(jobs, protocol), None, json_path=path)
    assert read_results(path).results == made.results
    first, second, cold = (result.energy for result in made.results)
    for energy in (first, second):
        assert (len(energy.windows), energy.reason) == (3, None)
        assert energy.low_j <= energy.joules <= energy.high_j
    assert cold.joules is None
    assert "caches are emptied" in cold.reason
    assert made.results[0].correct, "it is right after the windows, too"
    text = _printed(results_table(made))
    assert format_energy(second.joules) in text
    assert re.search(r"No energy of scan .*cold.*: in mode cold the caches are emptied", " ".join(text.split()))
    export = results_export(made)
    assert format_energy(first.joules) in export.markdown()
    rows = list(csv.DictReader(io.StringIO(export.csv())))
    assert {row["joules"] for row in rows if row["primitive"] == "copy"} == {repr(first.joules)}
    frame = gw.to_dataframe(made)
    assert set(frame[frame["primitive"] == "copy"]["joules"]) == {first.joules}
    table = page_tables.results_table([pooled(made)], ["a"], [])
    at = [column["title"] for column in table["columns"]].index("energy")
    assert table["columns"][at]["kind"] == "number"
    assert table["rows"][0][at]["sort"] == first.joules


def test_joules_of_two_files_are_judged_by_their_windows():
    old = _file(1.0)
    for joules, verdict in ((1.1, "more"), (0.9, "less"), (1.0, "same")):
        found = compare(old, _file(joules), threshold=0.02)
        (row,) = found.quantities
        assert (row.name, row.word, row.values[0]) == ("energy", verdict, old.results[0].energy.joules)
        assert row.verdict.ratio == pytest.approx(joules)
        assert row.verdict.low <= joules <= row.verdict.high
        assert not found.regressed, "the gate is on times"
        for form in ("table", "markdown", "json"):
            text = render(found, form)
            assert verdict in text
            assert "joules" in text or "1.01 J" in text or "1.005" in text, form
        data = json.loads(render(found, "json"))["quantities"][0]
        assert (data["name"], data["verdict"], data["gated"]) == ("energy", verdict, False)
        records = list(csv.DictReader(io.StringIO(comparison_table(found).csv())))
        assert records[-1]["verdict"] == verdict
        page = page_tables.comparison_table(found, "", [])
        assert page["table"]["rows"][-1][-1]["kind"] == f"verdict {verdict}"
    few = compare(old, _file(1.1, windows=2))
    assert few.quantities[0].verdict is None
    assert "2 windows of a side" in render(few, "markdown")
    assert compare(old, _file(None)).quantities == ()
    assert compare(old, loaded(document([measurement()]))).quantities == ()
    ranks = compare(old, _file(2.0), across=True)
    assert [rank.quantities["joules"] for rank in ranks.ranks] == [
        old.results[0].energy.joules if rank.file == "A" else 2 * old.results[0].energy.joules for rank in ranks.ranks
    ]
    assert "2.01 J" in render(ranks, "markdown")


def test_visits_of_a_case_are_pooled():
    visits = [_file(joules, 3).results[0].energy for joules in (1.0, 3.0)]
    found = pooled_energy([EnergyResult(reason="silent"), *visits])
    assert found.joules == pytest.approx(2.0, rel=0.01)
    assert (len(found.windows), found.reason) == (6, None)
    assert pooled_energy([EnergyResult(reason="silent")] * 2).reason == "silent"
    assert pooled_energy([]) is None
    rounds = [measurement(energy=energy) for energy in visits]
    made = loaded(document(rounds))
    both = tuple(replace(result, round=k) for k, result in enumerate(made.results))
    assert pooled(replace(made, results=both)).results[0].energy.joules == found.joules


def test_windows_are_shared_by_processes_and_rounds(sensed):
    jobs = in_rounds([Job(Case.build("copy", 8, "u32", None), Mode.HOT, 0)], 2, None)
    made = run_jobs(Request(jobs, _with_energy(), processes=1), None)
    assert [len(result.energy.windows) for result in made.results] == [2, 2], "of three"


def _printed(table):
    console = make_console(width=100, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


# ---- the drivers' sensors


def _nvml(**functions):
    module = types.ModuleType("pynvml")
    known = {
        "nvmlInit": lambda: None, "nvmlDeviceGetCount": lambda: 1, "nvmlDeviceGetHandleByIndex": lambda i: i,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H100",
    }  # fmt: skip
    for name, function in (known | functions).items():
        setattr(module, name, function)
    return module


def test_nvidias_counter_or_else_its_power(monkeypatch):
    info = {"device": "NVIDIA H100", "vendor": "NVIDIA", "vendor_id": 0x10DE}
    both = {"nvmlDeviceGetTotalEnergyConsumption": lambda h: 123_456_789, "nvmlDeviceGetPowerUsage": lambda h: 350_500}
    for functions, kind, value in (
        (both, "counter", 123_456.789),
        ({"nvmlDeviceGetPowerUsage": lambda h: 350_500}, "power", 350.5),
        ({}, None, None),
    ):
        observers._nvml.cache_clear()
        monkeypatch.setitem(sys.modules, "pynvml", _nvml(**functions))
        (gpu,) = observers.gpus_like(info)
        sensor = gpu.energy_sensor()
        assert (kind, value) == (None, None) if sensor is None else (sensor.kind, sensor.read()) == (kind, value)
    observers._nvml.cache_clear()


def test_hwmons_counter_or_else_its_power(tmp_path):
    info = {"device": "AMD", "vendor_id": 0x1002, "device_id": 0x744C}
    hwmon = tmp_path / "card0/device/hwmon/hwmon3"
    hwmon.mkdir(parents=True)
    (tmp_path / "card0/device/vendor").write_text("0x1002")
    (tmp_path / "card0/device/device").write_text("0x744c")
    (gpu,) = sysfs_gpus(info, tmp_path)
    assert gpu.energy_sensor() is None
    for name, text, kind, value in (
        ("power1_input", "45000000", "power", 45.0),
        ("power1_average", "210000000\n", "power", 210.0),
        ("energy1_input", "98765432100\n", "counter", 98_765.4321),
    ):
        (hwmon / name).write_text(text)
        sensor = gpu.energy_sensor()
        assert (sensor.kind, sensor.read(), sensor.name) == (kind, pytest.approx(value), f"hwmon's {name}")
    (hwmon / "energy1_input").unlink()
    assert sensor.read() is None  # a GPU that fell asleep
