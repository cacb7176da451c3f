"""The files that pages save: judged as a run here is, bounded, and refused where they contradict themselves."""

import copy
import itertools
import json
import random
import re
from pathlib import Path

import pytest

import gridwise_py as gw
from helpers.commands import gridwise
from helpers.fuzz_results import mutate, try_document
from helpers.hostile_results import report
from helpers.page_files import BASE, page_file, raw_block, raw_result, two_blocks
from helpers.results import document, measurement, write


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working directory of a test, into which the files of pages are written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _read(data):
    return gw.read_results(write(Path("page.json"), data))


def _one(blocks, **changed):
    """The result of a file with one result."""
    return _read(page_file([raw_result(blocks, **changed)])).results[0]


# ---- the samples


def test_samples_are_those_of_the_stamps_and_blocks_at_another_clock_are_left_out():
    lengths, begin, blocks = [400_000 + 1000 * k for k in range(15)], 1000, []
    for canary_ns in (10_000, 10_000, 14_000, 10_000):
        blocks.append(raw_block(begin, lengths, canary_ns=canary_ns))
        begin = blocks[-1]["after"][-1][1] + 5000
    found = _one(blocks, batch_trials=8)
    assert found.gpu_span.samples_ns == tuple(ns / 8 for ns in lengths * 3)
    assert (found.gpu_span.invalid, found.protocol["left_out_blocks"]) == ({"other_clock": 15}, [2])
    assert found.cpu_wall.samples_ns == tuple(wall / 8 for i in (0, 1, 3) for wall in blocks[i]["walls"])
    assert found.rates.gbytes_per_s == pytest.approx(found.work.moved_bytes / found.gpu_span.median_ns)
    assert (len(found.samples), found.trials) == (60, 8)


def test_a_page_file_is_read_as_a_results_file_and_written_as_one():
    read = _read(page_file([raw_result(two_blocks())]))
    assert gridwise("import", "page.json", "-o", "out.json").exit_code == 0
    assert gw.read_results("out.json") == read
    assert read.results[0].samples[0].ticks[0][0] > 1 << 60
    refused = gridwise("import", "page.json", "-o", "page.json")
    assert (refused.exit_code, "one of the files to read" in refused.output) == (2, True)


# ---- what a page's clocks do


def test_each_kind_of_bad_timestamp_is_found():
    """Of the last sample, relative to its right begin."""
    for begin, end, expected in (
        (None, 400_000, "zero"),
        (0, None, "zero"),
        (0, -1000, "reversed"),
        (0, 0, "equal"),
        (-10_000_000, 400_000, "stale"),
        (0, 10_000_000, "longer_than_wall"),
    ):
        block = raw_block(1 << 40, [400_000] * 5)
        right = block["ticks"][-1][0]
        block["ticks"][-1] = [None if at is None else right + at for at in (begin, end)]
        found = _one([block])
        assert found.gpu_span.invalid == {expected: 1}
        assert len(found.gpu_span.samples_ns) == 4
        assert any(f"1 {expected}" in warning for warning in found.warnings)
    # A sample that begins before the canary ended.
    block = raw_block(1000, [400_000] * 5)
    block["ticks"][0][0] = block["before"][-1][1] - 1
    assert _one([block]).gpu_span.invalid == {"stale": 1}


def test_a_timestamp_of_zero_that_became_a_difference_is_refused():
    """A page that forgets that 0 means "never written" subtracts its base from it."""
    block = raw_block(1000, [400_000] * 5)
    block["ticks"][2][0] = -BASE
    with pytest.raises(gw.BadResultsFile, match=r"ticks\[2\]\[0\]: .* is less than the minimum"):
        _one([block])


def test_a_span_may_be_longer_than_its_wall_by_a_step_of_the_clock():
    """And by the usual 2 %. The wall itself stays as the page read it."""
    for over_ns, is_valid in [(99_000, True), (120_000, False)]:
        block = raw_block(1000, [400_000] * 5)
        block["walls"] = [400_000.0 - over_ns] * 5
        found = _one([block])
        assert len(found.gpu_span.samples_ns) == 5 * is_valid
        assert set(found.cpu_wall.samples_ns) == {(400_000.0 - over_ns) / 4}


def test_canaries_of_several_runs_count_as_one():
    """With coarse timestamps the canary runs many times in a pass."""
    block = raw_block(1000, [400_000] * 5, canary_ns=640_000)
    found = _one([block], canary_trials=64)
    assert found.canary_ns == (10_000.0, 10_000.0)


def test_coarse_timestamps_have_no_floors_and_say_so():
    data = page_file([raw_result(two_blocks())])
    data["calibration"]["tick_step"] = 65_536.0
    found = _read(data)
    floors = found.device.floors
    assert {name for name, value in floors.items() if value is None} == {
        "empty_pass_ns", "dispatch_in_long_pass_ns", "gap_between_passes_ns"
    }  # fmt: skip
    assert floors["submission_ns"] == 100_000.0
    assert any("rounds timestamps to 65.5 µs" in warning for warning in found.results[0].warnings)


def test_the_calibration_is_that_of_its_timestamps():
    found = _read(page_file([raw_result(two_blocks())])).device
    assert found.floors == {
        "empty_pass_ns": 2000.0, "dispatch_in_long_pass_ns": pytest.approx(22_000 / 101),
        "gap_between_passes_ns": 500.0, "submission_ns": 100_000.0,
    }  # fmt: skip
    assert found.calibration.copy[0].gbytes_per_s == pytest.approx(2 * (4 << 20) / 8_000)
    assert found.calibration.triad[0].gbytes_per_s == pytest.approx(3 * (4 << 20) / 12_000)
    assert found.calibration.fma_gflops == pytest.approx(1000.0, rel=1e-6)
    assert found.calibration.tick_check["ok"] is True


def test_a_wrong_unit_of_the_tick_is_a_warning_on_every_result():
    """Raw ticks, as a browser once gave: half as long as they should be."""
    data = page_file([raw_result(two_blocks())])
    data["calibration"]["tick_checks"] = [{"trials": 9, "wall": 60e6, "ticks": [[0, 30_000_000]]}]
    assert any("unit of GPU times is doubtful" in warning for warning in _read(data).results[0].warnings)
    data["calibration"]["tick_checks"][0]["ticks"] = [[None, None]]
    found = _read(data)
    assert any("unit of GPU times is not known" in warning for warning in found.results[0].warnings)
    assert found.device.calibration is None


def test_without_timestamps_there_are_walls():
    for calibration in [None, {}]:
        block = {name: value for name, value in raw_block(1000, [400_000] * 5).items()
                 if name not in ("before", "after", "ticks")}  # fmt: skip
        data = page_file([raw_result([block], canary_trials=1)], calibration=calibration)
        found = _read(data)
        assert found.results[0].gpu_span is None
        assert found.results[0].cpu_wall.median_ns == 500_000 / 4
        assert found.device.tick_period_ns is None
        assert any("CPU walls" in warning for warning in found.results[0].warnings)


# ---- results


_RIGHT = {"output": "keys", "wrong": None}


def test_a_result_that_was_not_checked_twice_is_refused():
    for checks in [[], [_RIGHT], [_RIGHT, _RIGHT, {"output": "count", "wrong": None}]]:
        with pytest.raises(gw.BadResultsFile, match=r"\$\.results\[0\]\.checks: .*after the last one"):
            _one(two_blocks(), checks=checks)


def test_a_block_without_a_canary_is_refused():
    for name, missing in itertools.product(("before", "after"), (None, [])):
        blocks = two_blocks()
        blocks[1][name] = missing
        if missing is None:
            del blocks[1][name]
        with pytest.raises(gw.BadResultsFile, match=r"blocks\[1\]: it has timestamps, but no canary before and after"):
            _one(blocks)


def test_errors_and_stops_are_results_without_times():
    data = page_file(
        [
            raw_result([], error="DeviceLost: unknown", checks=[]),
            raw_result(two_blocks(), error="GPUPipelineError: no", position=1),
            raw_result([], checks=[], position=2),
        ],
        complete=False,
    )
    found = _read(data)
    assert [result.error for result in found.results] == [
        "DeviceLost: unknown", "GPUPipelineError: no", "the page was stopped before it was measured"
    ]  # fmt: skip
    assert all(result.time_ns is None and not result.correct for result in found.results)
    assert found.complete is False


# ---- the device


def test_software_is_a_cpu():
    for changed, is_cpu in [
        ({}, False),
        ({"class": "4/256/32768/true/tickets"}, True),
        ({"info": {"isFallbackAdapter": True}}, True),
        ({"webgl_renderer": "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)))"}, True),
    ]:
        data = page_file([raw_result(two_blocks())])
        for name, value in changed.items():
            (data if name == "class" else data["device"])[name] = value
        assert _read(data).device.is_cpu is is_cpu


GPUS = [
    ("  My GPU ", {"description": "d"}, "r", "My GPU"),
    (None, {"vendor": "apple", "architecture": "metal-3"}, None, "apple metal-3"),
    (None, {}, None, "unknown GPU"),
]


def test_a_gpu_has_the_most_telling_name():
    for name, info, renderer, adapter in GPUS:
        data = page_file([], name=name)
        data["device"] |= {"info": info, "webgl_renderer": renderer}
        assert _read(data).device.adapter == adapter


BROWSERS = [
        ([{"brand": "Chromium", "version": "1"}, {"brand": "Opera", "version": "150"}], "", "Opera 150"),
        (None, "Mozilla/5.0 (Macintosh) Gecko/20100101 Firefox/150.0", "Firefox 150"),
        (None, "Mozilla/5.0 (Macintosh) AppleWebKit/605 (KHTML, like Gecko) Version/26.1 Safari/605.1", "Safari 26"),
        ([{"brand": "Chromium", "version": "1"}], "X Chrome/156.0.0.0 Safari/537.36", "Chrome 156"),
        (None, "curl", "an unknown browser"),
    ]  # fmt: skip


def test_a_browser_has_its_own_name():
    for brands, agent, name in BROWSERS:
        data = page_file([])
        data["context"] |= {"brands": brands, "user_agent": agent}
        assert _read(data).context.versions["browser"] == name


def test_the_verdict_on_look_back_is_that_of_the_counts(monkeypatch):
    monkeypatch.setattr("gridwise_py.runtime.lookback_selftest.LookbackProbe.AGAIN_AT_MOST", 0.01)
    data = page_file([], lookback={"verdict": "safe", "tests": [
        {"tickets": False, "stalled": False, "dispatches": 32, "wrong": 0, "again": 200_000, "finished": 32 * 8192},
        {"tickets": True, "stalled": False, "dispatches": 32, "wrong": 0, "again": 5, "finished": 32 * 8192},
        {"tickets": True, "stalled": True, "dispatches": 4, "wrong": 0, "again": 6552, "finished": 4 * 8192},
    ]})  # fmt: skip
    verdict = _read(data).device.lookback["u32x2"]
    assert (verdict["coherent"], verdict["progress"], verdict["needs_tickets"], verdict["recovers"]) == (True,) * 4
    data["lookback"]["tests"][2]["wrong"] = 1
    assert _read(data).device.lookback["u32x2"]["recovers"] is False
    data["lookback"]["tests"][0]["finished"] -= 1
    assert _read(data).device.lookback["u32x2"]["coherent"] is False
    # Without progress there is no test with stalled tiles.
    data["lookback"]["tests"] = [{**data["lookback"]["tests"][0], "tickets": tickets} for tickets in (False, True)]
    verdict = _read(data).device.lookback["u32x2"]
    assert (verdict["progress"], verdict["needs_tickets"], verdict["recovers"]) == (False,) * 3


# ---- comparing


def test_a_page_and_a_run_here_are_ranked_not_judged():
    page = page_file([raw_result(two_blocks(), axes={"datatype": "u32", "op": "add"}, mode="hot")])
    paths = [write(Path("native.json"), document([measurement(labels=("scan",))])), write(Path("page.json"), page)]
    done = gridwise("compare", *paths)
    said = " ".join(done.output.split())
    assert (done.exit_code, "--across" in said) == (3, True)
    assert "backend: OLD has Vulkan, NEW has WebGPU in Google Chrome" in said
    for word, sides in (("--across", "AB"), ("--force", ("OLD", "NEW"))):
        for order, side in ((paths, sides[1]), (paths[::-1], sides[0])):
            said = " ".join(gridwise("compare", *order, word).output.split())
            assert f"{side} was measured by a page in a browser" in said
    assert "by a page" not in gridwise("compare", paths[1], paths[1]).output


def _visits(file, levels_ns, **changed):
    """Files of visits whose samples take so long."""
    made = [page_file([raw_result([raw_block(1000, [ns + k for k in range(20)])])], **changed) for ns in levels_ns]
    for i, data in enumerate(made):
        data["context"] = {**data["context"], "time": f"2026-01-02T03:04:0{i}Z"}
    return [write(Path(f"{file}{i}.json"), data) for i, data in enumerate(made)]


def test_visits_to_a_page_are_processes():
    for name, levels in (("old", (400_000, 401_000, 402_000)), ("new", (440_000, 441_000, 442_000))):
        done = gridwise("import", *_visits(name, levels), "-o", f"{name}.json")
        assert done.exit_code == 0, done.output
    old = gw.read_results("old.json")
    assert [result.process for result in old.results] == [0, 1, 2]
    assert old.levels[0].processes == 3
    (row,) = json.loads(gridwise("compare", "old.json", "new.json", "--format", "json").stdout)["rows"]
    assert row["verdict"]["kind"] == "slower"


def test_only_visits_to_one_page_on_one_device_go_together():
    (one,) = _visits("one", [400_000])
    for other, why in (
        (_visits("a", [400_000], name="Another")[0], "adapter is Invented 9000 and Another"),
        (_visits("b", [400_000], bundle_sha256="d" * 64)[0], "page is bbb.* and ddd"),
        (write(Path("native.json"), document([measurement()])),
         "native.json is of gridwise bench, which measures in several processes itself"),
        (one, "two are the same run"),
    ):  # fmt: skip
        done = gridwise("import", one, other, "-o", "out.json")
        assert (done.exit_code, bool(re.search(why, done.output))) == (2, True), done.output
    assert not Path("out.json").exists()


# ---- strangers' files


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr("gridwise_py.bench.results.browser_file._MOST_STAMPS", 300)
    with pytest.raises(gw.BadResultsFile, match="a file has at most 300"):
        _one(two_blocks())
    with pytest.raises(gw.BadResultsFile, match="results"):
        _read(page_file([raw_result([], error="x")] * 10_001))
    many = {"counts": [1 << 31], "walls": [1e6], "submits": [1e3], "encodes": [1e3]}
    with pytest.raises(gw.BadResultsFile, match="2,147,483,648 samples; a file has at most 200,000"):
        _read(page_file([raw_result([many])], calibration=None))


def test_a_whole_number_may_be_written_as_a_float():
    """As JSON Schema has it; found by fuzzing."""
    data = page_file([raw_result(two_blocks())])
    floats = json.loads(json.dumps(data), parse_int=lambda text: int(text) if len(text) > 15 else float(text))
    assert isinstance(floats["results"][0]["blocks"][0]["counts"][0], float)
    assert _read(floats).results == _read(data).results


BROKEN = [
    (lambda d: d.update(schema_version=2), r"\$\.schema_version: 2 is newer than 1"),
    (lambda d: d["protocol"].update(canary_passes=0), r"\$\.protocol: canary_passes is 0"),
    (lambda d: d.update(tick_base="99999999999999999999"), r"\$\.tick_base: .* 64 bits"),
    (lambda d: d["results"][0].update(plan="x"), r"\$\.results\[0\]\.plan: there is no plan 'x'"),
    (lambda d: d["results"][0].pop("trial_ns"), r"\$\.results\[0\]: it has samples, but no trial_ns"),
    (lambda d: d["results"][0].update(mode="cold"), r"\$\.results\[0\]\.mode"),
    (lambda d: d["results"][0]["blocks"][0]["walls"].pop(), r"blocks\[0\]: it has 20 submissions"),
    (lambda d: d["results"][0]["blocks"][0]["ticks"].pop(), r"20 samples of 1 kernels have 19 pairs"),
    (lambda d: d["calibration"]["tick_checks"][0].update(wall=0), r"tick_checks"),
    (lambda d: d["context"].update(user_agent="x" * 1001), r"\$\.context\.user_agent"),
]


def test_a_broken_file_is_refused_with_the_place():
    for spoil, where in BROKEN:
        data = copy.deepcopy(page_file([raw_result(two_blocks())]))
        spoil(data)
        with pytest.raises(gw.BadResultsFile, match=f"^page.json: .*{where}") as caught:
            _read(data)
        assert len(str(caught.value)) < 500


def test_an_unknown_primitive_or_datatype_is_data():
    found = _one(two_blocks(), primitive="nosuch", axes={"datatype": "u1024", "op": "x", "new": "7"})
    assert (found.primitive, found.datatype, found.case["new"]) == ("nosuch", "u1024", "7")
    assert found.rates.peak_gbytes_per_s is None


def test_whatever_a_page_file_holds_it_is_read_or_refused():
    rng = random.Random(0)
    right = page_file([raw_result(two_blocks(count=4)), raw_result([], error="x", checks=[], position=1)])
    taken = sum(try_document(json.dumps(mutate(right, rng, rng.choice([1, 1, 2, 4]))).encode()) for _ in range(30))
    assert 2 < taken < 28
    content = json.dumps(right).encode()
    for _ in range(5):
        assert not try_document(content[: rng.randrange(len(content))])


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_a_report_of_several_devices_has_a_table_of_them(folder):
    files = {"native": document([measurement("copy", op=None, labels=("copy",))])}
    for name, wrong in (("one", None), ("two", "item 3 is 4")):
        checks = [{"output": "output", "wrong": wrong}] * 2
        files[name] = page_file([raw_result(two_blocks(), checks=checks)], name=f"GPU {name}")
    page = report(folder, files)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page[page.index('aria-label="GB/s by device"') :]))
    assert re.search(r"GPU by file copy 2\^20 scan 2\^20", text)
    assert re.search(r"GPU one WebGPU in Google Chrome 156 on vulkan one – [\d.]+ ", text)
    assert re.search(r"GPU two \S+ in Google Chrome 156 on vulkan two – WRONG ", text)
    assert "GB/s by device" not in report(folder, {"native": files["native"]})
