"""Tables for people: whole at every width, right in what they say, one name for a case."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import gridwise_py as gw
from helpers.commands import gridwise
from helpers.results import DEVICE, document, measurement, series, write
from helpers.tables import bench_table, check_whole

WIDTHS = (60, 80, 120)
CALIBRATION = {
    "device": {key: DEVICE[key] for key in ("adapter", "driver", "backend")},
    "copy": [{"moved_bytes": 10**6, "gbytes_per_s": 0.31}, {"moved_bytes": 10**8, "gbytes_per_s": 0.27}],
    "fma_gflops": 41.6,
    "floors_ns": {"empty_pass": 4000.0, "gap_between_passes": 6000.0},
}


def _documents():
    made = document(
        [
            measurement("copy", 1 << 24, "batch", op=None, labels=("copy",)),
            measurement("scan", 1 << 24, "batch", whole={"gpu_span": series("gpu_span", [1.5e7, 1.5887e7, 1.7e7])}),
            measurement("scan", 1_000_003, "latency", datatype="f32", op="multiply", scale_ns=4e8),
            measurement("sort", 1 << 24, "cold", case={"datatype": "u64", "distribution": "entropy_0.544"}),
        ]
    )
    for entry in made["results"]:
        entry["rates"] |= {"share_of_peak": 0.8, "peak_gbytes_per_s": 1000.0}
    return made


@pytest.fixture
def file(tmp_path):
    """A results file with measured ceilings."""
    return write(tmp_path / "r.json", {**_documents(), "device": {**DEVICE, "calibration": CALIBRATION}})


def test_a_table_is_whole_at_every_width(device, monkeypatch, file):
    monkeypatch.setattr(gw, "request_device", lambda adapter: device)
    for words, must in (
        (["roofline", file], ["scan", "2^24", "1,000,003", "0.270", "41.6", "cold"]),
        (["info"], gw.capabilities(device).adapter.split()),
    ):
        wide, *texts = (
            re.sub(r"[\d.]+ ms", "T ms", gridwise(*words, env={"COLUMNS": str(width)}).stdout)
            for width in (400, *WIDTHS)
        )
        for text, width in zip(texts, WIDTHS, strict=True):
            check_whole(text, wide, width, must)
    must = ["scan", "add", "2^24", "1,000,003", "15.9", "ms", "entropy_0.544"]
    for width in WIDTHS:
        check_whole(bench_table(_documents(), width), bench_table(_documents()), width, must)
    # Prose that has no room beside a row is below it.
    point = json.loads(gridwise("roofline", file, "--format", "json").stdout)["points"][0]
    assert point["why"][:40] in gridwise("roofline", file, env={"COLUMNS": "60"}).stdout
    # Where not even names and times fit, each cell has a line.
    narrow = bench_table(_documents(), 16)
    assert "GPU time:" in narrow
    assert max(map(len, narrow.splitlines())) <= 16


def test_a_case_has_one_name_everywhere(file):
    (row, *_) = json.loads(gridwise("compare", file, file, "--format", "json").stdout)["rows"]
    names = [point["name"] for point in json.loads(gridwise("roofline", file, "--format", "json").stdout)["points"]]
    assert row["case"] == "copy u32 n=2^24"
    assert names == ["copy u32", "scan add u32", "scan multiply f32 latency", "sort u64 entropy_0.544 cold"]
    assert all(f"\n{name} " in bench_table(_documents()) for name in names)


# ---- the bench table


def _lines(measurements, **fields):
    return bench_table(document(measurements, **fields), 140).splitlines()


def test_kernels_are_below_their_primitive_and_only_if_there_are_several():
    lines = _lines([measurement("copy", op=None, labels=("copy",)), measurement("scan", labels=("first", "second"))])
    assert [re.match(r" *[a-z]+", line)[0] for line in lines[3:7]] == ["copy", "scan", "  first", "  second"]
    assert not any(line.startswith("  copy") for line in lines)


def test_many_kernels_of_one_label_are_one_row_and_few_are_apart():
    many = measurement("scan", labels=("first", *["step"] * 78))
    lines = _lines([many, measurement("copy", labels=["pass"] * 8)])
    assert [re.match(r" *\w+", line)[0] for line in lines[3:6]] == ["scan", "  first", "  step"]
    medians = [kernel.median_ns for kernel in many.kernels[1:]]
    total_ns = np.median(np.sum([kernel.samples_ns for kernel in many.kernels[1:]], axis=0))
    each = f"{min(medians) / 1e3:.2f} to {max(medians) / 1e3:.2f} µs each"
    assert re.search(rf"step × 78 +{total_ns / 1e3:.1f} µs +{each}", lines[5])
    assert sum(line.startswith("  pass") for line in lines) == 8
    alone = _lines([measurement("scan", labels=["step"] * 9)])
    assert any("step × 9" in line for line in alone)
    assert "step × 78" in many._repr_html_()


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


def _said(made, **options):
    return " ".join(bench_table(made, **options).split())


def test_a_time_of_several_processes_is_called_what_it_is():
    text = _said(_in_processes((1000.0, 1010.0, 1030.0)))
    assert "Times per trial: the geometric mean of the medians of 3 processes, ±" in text
    assert "Processes differ" not in text
    assert "Times per trial: medians, ±" in _said(_in_processes((1000.0,)))


def test_processes_that_differ_are_marked_in_their_row():
    made = _in_processes((1000.0, 4000.0))
    medians = [entry["whole"]["gpu_span_ns"] for entry in made["results"]]
    text = _said(made)
    assert re.search(rf"copy add u32 hot 2\^20 \* {math.sqrt(math.prod(medians)) / 1000:.2f} µs ", text), text
    ends = " to ".join(f"{median / 1000:.2f} µs" for median in medians)
    said = "* Processes differ by more than 20 %, so the time may be that of none of them"
    assert f"{said}: copy add u32 hot n=2^20 ({ends})." in text


def test_other_work_on_the_machine_is_said():
    loads = _in_processes((1000.0, 1010.0))
    for entry, load in zip(loads["results"], (0.54, 0.88), strict=True):
        entry["other_load"] = load
    during = "Other work used 88 % of this machine's processors during 1 of 1 cases: "
    assert f"{during}CPU walls are of a busy machine." in _said(loads)
    loads["device"]["adapter_type"] = "CPU"
    assert f"{during}all times are of a busy machine." in _said(loads)
    assert "Other work" not in _said(_in_processes((1000.0,), other_load=0.05))


def test_shares_of_copy_are_of_equal_bytes(tmp_path):
    """Of the same datatype, else of the first copy of as many bytes; never of the last copy or the fastest."""
    cases = [
        measurement("copy", 1 << 20, labels=("k",), scale_ns=2e5),
        measurement("copy", 1 << 20, datatype="f32", labels=("k",), scale_ns=1e5),
        measurement("copy", 1 << 21, labels=("k",), scale_ns=5e5),
        *(measurement("scan", 1 << 20, datatype=datatype, labels=("k",)) for datatype in ("f32", "i32", "u64", "f16")),
    ]
    made = document(cases)
    rates = [entry["rates"]["gbytes_per_s"] for entry in made["results"]]
    wanted = [1, 1, 1, *(pytest.approx(rates[i] / rates[of]) for i, of in ((3, 1), (4, 0), (5, 2))), None]
    path = write(tmp_path / "a.json", made)
    ranks = json.loads(gridwise("compare", path, path, "--across", "--format", "json").stdout)["ranks"]
    assert [rank["copy_share"] for rank in ranks[::2]] == wanted


def _cut(asked, used, **fields):
    warning = f"batch_trials={asked} was cut to {used}, to keep a submission below 0.1 s (max_submission_gpu_s)"
    return measurement(mode="batch", protocol={"batch_trials": used}, warnings=(warning,), **fields)


def test_trials_are_those_that_were_used_with_the_cases_that_have_fewer():
    full = measurement("copy", mode="batch", op=None, protocol={"batch_trials": 10})
    said = _said([full, _cut(10, 4, datatype="f32"), _cut(10, 1, primitive="sort", op=None)])
    assert "Batch: 1 to 10 trials a sample." in said
    assert "Fewer than --trials 10 a sample" in said
    assert ": 1 in sort u32 n=2^20; 4 in scan add f32 n=2^20." in said
    assert "batch_trials" not in said
    assert "max_submission_gpu_s" not in said
    assert "10 trials a sample" in _said([full])


def test_no_timestamps_is_said_only_of_an_adapter_without_them():
    for fields, period, said in [
        ({"error": "it broke"}, 1.0, False),
        ({}, 1.0, False),
        ({"whole": {"cpu_wall": series("cpu_wall", [1e5] * 5)}}, None, True),
    ]:
        one = measurement(**{"kernels": (), "whole": {}, "ticks": (), **fields})
        text = bench_table(document([one], device={**DEVICE, "tick_period_ns": period}))
        assert ("the adapter has no timestamps" in text) == said
        # Where there is no GPU time at all, the CPU wall is the headline.
        assert ("  GPU time  " in text) != said


def test_warnings_have_their_cases_and_are_in_the_words_of_the_command_line():
    warned = [measurement(n=n, warnings=(f"not stationary after 1.{n % 7} s",)) for n in (1 << 12, 1 << 10)]
    short = measurement("copy", op=None, warnings=("copy: shorter than 100 steps (32 ns each); use mode 'batch'",))
    text = _said([*warned, short])
    names = "scan add u32 hot n=2^12, scan add u32 hot n=2^10"
    assert f"warning: {names}: not stationary after 1.1 s (the figures of scan add u32 hot n=2^12)" in text
    assert "warning: copy u32 hot n=2^20: copy: shorter than 100 steps (32 ns each); use --mode batch" in text


def test_quiet_leaves_what_failed():
    broken = measurement("scan", error="it broke", kernels=(), whole={}, ticks=(), warnings=("something",))
    made = document([measurement("copy", op=None), broken], device={**DEVICE, "adapter_type": "CPU"})
    text = bench_table(made, quiet=True)
    assert "it broke" in text
    for word in ("medians", "software", "warning"):
        assert word not in text
        assert word in bench_table(made) or word == "warning"


@pytest.mark.parametrize(
    ("share", "adapter_type", "is_shown", "said"),
    [
        (0.8, "DiscreteGPU", True, ""),
        (None, "DiscreteGPU", False, ""),
        (1.04, "DiscreteGPU", True, ""),  # within what two measurements differ by
        (2.33, "DiscreteGPU", False, "Of peak is left out: 1 of 4 cases were faster"),
        (0.8, "CPU", False, "on a CPU"),
    ],
)
def test_a_peak_that_cases_exceed_is_not_shown(share, adapter_type, is_shown, said):
    made = _documents()
    made["device"]["adapter_type"] = adapter_type
    for entry in made["results"] if share is None else made["results"][:1]:
        entry["rates"]["share_of_peak"] = share
    text = _said(made)
    assert (" of peak " in text) == is_shown
    assert said in text
    assert "233 %" not in text
