"""`gridwise timers`: each timer reads the clock it says, at the moments it says; tables and pictures of it."""

import importlib
import importlib.util
import json
import time
import weakref
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.report.timers import plot_timers, timers_chart, timers_markdown
from gridwise_py.bench.sweep import timers
from gridwise_py.bench.sweep.timers import TIMERS, WORKLOADS, Workload, run_timers
from helpers.bare import device_with
from helpers.paths import ROOT

SMALL = [Workload(w.name, 100_003, w.transfers) for w in WORKLOADS]


@pytest.fixture(scope="module")
def document(device, require):
    require("timestamp-query")
    return run_timers(repeats=4, cold_repeats=2, warmup_s=0.01, idle_s=0.0, workloads=SMALL)


CLOCKS = {
    "submit only": ("perf_counter", False),
    "GPU timestamps": (None, True),
    "perf_counter + wait": ("perf_counter", True),
    "time.time + wait": ("time", True),
    "process_time + wait": ("process_time", True),
}


def test_each_timer_has_the_clock_of_its_name():
    assert {timer.name: (timer.clock, timer.waits) for timer in TIMERS} == CLOCKS


@pytest.mark.slow
def test_five_timers_two_jobs_with_and_without_warm_up(document):
    assert [workload["n"] for workload in document["workloads"]] == [100_003] * 2
    assert [w.n for w in WORKLOADS] == [10_000_000, 5_000_000]
    for workload in document["workloads"]:
        assert [row["timer"] for row in workload["timers"]] == [timer.name for timer in TIMERS]
        for row in workload["timers"]:
            assert len(row["cold"]["samples_ns"]) == 2
            assert len(row["warm"]["samples_ns"]) == row["warm"]["summary"]["count"] == 4
            assert min(row["warm"]["samples_ns"]) >= 0
            assert row["what"]
    json.dumps(document, allow_nan=False)
    assert document["device"]["adapter"] == gw.capabilities(gw.request_device()).adapter


@pytest.fixture
def job(device, require):
    require("timestamp-query", "timestamp-query-inside-encoders")
    data = [np.arange(1000, dtype=np.float32), np.ones(1000, dtype=np.float32)]
    return lambda transfers: timers.TimedJob(device, Workload("w", 1000, transfers), data)


@pytest.mark.parametrize("transfers", [False, True])
@pytest.mark.parametrize("timer", TIMERS, ids=lambda t: t.name)
def test_each_timer_reads_its_own_clock_around_the_right_part(job, monkeypatch, timer, transfers):
    """A log of what happens, instead of times."""
    made = job(transfers)
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


def test_a_wrong_sum_is_noticed(job):
    made = job(False)
    made.sample_ns(TIMERS[0])
    made.check()
    made._data[0][7] += 1
    with pytest.raises(AssertionError):
        made.check()


def test_without_timestamps_it_says_so(monkeypatch, device):
    bare = device_with(device)
    monkeypatch.setattr(timers, "request_device", lambda adapter: bare)
    with pytest.raises(gw.TimingUnavailable, match="--adapter"):
        run_timers()


@pytest.mark.slow
def test_what_there_is_can_be_kept_at_any_time(device, require, tmp_path):
    """After each sample without warm-up and each round with; all those without come before the others."""
    require("timestamp-query")
    seen = []
    last = run_timers(repeats=2, cold_repeats=2, warmup_s=0, idle_s=0, workloads=SMALL, keep=seen.append)
    assert len(seen) == 2 * 2 * len(TIMERS) + 2 * 2
    assert [one["complete"] for one in [*seen, last]] == [False] * len(seen) + [True]
    counts = [
        [sum(0 if row[how] is None else row[how]["summary"]["count"] for w in one["workloads"] for row in w["timers"])
         for how in ("cold", "warm")]
        for one in seen
    ]  # fmt: skip
    cold = 2 * 2 * len(TIMERS)
    assert counts == [[i + 1, 0] for i in range(cold)] + [[cold, len(TIMERS) * (i + 1)] for i in range(4)]
    assert [row["timer"] for row in seen[0]["workloads"][0]["timers"]] == ["submit only"]
    for one in seen:
        assert "| submit only |" in timers_markdown(one)
    if importlib.util.find_spec("vl_convert"):
        plot_timers(seen[0], tmp_path / "a.svg")
    assert {**seen[-1], "complete": True} == last


@pytest.mark.slow
def test_a_round_is_warmed_up_once_for_each_side(monkeypatch, device, require):
    """The samples of a round follow each other; a pause or a warm-up between two would be another measurement."""
    require("timestamp-query")
    log = []
    monkeypatch.setattr(timers, "_warm_up", lambda call, seconds: (log.append(("warm-up", seconds)), call()))
    real = timers.TimedJob.sample_ns
    monkeypatch.setattr(timers.TimedJob, "sample_ns", lambda self, t: (log.append(t.name), real(self, t))[1])
    sleep = time.sleep  # which waits for the GPU use, too
    monkeypatch.setattr(time, "sleep", lambda s: log.append(("idle", s)) if s == 0.25 else sleep(s))
    run_timers(repeats=2, cold_repeats=1, warmup_s=0.5, idle_s=0.25, workloads=SMALL[:1])
    names = [t.name for t in TIMERS]
    cold = [entry for name in names for entry in (("idle", 0.25), name)]
    warm = [[("warm-up", s), TIMERS[2].name, *names] for s in (0.5, 0.05)]
    assert log == cold + warm[0] + warm[1]


@pytest.mark.slow
def test_devices_of_samples_without_warm_up_are_let_go(monkeypatch, device, require):
    require("timestamp-query")
    made = []
    real = timers.request_device

    def request(adapter):
        alive = [ref for ref in made[1:] if ref() is not None]
        assert not alive, "the device of the sample before is still there"
        found = real(adapter)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(timers, "request_device", request)
    run_timers(repeats=1, cold_repeats=1, warmup_s=0, idle_s=0, workloads=SMALL)
    assert len(made) == 1 + 2 * len(TIMERS)


# ---- another library beside it


class _Other:
    """A library that does nothing, and says so."""

    name = "other"
    described: ClassVar = {"version": "9"}
    explained: ClassVar = {"other's clock": "nothing"}

    def __init__(self, log, workload):
        self._log, self._workload = log, workload
        self.timers = {"other's clock": self._time}

    def _time(self):
        self._log.append("other's clock")
        return 7.0

    def run(self):
        self._log.append("other's warm-up")


@pytest.mark.slow
def test_another_library_is_loaded_after_all_cold_samples_and_warmed_up_in_each_round(device, require, monkeypatch):
    require("timestamp-query")
    log = []
    real = timers.TimedJob.sample_ns
    monkeypatch.setattr(timers.TimedJob, "sample_ns", lambda self, t: (log.append(t.name), real(self, t))[1])

    def load():
        log.append("load")
        return lambda workload, data: _Other(log, workload)

    found = run_timers(repeats=2, cold_repeats=1, warmup_s=0, idle_s=0, workloads=SMALL, load_peer=load)
    names = [t.name for t in TIMERS]
    side = ["other's warm-up", "other's clock"]
    assert log == 2 * names + ["load"] + 4 * [TIMERS[2].name, *names, *side]
    assert found["peers"] == {"other": {"version": "9"}}
    for workload in found["workloads"]:
        row = workload["timers"][-1]
        assert (row["timer"], row["what"], row["cold"]) == ("other's clock", "nothing", None)
        assert row["warm"]["samples_ns"] == [7.0, 7.0]
    assert "; other 9." in timers_markdown(found)


# ---- table, page, picture


@pytest.mark.needs("module:altair", "module:vl_convert")
@pytest.mark.slow
def test_the_picture(document, tmp_path):
    for workload in document["workloads"]:
        spec = timers_chart(workload)
        (line,), samples, medians = ([*spec["datasets"][layer["data"]["name"]]] for layer in spec["layer"])
        for how, words in (("cold", "without warm-up"), ("warm", "with warm-up")):
            wanted = {row["timer"]: row[how] for row in workload["timers"]}
            for name, one in wanted.items():
                drawn = [row["s"] * 1e9 for row in samples if (row["timer"], row["how"]) == (name, words)]
                assert drawn == pytest.approx([ns for ns in one["samples_ns"] if ns > 0])
            drawn = {row["timer"]: row["s"] * 1e9 for row in medians if row["how"] == words}
            assert drawn == pytest.approx({name: one["summary"]["median_ns"] for name, one in wanted.items()})
        assert line == next(row for row in medians if (row["timer"], row["how"]) == ("GPU timestamps", "with warm-up"))
    plot_timers(document, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("submit only", "process_time + wait", "with warm-up", "without warm-up", "GPU timestamps"):
        assert word in text
    with pytest.raises(gw.ArgumentError, match=r"a\.gif"):
        plot_timers(document, tmp_path / "a.gif")


@pytest.mark.slow
def test_the_command(device, require, tmp_path):
    require("timestamp-query")
    from click.testing import CliRunner

    from gridwise_py.cli import main

    out = tmp_path / "t.json"
    few = [
        "--repeats",
        "2",
        "--cold-repeats",
        "1",
        "--warmup-s",
        "0",
        "--idle-s",
        "0",
        "--scale",
        "0.001",
    ]
    result = CliRunner().invoke(main, ["timers", *few, "--json", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("submit only", "10,000 items of f32", "5,000 items of f32", "what it really measured"):
        assert word in result.output
    found = json.loads(out.read_text())
    assert (found["schema"], found["complete"]) == ("gridwise.timers", True)
    assert result.stderr.splitlines()[-1] == f"wrote {out}"
    assert not (tmp_path / "t.partial.json").exists()
    for wrong in (["--json", str(tmp_path / "no" / "t.json")], ["--plot", str(tmp_path / "t.gif")]):
        assert CliRunner().invoke(main, ["timers", *few, *wrong]).exit_code == 2


def test_in_a_pipe_there_is_a_line_now_and_then(monkeypatch, capsys):
    output = importlib.import_module("gridwise_py.cli.output")
    now_s = iter([0.0, 3.0, 10.0, 12.0, 19.9, 20.0, 21.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(now_s))
    with output.showing_progress(10.0, 10.0) as say:
        for step in "abcdef":
            say(step)
    assert capsys.readouterr().err.splitlines() == ["b", "e"]


@pytest.mark.slow
def test_a_command_that_is_cut_off_leaves_what_it_has(device, require, tmp_path, monkeypatch):
    require("timestamp-query")
    from click.testing import CliRunner

    from gridwise_py.cli import main

    out = tmp_path / "t.json"
    out.write_text("an earlier run's")

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(timers.TimedJob, "check", stop)
    words = ("--repeats", 1, "--cold-repeats", 1, "--warmup-s", 0, "--idle-s", 0, "--scale", 0.001)
    result = CliRunner().invoke(main, ["timers", *map(str, words), "--json", str(out), "--overwrite"])
    assert result.exit_code == 130
    partial = tmp_path / "t.partial.json"
    assert f"the samples so far are in {partial}" in result.stderr
    found = json.loads(partial.read_text())
    assert not found["complete"]
    first, second = found["workloads"]
    assert all(row["cold"] and row["warm"] for row in first["timers"])
    assert all(row["cold"] and row["warm"] is None for row in second["timers"])
    assert out.read_text() == "an earlier run's"


@pytest.mark.parametrize("machine", ["h200", "lavapipe"])
def test_files_that_the_site_shows_give_tables(machine):
    path = ROOT / "benchmarks" / "results" / machine / "timers.json"
    text = timers_markdown(json.loads(path.read_text(encoding="utf-8")))
    assert text.count("| submit only |") == 2


@pytest.mark.slow
def test_the_table_of_a_page(document):
    text = timers_markdown(document)
    assert text.count("| submit only |") == 2
    assert gw.capabilities(gw.request_device()).adapter in text
    assert "2 samples without warm-up, 4 with." in text
