"""Tables for people: whole at every width, right in what they say, one name for a case."""

from __future__ import annotations

import importlib
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.analysis.roofline import ceilings_of, points
from gridwise_py.bench.calibrate.calibration import Calibration
from gridwise_py.bench.calibrate.probes import TickCheck
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.names import case_name
from gridwise_py.bench.report.roofline import ceilings_text, roofline_table
from gridwise_py.bench.report.table import results_table
from gridwise_py.bench.report.text_table import TextTable
from gridwise_py.bench.results.model import CalibrationData
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.results.shares import copy_shares, peak_problem
from gridwise_py.bench.sweep.suite import Job
from gridwise_py.bench.sweep.tune import Check
from gridwise_py.cli import main
from gridwise_py.cli.output import showing_progress
from gridwise_py.display.quantities import format_each, format_time
from gridwise_py.display.table import Column
from gridwise_py.storage.json_files import write_json
from helpers.results import DEVICE, document, loaded, measurement, series

WIDTHS = (60, 80, 120)
CALIBRATION = {
    "device": {key: DEVICE[key] for key in ("adapter", "driver", "backend")},
    "copy": [{"moved_bytes": 10**6, "gbytes_per_s": 0.31}, {"moved_bytes": 10**8, "gbytes_per_s": 0.27}],
    "fma_gflops": 41.6,
    "floors_ns": {"empty_pass": 4000.0, "gap_between_passes": 6000.0},
}
MEASURED = CalibrationData.from_json(CALIBRATION)

ENTROPY = {"datatype": "u64", "op": None, "distribution": "entropy_0.544"}
LONG_KEY = {"adapter": "a GPU with quite a long name, revision 2", "driver": "580.159.04"}


def _text(renderable, width=400):
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(renderable)
    return console.file.getvalue()


def _documents():
    made = document(
        [
            measurement("copy", 1 << 24, Mode.BATCH, op=None, labels=("copy",)),
            measurement("scan", 1 << 24, Mode.BATCH, whole={"gpu_span": series("gpu_span", [1.5e7, 1.5887e7, 1.7e7])}),
            measurement("scan", 1_000_003, Mode.LATENCY, datatype="f32", op="multiply", scale_ns=4e8),
            measurement("sort", 1 << 24, Mode.COLD, case=ENTROPY),
        ]
    )
    for entry in made["results"]:
        entry["rates"] |= {"share_of_peak": 0.8, "peak_gbytes_per_s": 1000.0}
    return made


def _bench():
    return results_table(loaded(_documents())), ["scan", "add", "2^24", "1,000,003", "15.9", "ms", "entropy_0.544"]


def _roofline():
    made = loaded(_documents())
    ceilings = ceilings_of(made, MEASURED)
    must = ["scan", "2^24", "1,000,003", "0.270", "41.6", "cold"]
    return roofline_table(made, ceilings, points(made, ceilings)), must


def test_a_table_is_whole_at_every_width():
    for make in [_bench, _roofline]:
        for width in WIDTHS:
            table, must = make()
            _check_whole(_text(table, width), _text(table), width, must)


def _check_whole(text, wide, width, must):
    """Hold a text against the same at a width that has room for all."""
    for line in text.splitlines():
        assert len(line) <= width, line
        assert "…" not in line
    left_out = re.compile(r"Left out, as \d+ columns are too few: [^.]*\.")
    whole = set(wide.replace("─", "").split())
    words = left_out.sub("", re.sub(r"\s+", " ", text)).replace("─", "").split()
    assert set(words) <= whole, set(words) - whole
    assert set(must) <= set(words), set(must) - set(words)


def _calibrate():
    found = Calibration(
        LONG_KEY, 1.0, 32.0, TickCheck(5.9e7, 6e7), {"empty_pass": 4321.0}, {"submit": 12345.0}, "device_poll",
        ({"array_bytes": 1 << 20, "moved_bytes": 1 << 21, "gbytes_per_s": 0.312},), (), None, 41.6,
    )  # fmt: skip
    command = importlib.import_module("gridwise_py.cli.calibrate")
    return lambda: command._show(command.table_console(120), found), ["4.32", "µs", "0.312", "41.6"]


def _tune():
    shape = {"workgroup_size": 256, "vecs": 4, "max_blocks": 528}
    trial = {"shape": shape, "time_ns": 15_887_000.0, "verdict": "default"}
    choice = {"kernel": "scan_lookback", "above": 1 << 18, "up_to": 1 << 20, "n": 1 << 20, "trials": [trial],
              "winner": shape, "changed": True, "ratio": 0.9713}  # fmt: skip
    kept = {"date": "2026-11-27", "choices": [choice]}
    must = ["scan_lookback", "2^20", "15.9", "97.1"]
    command = importlib.import_module("gridwise_py.cli.tune")
    return lambda: command._show(LONG_KEY, kept), must


def _tune_check():
    shape = {"workgroup_size": 256, "vecs": 4, "max_blocks": 528}
    check = Check("segmented_reduce_medium", 1 << 20, shape, shape | {"vecs": 8}, 0.9713, 0.9613, 0.9823, "faster")
    command = importlib.import_module("gridwise_py.cli.tune")
    return lambda: command._show_checks(LONG_KEY, [check]), ["segmented_reduce_medium", "2^20", "97.1", "faster"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("make", [_calibrate, _tune, _tune_check], ids=lambda make: make.__name__)
def test_the_tables_of_a_command_are_whole_at_every_width(monkeypatch, capsys, make, width):
    show, must = make()
    texts = []
    for columns in (width, 400):
        monkeypatch.setenv("COLUMNS", str(columns))
        show()
        texts.append(capsys.readouterr().out)
    _check_whole(*texts, width, must)


def test_info_is_whole_at_every_width(device, monkeypatch):
    monkeypatch.setattr(gw, "request_device", lambda adapter: device)
    wide, *texts = (
        re.sub(r"[\d.]+ ms", "T ms", CliRunner(env={"COLUMNS": str(w)}).invoke(main, ["info"]).stdout)
        for w in (400, *WIDTHS)
    )
    for text, width in zip(texts, WIDTHS, strict=True):
        _check_whole(text, wide, width, gw.capabilities(device).adapter.split())


def test_columns_go_by_priority_and_prose_goes_below():
    table = TextTable([Column("case"), Column("a", True, 2), Column("b", True, 1), Column("why", prose=True)])
    table.add_row("scan add u32", "111", "222", "because of this and of that and of many other things besides")
    assert next(line.split() for line in _text(table, 120).splitlines()) == ["case", "a", "b", "why"]
    assert len(_text(table, 120).splitlines()) == 3
    lines = _text(table, 22).splitlines()
    assert lines[0].split() == ["case", "a", "b"]
    assert lines[1] == "  why"
    assert all(line.startswith("  ") for line in lines[4:])
    lines = _text(table, 18).splitlines()
    assert lines[0].split() == ["case", "b"]
    assert " ".join(_text(table, 18).split()).endswith("Left out, as 18 columns are too few: a.")
    # Below that, names are broken between words, and at last each cell has a line.
    assert "scan add\nu32" in _text(table, 8)
    short = TextTable([Column("case"), Column("time")])
    short.add_row("reduce", "15.9 ms")
    assert _text(short, 7).split() == ["reduce", "time:", "15.9", "ms"]


def test_a_row_must_fit_the_columns():
    with pytest.raises(ValueError, match="a row of 1 cells does not fit 2 columns"):
        TextTable([Column("a"), Column("b")]).add_row("x")


# ---- names


def test_a_case_has_one_name_everywhere():
    case = Case.build("scan", 1 << 18, "u32", "add")
    job = Job(case, Mode.HOT, 0)
    made = loaded(document([measurement("scan", 1 << 18)]))
    (entry,) = made.results
    assert str(job) == entry.name_with_n == "scan add u32 hot n=2^18"
    assert str(case) == "scan add u32 n=2^18"
    (point,) = points(made, ceilings_of(made, MEASURED))
    assert point.name == entry.name == "scan add u32 hot"
    assert "\nscan add u32 hot " in _text(results_table(made))
    assert case_name("sort", {"datatype": "f32", "op": None, "distribution": "zipf"}, "cold") == "sort f32 zipf cold"
    assert case_name("sort", {"datatype": "f32", "distribution": "uniform"}, "batch", 1000) == "sort f32 n=1,000"


# ---- the bench table


def _lines(measurements, width=140, **fields):
    return _text(results_table(loaded(document(measurements, **fields))), width).splitlines()


def test_kernels_are_below_their_primitive_and_only_if_there_are_several():
    lines = _lines([measurement("copy", op=None, labels=("copy",)), measurement("scan", labels=("first", "second"))])
    assert [re.match(r" *[a-z]+", line)[0] for line in lines[3:7]] == ["copy", "scan", "  first", "  second"]
    assert not any(line.startswith("  copy") for line in lines)


def test_many_kernels_of_one_label_are_one_row_and_few_are_apart():
    many = measurement("scan", labels=("first", *["step"] * 78))
    lines = _lines([many, measurement("copy", labels=["pass"] * 8)])
    assert [re.match(r" *\w+", line)[0] for line in lines[3:6]] == ["scan", "  first", "  step"]
    medians = [kernel.median_ns for kernel in many.kernels[1:]]
    total = format_time(np.median(np.sum([kernel.samples_ns for kernel in many.kernels[1:]], axis=0)))
    assert re.search(rf"step × 78 +{re.escape(total)} +{format_each((min(medians), max(medians)))}", lines[5])
    assert sum(line.startswith("  pass") for line in lines) == 8
    alone = _lines([measurement("scan", labels=["step"] * 9)])
    assert any("step × 9" in line for line in alone)
    assert "step × 78" in many._repr_html_()


def test_times_of_each_share_a_unit():
    assert format_each((97e3, 225e3)) == "97.0 to 225 µs each"
    assert format_each((970.0, 2.25e6)) == "970 ns to 2.25 ms each"


def test_rounds_are_together_before_they_are_pooled():
    made = loaded(document([measurement("scan", labels=["step"] * 78)] * 2))
    rounds = tuple(replace(result, round=k, process=k) for k, result in enumerate(made.results))
    (result,) = pooled(replace(made, results=rounds)).results
    (kernel,) = result.kernels
    sums = [np.sum([one.samples_ns for one in each.kernels], axis=0) for each in rounds]
    np.testing.assert_allclose(kernel.samples_ns, np.concatenate(sums))
    assert kernel.each_ns == (min(k.median_ns for k in rounds[0].kernels), max(k.median_ns for k in rounds[0].kernels))


def test_empty_lines_part_sweeps_only():
    one_smaller = [measurement("copy", 1 << 12, labels=("k",)), measurement("sort", 1 << 10, labels=("k",))]
    assert "" not in _lines(one_smaller)[:5]
    assert "" in _lines([*one_smaller, measurement("copy", 1 << 14, labels=("k",))])[:6]


def test_the_sizes_of_a_case_are_below_each_other():
    cases = [measurement(name, n, labels=("k",)) for n in (1 << 12, 1 << 10) for name in ("copy", "scan")]
    rows = [line.split() for line in _lines(cases) if line.startswith(("copy", "scan"))]
    found = [(row[0], word) for row in rows for word in row if word.startswith("2^")]
    assert found == [("copy", "2^10"), ("copy", "2^12"), ("scan", "2^10"), ("scan", "2^12")]


def test_times_have_three_digits_however_uncertain_they_are():
    samples = [11e6, 12e6, 13e6, 15.887e6, 16e6, 20e6, 21e6]
    whole = {"gpu_span": series("gpu_span", samples), "cpu_wall": series("cpu_wall", [2.0940e9] * 5)}
    (row,) = [line for line in _lines([measurement(whole=whole, kernels=())]) if line.startswith("scan")]
    assert re.search(r" 15\.9 ms +±\d\d % +2\.09 s ", row), row


def test_few_samples_are_counted_where_an_interval_would_stand():
    for count, shown in [(1, "1 sample"), (5, "5 samples")]:
        whole = {"gpu_span": series("gpu_span", [1.37e9 + i for i in range(count)])}
        (row,) = [line for line in _lines([measurement(whole=whole, kernels=())]) if line.startswith("scan")]
        assert re.search(rf" 1\.37 s +{shown} ", row), row
        assert "±" not in row


def _in_processes(scales, **fields):
    made = document([measurement("copy", labels=("copy",), scale_ns=scale, count=20) for scale in scales])
    for process, entry in enumerate(made["results"]):
        entry |= {"process": process, "position": 0, **fields}
    return made


def test_a_time_of_several_processes_is_called_what_it_is():
    made = loaded(_in_processes((1000.0, 1010.0, 1030.0)))
    text = " ".join(_text(results_table(made)).split())
    assert "Times per trial: the geometric mean of the medians of 3 processes, ±" in text
    assert "Processes differ" not in text
    alone = " ".join(_text(results_table(loaded(_in_processes((1000.0,))))).split())
    assert "Times per trial: medians, ±" in alone


def test_processes_that_differ_are_marked_in_their_row():
    made = loaded(_in_processes((1000.0, 4000.0)))
    medians = [result.time_ns for result in made.results]
    text = " ".join(_text(results_table(made)).split())
    assert re.search(rf"copy add u32 hot 2\^20 \* {format_time(math.sqrt(medians[0] * medians[1]))} ", text), text
    ends = " to ".join(map(format_time, medians))
    said = "* Processes differ by more than 20 %, so the time may be that of none of them"
    assert f"{said}: copy add u32 hot n=2^20 ({ends})." in text


def test_other_work_on_the_machine_is_said():
    loads = _in_processes((1000.0, 1010.0))
    for entry, load in zip(loads["results"], (0.54, 0.88), strict=True):
        entry["other_load"] = load
    text = " ".join(_text(results_table(loaded(loads))).split())
    assert (
        "Other work used 88 % of this machine's processors during 1 of 1 cases: CPU walls are of a busy machine."
        in text
    )
    loads["device"]["adapter_type"] = "CPU"
    assert "1 of 1 cases: all times are of a busy machine." in " ".join(_text(results_table(loaded(loads))).split())
    assert "Other work" not in _text(results_table(loaded(_in_processes((1000.0,), other_load=0.05))))


def test_shares_of_copy_are_of_equal_bytes():
    """Of the same datatype, else of the first copy of as many bytes; never of the last copy or the fastest."""
    cases = [
        measurement("copy", 1 << 20, labels=("k",), scale_ns=2e5),
        measurement("copy", 1 << 20, datatype="f32", labels=("k",), scale_ns=1e5),
        measurement("copy", 1 << 21, labels=("k",), scale_ns=5e5),
        *(measurement("scan", 1 << 20, datatype=datatype, labels=("k",)) for datatype in ("f32", "i32", "u64", "f16")),
    ]
    made = loaded(document(cases))
    shares = copy_shares(made)
    rates = [result.rates.gbytes_per_s for result in made.results]
    found = [shares[result.key] for result in made.results]
    assert found == [1, 1, 1, *(pytest.approx(rates[i] / rates[of]) for i, of in ((3, 1), (4, 0), (5, 2))), None]
    ranks = compare(made, made, across=True).ranks
    assert [rank.quantities["copy_share"] for rank in ranks[::2]] == found


def test_small_rates_are_no_zeros():
    (row,) = [line for line in _lines([measurement(n=1000, scale_ns=5e8, labels=("k",))]) if line.startswith("scan")]
    rates = re.findall(r"0\.\d+", row)
    assert rates
    assert all(float(rate) > 0 for rate in rates)


def _cut(asked, used, **fields):
    warning = f"batch_trials={asked} was cut to {used}, to keep a submission below 0.1 s (max_submission_gpu_s)"
    return measurement(mode=Mode.BATCH, protocol={"batch_trials": used}, warnings=(warning,), **fields)


def test_trials_are_those_that_were_used_with_the_cases_that_have_fewer():
    full = measurement("copy", mode=Mode.BATCH, op=None, protocol={"batch_trials": 10})
    text = "\n".join(_lines([full, _cut(10, 4, datatype="f32"), _cut(10, 1, primitive="sort", op=None)]))
    said = " ".join(text.split())
    assert "Batch: 1 to 10 trials a sample." in said
    assert "Fewer than --trials 10 a sample" in said
    assert ": 1 in sort u32 n=2^20; 4 in scan add f32 n=2^20." in said
    assert "batch_trials" not in said
    assert "max_submission_gpu_s" not in said
    assert "10 trials a sample" in "\n".join(_lines([full]))


def test_nothing_is_said_of_batch_where_no_row_is_of_it():
    text = "\n".join(_lines([measurement(mode=Mode.HOT), measurement(mode=Mode.COLD)]))
    assert "atch" not in text
    failed = measurement("copy", mode=Mode.BATCH, error="x", kernels=(), whole={}, ticks=())
    assert " a sample" not in "\n".join(_lines([failed]))


def test_no_timestamps_is_said_only_of_an_adapter_without_them():
    for fields, period, said in [
        ({"error": "it broke"}, 1.0, False),
        ({}, 1.0, False),
        ({"whole": {"cpu_wall": series("cpu_wall", [1e5] * 5)}}, None, True),
    ]:
        one = measurement(**{"kernels": (), "whole": {}, "ticks": (), **fields})
        text = "\n".join(_lines([one], device={**DEVICE, "tick_period_ns": period}))
        assert ("the adapter has no timestamps" in text) == said
        # Where there is no GPU time at all, the CPU wall is the headline.
        assert ("  GPU time  " in text) != said


def test_warnings_have_their_cases_and_are_in_the_words_of_the_command_line():
    warned = [measurement(n=n, warnings=(f"not stationary after 1.{n % 7} s",)) for n in (1 << 12, 1 << 10)]
    short = measurement("copy", op=None, warnings=("copy: shorter than 100 steps (32 ns each); use mode 'batch'",))
    text = " ".join("\n".join(_lines([*warned, short])).split())
    names = "scan add u32 hot n=2^12, scan add u32 hot n=2^10"
    assert f"warning: {names}: not stationary after 1.1 s (the figures of scan add u32 hot n=2^12)" in text
    assert "warning: copy u32 hot n=2^20: copy: shorter than 100 steps (32 ns each); use --mode batch" in text


def test_one_sample_has_no_uncertainty():
    whole = {"gpu_span": series("gpu_span", [1e6])}
    text = "\n".join(_lines([measurement(whole=whole, kernels=())]))
    assert "Fewer than 6 samples, so there is no interval" in text
    assert all("±" not in line for line in text.splitlines() if line.startswith("scan"))


def test_quiet_leaves_what_failed():
    broken = measurement("scan", error="it broke", kernels=(), whole={}, ticks=(), warnings=("something",))
    made = document([measurement("copy", op=None), broken], device={**DEVICE, "adapter_type": "CPU"})
    text = _text(results_table(loaded(made), quiet=True), 140)
    assert "it broke" in text
    for word in ("medians", "software", "warning"):
        assert word not in text
        assert word in _text(results_table(loaded(made)), 140) or word == "warning"


def test_a_peak_that_cases_exceed_is_not_shown():
    made = _documents()
    assert peak_problem(pooled(loaded(made))) is None
    assert "of peak" in _text(results_table(loaded(made)))
    without = _documents()
    for entry in without["results"]:
        entry["rates"]["share_of_peak"] = None
    assert "of peak" not in _text(results_table(loaded(without))).lower(), "nothing is shown of what was not measured"
    made["results"][0]["rates"]["share_of_peak"] = 1.04
    assert peak_problem(pooled(loaded(made))) is None, "within what two measurements differ by"
    made["results"][0]["rates"]["share_of_peak"] = 2.33
    assert peak_problem(pooled(loaded(made))).startswith("Of peak is left out: 1 of 4 cases were faster")
    text = _text(results_table(loaded(made)))
    assert "of peak" not in text
    assert "233 %" not in text
    assert "1 of 4 cases were faster" in text
    made = _documents()
    made["device"]["adapter_type"] = "CPU"
    assert "on a CPU" in peak_problem(pooled(loaded(made)))


# ---- the roofline


def test_ceilings_are_never_rounded_to_nothing():
    made = loaded(document([]))
    text = ceilings_text(made, ceilings_of(made, MEASURED))
    assert "0.270 GB/s of copy, 41.6 GFLOP/s of f32 FMA" in text


def test_the_heading_of_the_roofline_is_whole_on_a_terminal(tmp_path):
    path, calibration = tmp_path / "r.json", tmp_path / "c.json"
    write_json(path, _documents())
    calibration.write_text(json.dumps(CALIBRATION))
    words = ["roofline", str(path), "--calibration", str(calibration)]
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(main, words)
    assert shown.exit_code == 0, shown.output
    assert "measured ceilings: 0.270 GB/s of copy, 41.6 GFLOP/s of f32 FMA" in " ".join(shown.stdout.split())


# ---- a line that renews itself


def test_a_step_never_takes_a_second_line(monkeypatch):
    """What is broken into two lines leaves the second behind in some terminals."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, legacy_windows=False)
    monkeypatch.setattr("gridwise_py.bench.report.console.make_console", lambda **options: console)
    with showing_progress() as progress:
        progress("vector add with upload and download, without warm-up, 1 of 3: perf_counter + wait")
    assert "vector add with upload" in out.getvalue()
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert "wait" not in drawn
    assert max(len(line) for line in re.split(r"[\r\n]", drawn)) <= 40
