"""The roofline: predictions from measured ceilings, and a likely reason for each gap."""

import json
import lzma
from dataclasses import replace

import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.bench.analysis.roofline import ceilings_of, points, read_calibration
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report.picture import write_picture
from gridwise_py.bench.report.roofline import ceilings_text, roofline_picture
from gridwise_py.bench.results.model import CalibrationData, Speed
from gridwise_py.bench.results.reader import parse
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.stats.statistics import summarize
from gridwise_py.cli import main
from gridwise_py.storage.json_files import write_json
from helpers.paths import RESULTS
from helpers.results import DEVICE, document, loaded, measurement

KEY = {key: DEVICE[key] for key in ("adapter", "driver", "backend")}
CALIBRATION = {
    "device": KEY,
    "copy": [{"moved_bytes": 10**6, "gbytes_per_s": 100.0}, {"moved_bytes": 10**8, "gbytes_per_s": 1000.0}],
    "fma_gflops": 20_000.0,
    "floors_ns": {"empty_pass": 4000.0, "gap_between_passes": 6000.0},
}
MEASURED = CalibrationData.from_json(CALIBRATION)


def _one(ns, *, labels=("k",), moved=10**8, flops=0, **fields):
    """A case that took `ns`, all of its kernels alike."""
    work = {"items": 10, "read_bytes": moved // 2, "write_bytes": moved - moved // 2, "flops": flops}
    # measurement() makes times of up to 5 % more than asked for; the median is put right here.
    doc = document([measurement(labels=labels, work=work, scale_ns=ns / len(labels), **fields)])
    entry = doc["results"][0]
    entry["whole"]["gpu_span_ns"] = float(ns)
    for kernel in entry["kernels"]:
        kernel["gpu_ns"] = ns / len(labels)
    doc = loaded(doc)
    (point,) = points(doc, ceilings_of(doc, MEASURED))
    return point


def test_memory_and_arithmetic():
    point = _one(100_000, flops=10**6)
    assert (point.predicted_ns, point.bound, point.share) == (pytest.approx(10**8 / 1000), "memory", pytest.approx(1))
    assert point.intensity == 0.01
    assert point.gflops == 10**6 / 100_000
    point = _one(100_000, flops=4 * 10**9)
    assert (point.predicted_ns, point.bound) == (pytest.approx(200_000), "arithmetic")
    assert ceilings_of(loaded(document([])), MEASURED).ridge == 20


def test_the_ceiling_of_arithmetic_is_that_of_the_type_that_a_case_computes_in():
    peaks = {"f16": 40_000.0, "i32": 10_000.0, "f64": 500.0, "atomic_u64": 3.0}
    made = loaded(document([]))
    by_type = ceilings_of(made, CalibrationData.from_json({**CALIBRATION, "peaks_gops": peaks}))
    earlier = ceilings_of(made, MEASURED)
    assert earlier.peaks_gops == {}
    assert CalibrationData.from_json(CALIBRATION).to_json()["fma_gflops"] == 20_000
    flops = 4 * 10**9
    for primitive, datatype, peak, gops in (
        ("reduce", "f32", "f32", 20_000), ("reduce", "u32", "i32", 10_000), ("reduce", "i8", "i32", 10_000),
        ("reduce", "u64", "i32", 10_000), ("reduce", "f64", "f64", 500), ("reduce", None, "f32", 20_000),
        ("matmul", "f16", "f32", 20_000),  # computes in f32
        ("my_own_kernel", "f16", "f16", 40_000), ("my_own_kernel", "complex64", "f32", 20_000),
    ):  # fmt: skip
        work = {"items": 10, "read_bytes": 1000, "write_bytes": 1000, "flops": flops}
        doc = document([measurement(work=work)])
        doc["results"][0] |= {"primitive": primitive, "datatype": datatype}
        doc = loaded(doc)
        (point,) = points(doc, by_type)
        assert (point.peak, point.bound, point.predicted_ns) == (peak, "arithmetic", pytest.approx(flops / gops))
        assert by_type.ridge_of(peak) == gops / 1000
        (point,) = points(doc, earlier)
        assert (point.peak, point.predicted_ns) == ("f32", pytest.approx(flops / 20_000))
    assert "FMA, 40000 of f16, 10000 of i32, 500 of f64" in ceilings_text(made, by_type)


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_picture_has_a_roof_for_each_type():
    work = {"items": 10, "read_bytes": 1000, "write_bytes": 1000, "flops": 10**6}
    doc = document([measurement(work=work, n=8), measurement(work=work, n=16)])
    doc["results"][0]["datatype"], doc["results"][1]["datatype"] = "f32", "f64"
    doc = loaded(doc)
    found = ceilings_of(doc, CalibrationData.from_json({**CALIBRATION, "peaks_gops": {"f64": 500.0}}))
    spec = json.dumps(roofline_picture(doc, found, points(doc, found)))
    for gops in (500.0, 20_000.0):  # the flat parts
        assert f'"gflops": {gops}' in spec


def test_the_floors_of_a_results_file_count_as_those_of_a_calibration():
    """The file's names have units: empty_pass_ns."""
    own = {name: value for name, value in CALIBRATION.items() if name in ("copy", "fma_gflops")}
    floors = {"empty_pass_ns": 4000.0, "gap_between_passes_ns": 6000.0, "submission_ns": None}
    found = ceilings_of(loaded(document([], device={**DEVICE, "calibration": own, "floors": floors})))
    given = ceilings_of(loaded(document([])), MEASURED)
    assert {name: found.floors_ns[name] for name in given.floors_ns} == given.floors_ns


def test_small_copies_are_slower_and_cold_ones_are_memory():
    ceilings = ceilings_of(loaded(document([])), MEASURED)
    assert ceilings.copy_gbytes_per_s(10**7) == pytest.approx(10**2.5)
    assert ceilings.copy_gbytes_per_s(10) == pytest.approx(100)
    assert ceilings.copy_gbytes_per_s(10**12) == pytest.approx(1000)
    assert _one(50_000, moved=10**6).predicted_ns == pytest.approx(10_000)
    assert _one(50_000, moved=10**6, mode=Mode.COLD).predicted_ns == pytest.approx(1000)


def test_the_likely_reason():
    for ns, fields, why in [
        (90_000, {}, "faster than the copy"),
        (105_000, {}, "at the roof"),
        (200_000, {"clock_moved": True}, "the clock moved"),
        (107_500, {"moved": 99_000_000}, "at the roof"),
        (14_000, {"moved": 10**6}, "launch: passes that do nothing, with the gaps between, take 4.00 µs"),
        (200_000, {"parameters": {"strategy": "lookback"}}, "tiles before"),
        (150_000, {"parameters": {"strategy": "reduce_then_scan"}}, "1.5 times the bytes that had to move"),
        (300_000, {"parameters": {"strategy": "reduce_then_scan"}}, "slower than that"),
        (200_000, {}, "too few bytes in flight"),
        (300_000, {"flops": 4 * 10**9}, "multiply-adds wait"),
        (205_000, {"flops": 4 * 10**9}, "at the roof"),
    ]:
        assert why in _one(ns, **fields).why


def test_gaps_between_kernels():
    doc = document([measurement(labels=("a", "b"), work={"items": 1, "read_bytes": 10**8, "write_bytes": 0})])
    entry = doc["results"][0]
    entry["whole"]["gpu_span_ns"] = 200_000.0
    for kernel in entry["kernels"]:
        kernel["gpu_ns"] = 50_000.0
    # Medians of the parts do not add up to that of the whole: what is missing is no gap unless gaps were recorded.
    for gaps_ns, why in (
        (2_000.0, "too few bytes in flight"),
        (60_000.0, "gaps between its 2 kernels: 60.0 µs of 200 µs"),
    ):
        entry["whole"]["series"]["gaps"] = {"samples_ns": [gaps_ns] * 7, "summary": summarize([gaps_ns] * 7).to_json()}
        made = loaded(doc)
        (point,) = points(made, ceilings_of(made, MEASURED))
        assert why in point.why
        assert point.kernels == (("a", 0.25), ("b", 0.25))


def test_a_cpu_has_no_shares_of_its_roof():
    made = loaded(document([measurement(n=8)], device={**DEVICE, "adapter_type": "CPU"}))
    (point,) = points(made, ceilings_of(made, MEASURED))
    assert point.share is None
    assert "software on the CPU, whose ceilings other work lowers: no shares of them" in ceilings_text(
        made, ceilings_of(made, MEASURED)
    )


def test_what_has_no_place_on_it():
    found = [
        measurement(work={}), measurement("copy", error="x", kernels=(), whole={}, ticks=()), measurement(n=8),
    ]  # fmt: skip
    doc = loaded(document(found))
    assert [point.n for point in points(doc, ceilings_of(doc, MEASURED))] == [8]


def test_the_processes_of_a_case_are_one_point():
    doc = document([measurement(scale_ns=scale) for scale in (1000.0, 2000.0, 4000.0)])
    for process, entry in enumerate(doc["results"]):
        entry |= {"process": process, "position": 0}
    doc = loaded(doc)
    (point,) = points(doc, ceilings_of(doc, MEASURED))
    assert point.measured_ns == pooled(doc).results[0].whole.gpu_span_ns
    assert 1.9 < point.measured_ns / doc.results[0].whole.gpu_span_ns < 2.1, "the geometric mean"


def test_ceilings_of_another_device_are_refused():
    with pytest.raises(gw.ArgumentError, match="gridwise calibrate --format json"):
        ceilings_of(loaded(document([measurement()])))
    for key in KEY:
        other = replace(MEASURED, device={**KEY, key: "another"})
        with pytest.raises(gw.ArgumentError, match=f"of {key} .*'another'"):
            ceilings_of(loaded(document([measurement()])), other)
    own = loaded(document([measurement()], device={**DEVICE, "calibration": CALIBRATION}))
    assert ceilings_of(own).memory_gbytes_per_s == 1000


def test_ceilings_of_a_slow_device_are_no_zeros():
    slow = replace(MEASURED, copy=(Speed(moved_bytes=1 << 20, gbytes_per_s=0.3),), fma_gflops=42.0)
    made = loaded(document([measurement()]))
    assert "0.300 GB/s of copy, 42.0 GFLOP/s" in ceilings_text(made, ceilings_of(made, slow))


def test_the_command(tmp_path):
    results, calibration = tmp_path / "r.json", tmp_path / "c.json"
    write_json(results, document([measurement("scan"), measurement("copy", op=None)]))
    calibration.write_text(json.dumps(CALIBRATION))
    run = CliRunner().invoke
    good = ["roofline", str(results), "--calibration", str(calibration)]
    shown = run(main, good)
    assert shown.exit_code == 0, shown.output
    for word in ("scan add u32 hot", "copy u32 hot", "1000 GB/s of copy", "20000 GFLOP/s", "of the roof"):
        assert word in shown.output
    data = json.loads(run(main, [*good, "--format", "json"]).output)
    assert len(data["points"]) == 2
    assert data["ceilings"]["ridge"] == 20
    calibration.write_text('{"copy": []}')
    for arguments, message in (
        ([str(results)], "gridwise calibrate --format json"),
        ([str(results), "--calibration", str(calibration)], "c.json is not a calibration"),
        ([str(results), "--calibration", str(results)], "r.json is not a calibration"),
        ([str(results), "--out", str(tmp_path / "no" / "a.png")], "does not exist"),
    ):
        failed = run(main, ["roofline", *arguments])
        assert (failed.exit_code, message in failed.output) == (2, True), failed.output


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_picture(tmp_path):
    doc = loaded(document([measurement(n=1 << 20), measurement("reduce", n=1 << 24), measurement("copy", work={})]))
    ceilings = ceilings_of(doc, MEASURED)
    found = points(doc, ceilings)
    chart = roofline_picture(doc, ceilings, found)
    line, drawn = ([*layer["data"]["values"]] for layer in (chart["layer"][0], chart["layer"][-1]))
    assert {(row["case"], row["flop_per_byte"]): row["gflops"] for row in drawn} == {
        (point.name, point.intensity): point.gflops for point in found if point.intensity
    }
    # Up to the ridge the memory is the roof, beyond it the arithmetic.
    assert [row["gflops"] for row in line] == [pytest.approx(min(row["flop_per_byte"] * 1000, 20_000)) for row in line]
    assert line[1]["flop_per_byte"] == ceilings.ridge
    write_picture(chart, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("scan add u32 hot", "reduce add u32 hot", "operations per byte", "the measured ceilings, copy"):
        assert word in text
    none = [point for point in points(doc, ceilings) if point.intensity == 0]
    with pytest.raises(gw.ArgumentError, match="nothing to draw"):
        roofline_picture(doc, ceilings, none)


@pytest.mark.needs("the repository")
def test_a_run_on_an_h200():
    folder = RESULTS / "h200" / "instrument"
    doc = parse(lzma.decompress((folder / "run1.json.xz").read_bytes()), "run1.json")
    ceilings = ceilings_of(doc, read_calibration(folder / "calibration.json"))
    found = points(doc, ceilings)
    assert len(found) == len(doc.results)
    largest = [p for p in found if p.name.startswith("copy") and p.n == 1 << 28]
    assert all(p.why == "at the roof" and p.bound == "memory" for p in largest)
    assert ceilings.ridge > 10
