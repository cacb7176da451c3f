"""`gridwise roofline`: predictions from measured ceilings, and a likely reason for each gap."""

import json
import lzma

import pytest

from helpers.commands import gridwise
from helpers.paths import RESULTS
from helpers.results import DEVICE, document, measurement, write

KEY = {key: DEVICE[key] for key in ("adapter", "driver", "backend")}
CALIBRATION = {
    "device": KEY,
    "copy": [{"moved_bytes": 10**6, "gbytes_per_s": 100.0}, {"moved_bytes": 10**8, "gbytes_per_s": 1000.0}],
    "fma_gflops": 20_000.0,
    "floors_ns": {"empty_pass": 4000.0, "gap_between_passes": 6000.0},
}


@pytest.fixture
def call(tmp_path):
    """A function that calls the command on a document and a calibration."""

    def call(made, *words, calibration=CALIBRATION):
        results = write(tmp_path / "r.json", made)
        if calibration is not None:
            words = ("--calibration", write(tmp_path / "c.json", calibration), *words)
        return gridwise("roofline", results, *words)

    return call


@pytest.fixture
def points(call):
    """A function that returns the points of a document, by the command."""

    def points(made, **calibration):
        done = call(made, "--format", "json", **calibration)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)["points"]

    return points


def _case(ns, *, labels=("k",), moved=10**8, flops=0, gaps_ns=None, more=None, **fields):
    """A document of a case that took `ns`, all of its kernels alike."""
    work = {"items": 10, "read_bytes": moved // 2, "write_bytes": moved - moved // 2, "flops": flops}
    made = document([measurement(labels=labels, work=work, scale_ns=ns / len(labels), ticks=(), **fields)])
    entry = made["results"][0]
    # measurement() makes times of up to 5 % more than asked for; the median is put right here.
    entry["whole"]["gpu_span_ns"] = float(ns)
    for kernel in entry["kernels"]:
        kernel["gpu_ns"] = (ns - (gaps_ns or 0)) / len(labels)
    if gaps_ns is not None:
        summary = {**entry["kernels"][0]["summary"], "median_ns": gaps_ns, "ci_low_ns": None, "ci_high_ns": None}
        entry["whole"]["series"]["gaps"] = {"samples_ns": [gaps_ns] * 7, "summary": summary, "invalid": {}}
    entry |= more or {}
    return made


def test_memory_and_arithmetic(points, call):
    (point,) = points(_case(100_000, flops=10**6))
    assert (point["predicted_ns"], point["bound"]) == (pytest.approx(10**8 / 1000), "memory")
    assert point["share"] == pytest.approx(1)
    assert (point["intensity"], point["gflops"]) == (0.01, 10**6 / 100_000)
    (point,) = points(_case(100_000, flops=4 * 10**9))
    assert (point["predicted_ns"], point["bound"]) == (pytest.approx(200_000), "arithmetic")
    assert json.loads(call(_case(100_000), "--format", "json").stdout)["ceilings"]["ridge"] == 20
    # Small copies are slower, and cold ones are memory.
    for moved, mode, predicted_ns in ((10**7, "hot", 10**4.5), (10**6, "hot", 10_000), (10**6, "cold", 1000)):
        (point,) = points(_case(50_000, moved=moved, mode=mode))
        assert point["predicted_ns"] == pytest.approx(predicted_ns)


def test_the_ceiling_of_arithmetic_is_that_of_the_type_that_a_case_computes_in(points, call):
    peaks = {"f16": 40_000.0, "i32": 10_000.0, "f64": 500.0, "atomic_u64": 3.0}
    by_type, flops = {**CALIBRATION, "peaks_gops": peaks}, 4 * 10**9
    for primitive, datatype, peak, gops in (
        ("reduce", "f32", "f32", 20_000), ("reduce", "u32", "i32", 10_000), ("reduce", "i8", "i32", 10_000),
        ("reduce", "u64", "i32", 10_000), ("reduce", "f64", "f64", 500), ("reduce", None, "f32", 20_000),
        ("matmul", "f16", "f32", 20_000),  # computes in f32
        ("my_own_kernel", "f16", "f16", 40_000), ("my_own_kernel", "complex64", "f32", 20_000),
    ):  # fmt: skip
        made = _case(10**6, moved=2000, flops=flops, more={"primitive": primitive, "datatype": datatype})
        for calibration, wanted in ((by_type, (peak, gops)), (CALIBRATION, ("f32", 20_000))):
            (point,) = points(made, calibration=calibration)
            assert (point["peak"], flops / point["predicted_ns"]) == (wanted[0], pytest.approx(wanted[1]))
    said = " ".join(call(made, calibration=by_type).output.split())
    assert "1000 GB/s of copy, 20000 GFLOP/s of f32 FMA, 40000 of f16, 10000 of i32, 500 of f64" in said


def test_the_likely_reason(points):
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
        # What is missing in the sum of medians is no gap unless gaps were recorded.
        (200_000, {"labels": ("a", "b"), "gaps_ns": 2_000.0}, "too few bytes in flight"),
        (200_000, {"labels": ("a", "b"), "gaps_ns": 60_000.0}, "gaps between its 2 kernels: 60.0 µs of 200 µs"),
    ]:
        (point,) = points(_case(ns, **fields))
        assert why in point["why"]


def test_the_ceilings_are_those_of_the_file_or_of_a_calibration_of_its_device(call, points):
    floors = {"empty_pass_ns": 4000.0, "gap_between_passes_ns": 6000.0, "submission_ns": None}
    own = {name: value for name, value in CALIBRATION.items() if name in ("copy", "fma_gflops")}
    made = _case(14_000, moved=10**6)
    measured = {**made, "device": {**DEVICE, "calibration": own, "floors": floors}}
    assert points(measured, calibration=None) == points(made)
    for key in KEY:
        done = call(made, calibration={**CALIBRATION, "device": {**KEY, key: "another"}})
        assert (done.exit_code, f"results are of {key}" in done.output) == (2, True)
    for calibration, message in ((None, "gridwise calibrate --format json"), ({"copy": []}, "is not a calibration")):
        done = call(made, calibration=calibration)
        assert (done.exit_code, message in done.output) == (2, True)
    slow = {**CALIBRATION, "copy": [{"moved_bytes": 1 << 20, "gbytes_per_s": 0.3}], "fma_gflops": 42.0}
    assert "0.300 GB/s of copy, 42.0 GFLOP/s" in " ".join(call(made, calibration=slow).output.split())


def test_a_cpu_has_no_shares_of_its_roof(call, points):
    made = {**_case(200_000), "device": {**DEVICE, "adapter_type": "CPU"}}
    assert points(made)[0]["share"] is None
    said = " ".join(call(made).output.split())
    assert "software on the CPU, whose ceilings other work lowers: no shares of them" in said


def test_the_processes_of_a_case_are_one_point_and_what_has_no_place_is_left_out(points):
    made = document([
        *(measurement(scale_ns=scale_ns, n=8) for scale_ns in (1000.0, 2000.0, 4000.0)),
        measurement(work={}), measurement("copy", error="x", kernels=(), whole={}, ticks=()),
    ])  # fmt: skip
    for process, entry in enumerate(made["results"][:3]):
        entry |= {"process": process, "position": 0}
    (point,) = points(made)
    assert 1.9 < point["measured_ns"] / made["results"][0]["whole"]["gpu_span_ns"] < 2.1, "the geometric mean"


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_the_table_and_the_picture(call, tmp_path):
    work = {"items": 10, "read_bytes": 1000, "write_bytes": 1000, "flops": 10**6}
    made = document([measurement(n=8, work=work), measurement("reduce", n=1 << 24), measurement("copy", op=None)])
    done = call(made, "-o", tmp_path / "a.svg")
    assert done.exit_code == 0, done.output
    for word in ("scan add u32 hot", "copy u32 hot", "1000 GB/s of copy", "20000 GFLOP/s", "of the roof"):
        assert word in done.output
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("scan add u32 hot", "reduce add u32 hot", "operations per byte", "the measured ceilings, copy"):
        assert word in text
    done = call(document([measurement(work={**work, "flops": 0})]), "-o", tmp_path / "b.svg")
    assert (done.exit_code, "nothing to draw" in done.output) == (2, True)
    assert "does not exist" in call(made, "--out", tmp_path / "no" / "a.png").output


@pytest.mark.needs("the repository")
def test_a_run_on_an_h200(points):
    folder = RESULTS / "h200" / "instrument"
    made = json.loads(lzma.decompress((folder / "run1.json.xz").read_bytes()))
    found = points(made, calibration=json.loads((folder / "calibration.json").read_text()))
    assert len(found) == len(made["results"])
    largest = [point for point in found if point["name"].startswith("copy") and point["n"] == 1 << 28]
    assert all(point["why"] == "at the roof" and point["bound"] == "memory" for point in largest)
