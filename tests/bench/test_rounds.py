"""Rounds of a case, pooled for tables and pictures; shares of what the device can do."""

import io
import re

import pytest
from rich.console import Console

from gridwise_py.bench.calibrate.calibration import Calibration
from gridwise_py.bench.calibrate.probes import TickCheck
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report.table import results_table
from gridwise_py.bench.results.dataframe import records_of
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.results.schema import check_document
from gridwise_py.bench.results.shares import calibrated, with_shares
from helpers.results import document, loaded, measurement, series

# ---- rounds


def _round(values, **fields):
    whole = {"gpu_span": series("gpu_span", values)}
    return measurement(kernels=(series("k", values),), whole=whole, ticks=(), **fields)


def _rounds(*rounds, **fields):
    made = document([_round(values, **fields) for values in rounds])
    for number, entry in enumerate(made["results"]):
        entry |= {"round": number, "position": 0}
        entry["rates"] |= {"peak_gbytes_per_s": 100.0, "share_of_peak": entry["rates"]["gbytes_per_s"] / 100}
    return made


def test_samples_of_all_rounds_are_one_series():
    (entry,) = pooled(loaded(_rounds([100.0, 101.0, 102.0], [110.0, 111.0, 112.0, 113.0]))).results
    assert entry.kernels[0].samples_ns == (100, 101, 102, 110, 111, 112, 113)
    assert entry.kernels[0].gpu_ns == entry.whole.gpu_span_ns == 110
    assert entry.kernels[0].invalid == {"zero": 2}
    assert entry.rates.gbytes_per_s == pytest.approx(8 * (1 << 20) / 110)
    assert entry.rates.gitems_per_s == pytest.approx((1 << 20) / 110)
    assert entry.rates.share_of_peak == pytest.approx(entry.rates.gbytes_per_s / 100)
    assert entry.rates.peak_gbytes_per_s == 100
    check_document(pooled(loaded(_rounds([1.0, 2.0], [1.0]))).to_json(), "pooled")


def test_a_round_that_failed_or_was_wrong_is_not_forgotten():
    made = _rounds([100.0], [102.0], [104.0])
    made["results"][1] |= {"correct": False, "mismatch": "item 3"}
    made["results"][2] |= {"correct": False, "error": "DeviceError: lost", "clock_moved": True}
    (entry,) = pooled(loaded(made)).results
    assert (entry.correct, entry.mismatch) == (False, "item 3")
    assert entry.kernels[0].samples_ns == (100, 102)
    for entry in made["results"]:
        entry |= {"correct": False, "error": "DeviceError: lost"}
    (entry,) = pooled(loaded(made)).results
    assert entry.error == "DeviceError: lost"


def test_no_time_is_surer_than_half_a_step_of_the_clock():
    """All samples are alike, so their interval is a point. A batch of 10 spreads a step over its dispatches."""
    for step_ns, mode, uncertainty in [
        (32.0, Mode.HOT, "±<0.1 %"),
        (1000.0, Mode.HOT, "±0.3 %"),
        (1000.0, Mode.BATCH, "±<0.1 %"),
        (None, Mode.HOT, "±<0.1 %"),
    ]:
        made = document([_round([187_234.0] * 20, mode=mode, protocol={"batch_trials": 10})])
        made["device"]["tick_step_ns"] = step_ns
        console = Console(width=140, record=True, file=io.StringIO())
        console.print(results_table(loaded(made)))
        (row,) = [line for line in console.export_text().splitlines() if line.startswith("scan ")]
        assert re.search(rf" 187 µs +{re.escape(uncertainty)} ", row), row


# ---- shares


def _points(*speeds):
    return tuple(
        {"array_bytes": 1 << (16 + 4 * i), "moved_bytes": 2 << (16 + 4 * i), "gbytes_per_s": float(speed)}
        for i, speed in enumerate(speeds)
    )


CALIBRATION = Calibration(
    device={}, tick_period_ns=1.0, tick_step_ns=1.0, tick_check=TickCheck(60e6, 60e6),
    floors_ns={"empty_pass": 4300.0, "gap_between_passes": None}, copy=_points(100, 900, 400),
    triad=_points(150, 800, 420), fma_gflops=1000.0,
)  # fmt: skip


def test_the_peak_is_the_faster_of_copy_and_triad_at_that_size():
    for array_bytes, peak in [
        (1 << 16, 150),
        (1, 150),
        (3 << 17, 900),
        (1 << 20, 900),
        (1 << 24, 420),
        (1 << 40, 420),
        (None, 420),
        (0, 150),
    ]:
        assert CALIBRATION.peak_gbytes_per_s(array_bytes) == peak


def test_shares_of_a_result():
    for mode, datatype, peak in [(Mode.HOT, "u32", 900), (Mode.BATCH, "f32", 900), (Mode.COLD, "f32", 420)]:
        entry = result_of(measurement(n=1 << 18, mode=mode, datatype=datatype))
        rates = with_shares(entry, CALIBRATION).rates
        assert rates.peak_gbytes_per_s == peak
        assert rates.share_of_peak == pytest.approx(entry.rates.gbytes_per_s / peak)
        if datatype == "u32":
            assert rates.share_of_fma is None
        else:
            assert rates.share_of_fma == pytest.approx((1 << 18) / entry.whole.gpu_span_ns / 1000)


def test_no_share_of_what_is_not_known():
    failed = measurement(error="x", kernels=(), whole={}, ticks=(), work={})
    for one, calibration in ((measurement(), None), (failed, CALIBRATION)):
        rates = with_shares(result_of(one), calibration).rates
        assert (rates.peak_gbytes_per_s, rates.share_of_peak, rates.share_of_fma) == (None, None, None)


def test_what_the_file_says_of_the_device():
    device = loaded(document([])).device
    found = calibrated(device, CALIBRATION)
    assert found.floors == {"empty_pass_ns": 4300.0, "gap_between_passes_ns": None}
    assert found.calibration.tick_check["ok"] is True
    assert found.calibration.fma_gflops == 1000
    assert [speed.gbytes_per_s for speed in found.calibration.copy] == [100, 900, 400]
    assert not found.calibration.unknown
    without = calibrated(device, None)
    assert (without.floors, without.calibration) == (None, None)


def test_two_rounds_are_told_apart_by_student_t():
    """Of one degree of freedom: twelve times the standard error, as far as there are samples."""
    rounds = [[100.0] * 20 + [50.0], [101.0] * 20 + [150.0]]
    (entry,) = pooled(loaded(_rounds(*rounds))).results
    summary = entry.gpu_span.summary
    assert summary.ci_high_ns - summary.median_ns == pytest.approx(12.706 * 0.5, abs=1e-3)
    assert summary.median_ns - summary.ci_low_ns == pytest.approx(12.706 * 0.5, abs=1e-3)


def test_one_name_is_one_statistic():
    """The median is of all samples, as the quartiles are; the time that tables show has its own name."""
    made = _rounds([100.0] * 6, [100.0] * 6, [400.0] * 6)
    for process, entry in enumerate(made["results"]):
        entry["process"] = process
    (row,) = (row for row in records_of(pooled(loaded(made))) if (row["part"], row["series"]) == ("whole", "gpu_span"))
    assert (row["q1_ns"], row["median_ns"], row["q3_ns"]) == (100, 100, 400)
    assert row["time_ns"] == pytest.approx(100 * 4 ** (1 / 3))
    assert row["ci_low_ns"] < row["time_ns"] < row["ci_high_ns"]


def test_what_no_round_pools_is_that_of_the_first_or_of_the_first_that_has_it():
    made = _rounds([100.0, 101.0], [110.0, 111.0], [120.0, 121.0])
    for number, (entry, cold_start_ns) in enumerate(zip(made["results"], (None, 5000.0, 7000.0), strict=True)):
        entry |= {"position": 3 - number, "cold_start_ns": cold_start_ns, "clock_moved": number == 1}
        entry["canary_ns"], entry["warnings"] = [float(number)], [f"warning {number % 2}"]
        entry["rates"]["share_of_fma"] = None
    (entry,) = pooled(loaded(made)).results
    assert (entry.position, entry.cold_start_ns, entry.clock_moved) == (3, 5000.0, True)
    assert entry.canary_ns == (0, 1, 2)
    assert entry.warnings == ("warning 0", "warning 1")
    assert entry.rates.share_of_fma is None
    for entry in made["results"]:
        entry["whole"]["gpu_span_ns"] = entry["whole"]["cpu_wall_ns"] = None
    (entry,) = pooled(loaded(made)).results
    assert entry.rates.to_json() == made["results"][0]["rates"], "nothing to scale them by"
