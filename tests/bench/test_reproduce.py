"""`gridwise reproduce`: verdicts on invented readings, where a claim is true, or false, or open; one real run.

And each timer reads the clock it says, at the moments it says.
"""

import importlib
import io
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import gridwise_py as gw
from gridwise_py.bench.reproduce import timers
from gridwise_py.bench.reproduce.experiments import EXPERIMENTS, quantised
from gridwise_py.bench.reproduce.lab import Lab
from gridwise_py.bench.reproduce.model import Experiment, Outcome, Verdict
from gridwise_py.bench.reproduce.run import reproduce
from gridwise_py.bench.reproduce.timers import TIMERS, TimedJob
from gridwise_py.cli import main

HOLDS, DOES_NOT, CANNOT = Verdict.HOLDS, Verdict.DOES_NOT, Verdict.CANNOT


def _near(level, spread=0.01):
    """Times around a level, without chance."""
    return list(level * (1 + spread * np.linspace(-1, 1, 20)))


def _wide(level):
    return _near(level, 0.95)


def _pair(large, small):
    """Return readings of two quantities: the claim says that the first one is larger."""
    return [
        ({large: _near(300.0), small: _near(200.0)}, HOLDS),
        ({large: _near(200.0), small: _near(300.0)}, DOES_NOT),
        ({large: _wide(201.0), small: _wide(200.0)}, CANNOT),
        ({large: [], small: _near(200.0)}, CANNOT),
    ]


THREE_CLOCKS = {"events": _near(328.0), "perf_counter": _near(324.0), "time": _near(327.0)}
CASES = {
    "enqueue": [
        ({"submit only": _near(160.0), "GPU timestamps": _near(434.0), "perf_counter + wait": _near(404.0)}, HOLDS),
        ({"submit only": _near(500.0), "GPU timestamps": _near(434.0), "perf_counter + wait": _near(600.0)}, DOES_NOT),
    ],
    "gemm": [
        ({"GEMM: wall": _near(1050.0), "GEMM: GPU": _near(1000.0),
          "short kernel: wall": _near(100.0), "short kernel: GPU": _near(5.0)}, HOLDS),
        ({"GEMM: wall": _near(1200.0), "GEMM: GPU": _near(1000.0),
          "short kernel: wall": _near(100.0), "short kernel: GPU": _near(5.0)}, DOES_NOT),
        ({"GEMM: wall": _near(1050.0), "GEMM: GPU": _near(1000.0),
          "short kernel: wall": _near(6.0), "short kernel: GPU": _near(5.0)}, DOES_NOT),
    ],
    "first-call": _pair("first call", "later calls"),
    "four-clocks": [
        ({**THREE_CLOCKS, "process_time": _near(330.0)}, HOLDS),
        ({**THREE_CLOCKS, "process_time": _near(90.0)}, DOES_NOT),
        ({**THREE_CLOCKS, "process_time": _wide(400.0)}, CANNOT),
    ],
    "sum-of-kernels": [
        ({"whole": _wide(400.0), "sum of kernels": _wide(390.0), "gaps": _near(10.0)}, HOLDS),
        ({"whole": _near(400.0), "sum of kernels": _near(410.0), "gaps": _near(-10.0)}, DOES_NOT),
        ({"whole": _near(400.0), "sum of kernels": _near(400.0), "gaps": [-1.0, 0.0, 1.0] * 5}, CANNOT),
    ],
    "coarse-clock": [
        ({"this clock": _near(5e3), "steps of 65,536 ns": [0.0] * 18 + [65536.0], "steps of 100 µs": [0.0] * 9}, HOLDS),
        ({"this clock": _near(2e6), "steps of 65,536 ns": [2e6] * 9, "steps of 100 µs": [2e6] * 9}, DOES_NOT),
    ],
    "empty-submission": _pair("nothing, with a wait", "vector add of 2^16, GPU"),
    "rates": _pair("by timestamps", "by the wall"),
    "processes": [
        ({"process 1": _near(100.0, 0.001), "process 2": _near(103.0, 0.001), "process 3": _near(100.1, 0.001)}, HOLDS),
        ({"process 1": _near(100.0, 0.2), "process 2": _near(101.0, 0.2), "process 3": _near(100.1, 0.2)}, DOES_NOT),
    ],
    "idle-clock": _pair("after a pause", "without a pause"),
    "first-dispatch": _pair("first dispatch", "later dispatches"),
    "caches": _pair("cold", "hot"),
    "observer": _pair("each kernel timed", "not timed"),
    "trials": _pair("one trial", "one of 100 trials"),
    "zeros": _pair("random", "zeros"),
}  # fmt: skip


def test_verdicts_on_invented_readings():
    assert list(CASES) == list(EXPERIMENTS)
    for name, cases in CASES.items():
        for readings, verdict in cases:
            found = EXPERIMENTS[name].judged(readings)
            assert found.verdict is verdict, (name, readings, found)
            assert found.reason
    found = EXPERIMENTS["four-clocks"].judged(CASES["four-clocks"][1][0])
    assert found.reason.endswith("process_time is furthest from the others")
    assert "2.7 times" in EXPERIMENTS["enqueue"].judged(CASES["enqueue"][0][0]).reason.replace("2.71", "2.7")


def test_what_a_device_lacks_comes_before_any_measurement():
    for each in EXPERIMENTS.values():
        assert each.obstacle(is_cpu=False, has_timestamps=True) is None
        assert (each.obstacle(is_cpu=True, has_timestamps=True) is not None) == (each.name in ("idle-clock", "zeros"))
        assert (each.obstacle(is_cpu=False, has_timestamps=False) is not None) == (
            each.name not in ("first-call", "trials")
        )
        assert len(each.claim) > 20, each.name
        assert len(each.source) > 20, each.name


def test_a_coarse_clock_rounds_both_stamps_down():
    assert quantised(0, 99_999, 100_000) == 0
    assert quantised(99_999, 100_001, 100_000) == 100_000  # 2 ns that read as a step
    assert quantised(5, 65_541, 65_536) == 65_536


@pytest.fixture
def lab(device):
    return Lab(device, repeats=6, cold_repeats=2, scale=0.01, warmup_s=0.0, idle_s=0.0, processes=2)


def test_an_experiment_that_fails_leaves_the_others(lab, require):
    require("timestamp-query")

    def fails(lab):
        raise gw.DeviceMemoryError("the device has 1 byte")

    broken = Experiment("broken", "It fails.", "nobody", fails, lambda readings: Outcome(HOLDS, "never"))
    document = reproduce(lab, [broken, EXPERIMENTS["trials"], EXPERIMENTS["coarse-clock"]])
    assert document["experiments"][0]["verdict"] == CANNOT
    assert "the device has 1 byte" in document["experiments"][0]["reason"]
    assert all(one["measured"] for one in document["experiments"][1:])
    # A mistake in an experiment is no property of the machine.
    wrong = Experiment("wrong", "", "", lambda lab: gw.Copy(lab.device).execute(nothing=1), lambda readings: None)
    with pytest.raises(gw.CallError):
        reproduce(lab, [wrong])


def test_a_process_that_fails_says_why(lab, require):
    require("timestamp-query")
    lab.adapter = "no such adapter"
    found = reproduce(lab, [EXPERIMENTS["processes"]])["experiments"][0]
    assert found["verdict"] == CANNOT
    assert "the child process did not start: " in found["reason"]
    assert "no such adapter" in found["reason"]


@pytest.mark.gpu
def test_an_interrupt_leaves_what_was_shown_before(tmp_path, monkeypatch):
    def stopped(lab):
        raise KeyboardInterrupt

    done = Experiment("done", "It is.", "nobody", lambda lab: {}, lambda readings: Outcome(HOLDS, "so it is"))
    stops = Experiment("stops", "It stops.", "nobody", stopped, lambda readings: Outcome(HOLDS, "never"))
    for name, experiment in (("trials", done), ("coarse-clock", stops)):
        monkeypatch.setitem(EXPERIMENTS, name, experiment)
    path = tmp_path / "claims.json"
    result = CliRunner().invoke(main, ["reproduce", "trials", "coarse-clock", "--json", str(path)])
    assert result.exit_code == 130, result.output
    assert "so it is" in result.output
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["complete"], [one["name"] for one in document["experiments"]]) == (False, ["done"])


@pytest.mark.gpu
@pytest.mark.slow
def test_all_experiments_run(tmp_path, require):
    require("timestamp-query")
    path, drawn = tmp_path / "claims.json", tmp_path / "claims.svg"
    words = "reproduce --repeats 6 --cold-repeats 2 --processes 2 --scale 0.01 --warmup-s 0.01 --idle-s 0"
    done = CliRunner().invoke(main, [*words.split(), "--json", str(path), "--plot", str(drawn)])
    assert done.exit_code == 0, done.output
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [one["name"] for one in document["experiments"]] == list(EXPERIMENTS)
    is_cpu = document["device"]["adapter_type"] == "CPU"
    for one in document["experiments"]:
        measured = one["measured"].values()
        impossible = is_cpu and EXPERIMENTS[one["name"]].needs_gpu
        assert bool(measured) != impossible, one
        assert all(
            reading["samples"] and reading["low"] <= reading["median"] <= reading["high"] for reading in measured
        )
        assert "Error" not in one["reason"], one
        assert f"{one['name']}: {one['verdict']}" in done.output
        assert (one["name"] in drawn.read_text(encoding="utf-8")) == bool(measured), one
    assert len(document["experiments"][8]["measured"]) == 2  # processes
    assert "all sizes times 0.01" in " ".join(done.output.split())


def test_the_command_lists_and_refuses(tmp_path):
    listed = CliRunner().invoke(main, ["reproduce", "--list"])
    assert listed.exit_code == 0
    assert all(each.name in listed.output for each in EXPERIMENTS.values())
    refused = CliRunner().invoke(main, ["reproduce", "enque"])
    assert refused.exit_code == 2
    assert "did you mean 'enqueue'?" in refused.output
    (tmp_path / "old.json").write_text("{}")
    kept = CliRunner().invoke(main, ["reproduce", "trials", "--json", str(tmp_path / "old.json")])
    assert kept.exit_code == 2
    assert "exists already" in kept.output


# ---- timers


@pytest.mark.parametrize("transfers", [False, True])
@pytest.mark.parametrize("timer", TIMERS, ids=lambda t: t.name)
def test_each_timer_reads_its_own_clock_around_the_right_part(device, require, monkeypatch, timer, transfers):
    """A log of what happens, instead of times."""
    require("timestamp-query", "timestamp-query-inside-encoders")
    made = TimedJob(device, 1000, transfers=transfers)
    log = []
    clocks = {
        f"{clock}_ns": lambda clock=clock: (log.append(clock), getattr(time, f"{clock}_ns")())[1]
        for clock in ("perf_counter", "time", "process_time")
    }
    # Not in `time` itself: execute(), and the thread that waits for the queue, read a clock for themselves.
    monkeypatch.setattr(timers, "time", SimpleNamespace(**clocks))
    synchronize, submit = timers.synchronize, made.device.queue.submit
    monkeypatch.setattr(timers, "synchronize", lambda device: (log.append("wait"), synchronize(device))[1])
    monkeypatch.setattr(made.device.queue, "submit", lambda c: (log.append("submit"), submit(c))[1], raising=False)
    to_numpy = gw.Array.to_numpy
    monkeypatch.setattr(gw.Array, "to_numpy", lambda self: (log.append("wait"), to_numpy(self))[1])
    assert made.sample_ns(timer) >= 0
    assert "submit" not in log[: log.index("wait")], "the queue is idle before"
    assert {"perf_counter", "time", "process_time"} & set(log) == ({timer.clock} if timer.clock else set())
    if timer.clock is None:
        return
    begin, end = (i for i, word in enumerate(log) if word == timer.clock)
    inside = log[begin + 1 : end]
    assert "submit" in inside
    assert ("wait" in inside) == timer.waits


def test_in_a_pipe_there_is_a_line_now_and_then(monkeypatch, capsys):
    output = importlib.import_module("gridwise_py.cli.output")
    now_s = iter([0.0, 3.0, 10.0, 12.0, 19.9, 20.0, 21.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(now_s))
    with output.showing_progress(10.0, 10.0) as say:
        for step in "abcdef":
            say(step)
    assert capsys.readouterr().err.splitlines() == ["b", "e"]


def test_on_a_terminal_a_step_never_takes_a_second_line(monkeypatch):
    """What is broken into two lines leaves the second behind in some terminals."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, legacy_windows=False)
    monkeypatch.setattr("gridwise_py.bench.report.console.make_console", lambda **options: console)
    with importlib.import_module("gridwise_py.cli.output").showing_progress() as progress:
        progress("vector add with upload and download, without warm-up, 1 of 3: perf_counter + wait")
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert "vector add with upload" in drawn
    assert max(len(line) for line in re.split(r"[\r\n]", drawn)) <= 40
