"""Chrome traces: they load, lanes do not overlap, and large counts keep their nanoseconds."""

import itertools

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report.trace import results_trace
from gridwise_py.storage.chrome_trace import ChromeTrace, GpuSlice
from gridwise_py.storage.json_files import write_json
from gridwise_py.timing.result import Span
from helpers.results import DEVICE, document, measurement
from helpers.traces import load

FAR = (1 << 63) + 12345  # a float64 has steps of 2048 here


def _spans(period_ns=1.0, at=FAR):
    return (Span("first", at, at + 1001, period_ns), Span("second", at + 2003, at + 2003 + 501, period_ns))


def _result(**fields):
    values = {
        "labels": ("first", "second"), "trials": 4, "spans": _spans(), "cpu_total_time_ns": 9000.0,
        "submit_time_ns": 700.0, "encode_time_ns": 300.0, "wait_method": "device_poll",
        "workgroups": ((7, 2, 1), (1, 1, 1)), "work": gw.Work(10, 40, 40),
    }  # fmt: skip
    return gw.TimingResult(**values | fields)


def test_a_timing_result(tmp_path):
    _result().export_chrome_trace(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    host, gpu = lanes["host"], lanes["GPU queue"]
    assert [(e["name"], e["ts"], e["dur"]) for e in host] == [
        ("encode", 0.0, 0.3), ("submit", 0.3, 0.7), ("wait", 1.0, 8.3),
    ]  # fmt: skip
    # Integers first: as floats, the counts would have lost these digits.
    assert [(e["name"], e["dur"]) for e in gpu] == [("first", 1.001), ("second", 0.501)]
    assert gpu[1]["ts"] - gpu[0]["ts"] == pytest.approx(2.003)
    # Both clocks agree on the end of the wait.
    assert gpu[1]["ts"] + gpu[1]["dur"] == pytest.approx(9.3)
    _result(spans=_spans(52.0833)).export_chrome_trace(tmp_path / "t.json")
    scaled = load(tmp_path / "t.json")[1]["GPU queue"]
    assert scaled[0]["dur"] == pytest.approx(1001 * 52.0833 / 1e3, abs=1e-3)
    assert gpu[0]["args"] == {
        "workgroups": [7, 2, 1], "trials": 4, "primitive_bytes": 80, "begin_ticks": FAR, "end_ticks": FAR + 1001,
    }  # fmt: skip


def test_what_was_not_measured_has_no_lane(tmp_path):
    path = tmp_path / "t.json"
    _result(cpu_total_time_ns=None, submit_time_ns=None, encode_time_ns=None).export_chrome_trace(path)
    assert list(load(path)[1]) == ["GPU queue"]
    _result(spans=()).export_chrome_trace(path)
    assert list(load(path)[1]) == ["host"]
    invalid = (Span("first", 9, 3, 1.0), Span("second", 10, 20, 1.0))
    _result(spans=invalid).export_chrome_trace(path)
    assert [e["name"] for e in load(path)[1]["GPU queue"]] == ["second"]
    path.unlink()
    with pytest.raises(gw.TimingUnavailable, match="enable_gpu_timing=True"):
        _result(spans=(), cpu_total_time_ns=None).export_chrome_trace(path)
    assert not path.exists()


def test_a_run(tmp_path, device, require):
    require("timestamp-query")
    x = gw.asarray(np.ones(100_000, dtype=np.uint32), device)
    scan = gw.Scan(device, strategy="reduce_then_scan")
    run = scan.execute(input=x, enable_gpu_timing=True, enable_cpu_timing=True)
    result = run.get_timing_result()
    result.export_chrome_trace(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    assert [e["name"] for e in lanes["GPU queue"]] == list(result.labels)
    assert [e["args"]["workgroups"] for e in lanes["GPU queue"]] == [list(k.workgroups) for k in run.plan.kernels]
    assert lanes["GPU queue"][0]["args"]["primitive_bytes"] == 800_000


def test_passes_that_overlap_get_a_lane_each(tmp_path):
    trace = ChromeTrace(0)
    pieces = [GpuSlice("a", 10, 30, {}), GpuSlice("b", 20, 40, {}), GpuSlice("c", 30, 35, {})]
    trace.gpu_slices("queue", pieces, 1.0, (10, 0))
    trace.write(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    assert {name: [e["name"] for e in found] for name, found in lanes.items()} == {
        "queue": ["a", "c"], "queue, overlapping 1": ["b"],
    }  # fmt: skip


def test_neighbours_do_not_overlap_by_a_rounding(tmp_path):
    trace = ChromeTrace(0)
    cuts = [FAR + 7 * i for i in range(1000)]
    pieces = [GpuSlice("k", a, b, {}) for a, b in itertools.pairwise(cuts)]
    trace.gpu_slices("queue", pieces, 1.0 / 3.0, (FAR, 0))
    trace.write(tmp_path / "t.json")
    assert list(load(tmp_path / "t.json")[1]) == ["queue"]


def _write(path, measurements):
    write_json(path, document(measurements, device=DEVICE))
    return path


def test_a_results_file(tmp_path):
    path = _write(tmp_path / "r.json", [measurement(mode=Mode.LATENCY), measurement("copy", op=None, labels=("copy",))])
    results_trace(path).write(tmp_path / "t.json")
    trace, lanes = load(tmp_path / "t.json")
    names = [e["name"] for found in (v for k, v in lanes.items() if k.startswith("GPU")) for e in found]
    assert names.count("copy") == 7
    assert names.count("first") == names.count("second") == 7
    by_name = {e["name"]: e for found in lanes.values() for e in found}
    assert by_name["copy"]["args"]["case"] == "copy u32 hot n=2^20"
    assert by_name["copy"]["args"]["primitive_bytes"] == 8 << 20
    assert trace["otherData"]["adapter"] == "invented"
    assert trace["otherData"]["host_samples_left_out"] >= 0


def test_timestamps_that_are_no_time_are_not_drawn(tmp_path):
    path = _write(tmp_path / "r.json", [measurement(ticks=(((0, 0), (5, 9)), ((20, 12), (30, 40))), count=2)])
    results_trace(path).write(tmp_path / "t.json")
    _, lanes = load(tmp_path / "t.json")
    assert [e["name"] for e in lanes["GPU queue"]] == ["second", "second"]


def test_the_command(tmp_path):
    from click.testing import CliRunner

    from gridwise_py.cli import main

    source, out = _write(tmp_path / "r.json", [measurement()]), tmp_path / "t.json"
    result = CliRunner().invoke(main, ["trace", str(source), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert load(out)
    before = source.read_bytes()
    for arguments, message in (
        ([str(source), "-o", str(source)], "is one of the files to read"),
        ([str(source), "-o", str(tmp_path / "no" / "t.json")], "does not exist"),
        ([str(tmp_path / "none.json"), "-o", str(out), "--overwrite"], "none.json"),
        ([str(source), "-o", str(out)], "add --overwrite"),
    ):
        result = CliRunner().invoke(main, ["trace", *arguments])
        assert result.exit_code == 2
        assert message in result.output
    assert source.read_bytes() == before
    out.write_text("old")
    assert CliRunner().invoke(main, ["trace", str(source), "-o", str(out), "--overwrite"]).exit_code == 0
    assert load(out)
    none = _write(tmp_path / "n.json", [measurement(kernels=(), ticks=(), whole={})])
    result = CliRunner().invoke(main, ["trace", str(none), "-o", str(out), "--overwrite"])
    assert (result.exit_code, "n.json has no timestamps" in result.output) == (2, True)


def test_no_arrow_ends_before_it_begins():
    """The clocks of host and GPU are aligned to some µs only."""
    for source_ns, target_ns in ((500, 1000), (1400, 1400), (2500, None)):
        trace = ChromeTrace()
        host = trace.lane("host", "host")
        trace.slice(host, "call", source_ns, 10)
        trace.gpu_slices("queue", [GpuSlice("pass", 1000, 2000, {}, flow=(host, source_ns))], 1.0, (0, 0))
        arrows = [event["ts"] * 1e3 for event in trace.to_dict()["traceEvents"] if event["ph"] in "sf"]
        assert arrows == ([] if target_ns is None else [source_ns, target_ns])
