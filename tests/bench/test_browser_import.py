"""The files that pages save: judged as a run here is, bounded, and refused where they contradict themselves."""

import copy
import itertools
import json
import random
import re

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.bench.analysis.compare import compare
from gridwise_py.bench.calibrate.canary import canary_time
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.cases.workloads import WORKLOADS
from gridwise_py.bench.report.page import Source, report_html
from gridwise_py.bench.report.page_tables import devices_table
from gridwise_py.bench.results import browser_file
from gridwise_py.bench.results.browser_model import PageFile
from gridwise_py.bench.results.entries import result_of
from gridwise_py.bench.results.reader import document_of, parse, read_results
from gridwise_py.bench.results.schema import json_schema
from gridwise_py.bench.sampling.measurement import Measurement
from gridwise_py.bench.sampling.sampler import Block, previous_end
from gridwise_py.bench.sampling.samples import Samples
from gridwise_py.bench.stats.series import SampleClass
from gridwise_py.cli import main
from gridwise_py.storage.json_files import write_json
from helpers.fuzz_results import mutate, try_document
from helpers.hostile_results import HOSTILE
from helpers.page_files import BASE, page_file, raw_block, raw_result, two_blocks
from helpers.results import DEVICE, document, measurement
from helpers.synthetic import NOISES, times

STEP_NS = 32.0


def _read(data):
    return document_of(data, "page.json")


def _one(blocks, **changed):
    """The result of a file with one result."""
    return _read(page_file([raw_result(blocks, **changed)])).results[0]


def test_the_schema_is_one():
    schema = json_schema(PageFile)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(page_file([raw_result(two_blocks())]))


# ---- the round trip


def _native_block(begin, lengths, kernels, canary_ns, trials):
    """A block as the sampler here takes it, with the same numbers as the page's."""
    raw = raw_block(begin, lengths, kernels=kernels, canary_ns=canary_ns)
    counts = {name: np.array(raw[name], dtype=np.uint64) + np.uint64(BASE) for name in ("before", "after", "ticks")}
    canaries = tuple(canary_time(counts[name], 1.0, STEP_NS) for name in ("before", "after"))
    native = Block(
        counts["ticks"].reshape(-1, kernels, 2), tuple(range(len(raw["walls"]))), tuple(raw["walls"]),
        tuple(raw["submits"]), tuple(raw["encodes"]), canaries, previous_end(counts["before"]),
    )  # fmt: skip
    return raw, native


def test_samples_of_a_run_here_and_the_same_from_a_page_give_the_same_result():
    for mode, kernels, trials in [("batch", 1, 8), ("hot", 3, 1), ("latency", 2, 1)]:
        for kind in NOISES:
            rng = np.random.default_rng(7)
            labels = [f"kernel {k}" for k in range(kernels)]
            samples, blocks, begin = Samples(labels, Mode(mode), trials, False), [], 1000
            # The third block is at another clock, which the canary tells.
            for canary_ns in (10_000, 10_000, 14_000, 10_000):
                lengths = times(kind, 15 * kernels, rng, level_ns=4e5).astype(int)
                raw, native = _native_block(begin, lengths, kernels, canary_ns, trials)
                blocks.append(raw)
                samples.add(native, 1.0)
                begin = raw["after"][-1][1] + 5000
            plan = {"primitive": "scan", "parameters": {}, "shaders": ["c" * 64],
                    "kernels": [{"label": label, "workgroups": [1, 1, 1]} for label in labels]}  # fmt: skip
            data = page_file([raw_result(blocks, mode=mode, batch_trials=trials)], plans={"3": plan})
            found = _read(data).results[0]
            expected = result_of(
                Measurement(
                    "scan", Mode(mode), 1 << 20, case={"datatype": "u32", "op": "add"}, kernels=samples.kernels(),
                    whole=samples.whole(), work=found.work.to_json(), ticks=samples.ticks(), tick_period_ns=1.0,
                    canary_ns=tuple(canary.median_ns for canary in samples.canaries),
                    protocol={"batch_trials": trials if mode == "batch" else None},
                )
            )  # fmt: skip
            assert found.kernels == expected.kernels
            assert found.whole == expected.whole
            assert found.samples == expected.samples
            assert found.canary_ns == expected.canary_ns
            assert (found.rates.gbytes_per_s, found.trials) == (expected.rates.gbytes_per_s, expected.trials)
            assert found.gpu_span.invalid == {"other_clock": 15}
            assert found.protocol["left_out_blocks"] == [2]


def test_a_page_file_is_read_as_a_results_file_and_written_as_one(tmp_path):
    raw, out = tmp_path / "page.json", tmp_path / "out.json"
    raw.write_text(json.dumps(page_file([raw_result(two_blocks())])))
    done = CliRunner().invoke(main, ["import", str(raw), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert read_results(out) == read_results(raw)
    assert read_results(out).results[0].samples[0].ticks[0][0] > 1 << 60
    refused = CliRunner().invoke(main, ["import", str(raw), "-o", str(raw)])
    assert refused.exit_code == 2
    assert "one of the files to read" in refused.output


# ---- what a page's clocks do


def test_each_kind_of_bad_timestamp_is_found():
    """Of the last sample, relative to its right begin."""
    for begin, end, expected in (
        (None, 400_000, SampleClass.ZERO),
        (0, None, SampleClass.ZERO),
        (0, -1000, SampleClass.REVERSED),
        (0, 0, SampleClass.EQUAL),
        (-10_000_000, 400_000, SampleClass.STALE),
        (0, 10_000_000, SampleClass.LONGER_THAN_WALL),
    ):
        block = raw_block(1 << 40, [400_000] * 5)
        right = block["ticks"][-1][0]
        block["ticks"][-1] = [None if at is None else right + at for at in (begin, end)]
        found = _one([block])
        assert found.gpu_span.invalid == {expected.value: 1}
        assert len(found.gpu_span.samples_ns) == 4
        assert any(f"1 {expected.value}" in warning for warning in found.warnings)
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


def test_an_overlapping_pair_is_found():
    block = raw_block(1000, [400_000] * 4)
    block["counts"] = [4]
    for name in ("walls", "submits", "encodes"):
        block[name] = [sum(block[name])]
    block["ticks"][2][0] = block["ticks"][1][1] - 100
    assert _one([block]).gpu_span.invalid == {"overlapping": 1}


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


def test_a_wrong_result_is_wrong_whichever_check_found_it():
    for first, last in (("item 3", None), (None, "its hash")):
        found = _one(two_blocks(), checks=[{"output": "output", "wrong": first}, {"output": "output", "wrong": last}])
        assert (found.correct, found.mismatch) == (False, first or last)


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
    (None, {"description": "Intel Arc"}, "r", "Intel Arc"),
    ("", {}, "ANGLE (x)", "ANGLE (x)"),
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
    monkeypatch.setattr("gridwise_py.runtime.lookback_selftest.AGAIN_AT_MOST", 0.01)
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
    page = _read(page_file([raw_result(two_blocks(), axes={"datatype": "u32", "op": "add"}, mode="hot")]))
    native = document_of(document([measurement(labels=("scan",))], device=dict(DEVICE)), "native.json")
    found = compare(native, page)
    assert not found.comparable
    assert any(text.startswith("backend: OLD has Vulkan, NEW has WebGPU in Google Chrome") for text in found.obstacles)
    assert "--across" in found.remedy
    for how in ({"across": True}, {"force": True}):
        for old, new, place in ((native, page, 1), (page, native, 0)):
            side = (("A", "B") if "across" in how else ("OLD", "NEW"))[place]
            made = compare(old, new, **how)
            assert made.ranks or made.rows
            (note,) = [note for note in made.notes if "measured by a page" in note]
            assert note.startswith(f"{side} was measured by a page in a browser")
    assert not any("page" in note for note in compare(page, page).notes)


def test_a_difference_of_two_visits_is_no_verdict():
    """A visit is one process, and how much processes differ is not known."""
    old, new = (_read(page_file([raw_result([raw_block(1000, [ns] * 20)])])) for ns in (400_000, 416_000))
    (row,) = compare(old, new).rows
    assert row.verdict.ratio == pytest.approx(1.04)
    assert row.verdict.kind.value == "ambiguous"
    assert "process" in row.verdict.reason


def _visits(tmp_path, levels_ns, **changed):
    """Files of visits whose samples take so long."""
    paths = []
    for i, ns in enumerate(levels_ns):
        data = page_file([raw_result([raw_block(1000, [ns + k for k in range(20)])])], **changed)
        data["context"] = {**data["context"], "time": f"2026-01-02T03:04:0{i}Z"}
        paths.append(tmp_path / f"visit-{len(list(tmp_path.iterdir()))}.json")
        write_json(paths[-1], data)
    return list(map(str, paths))


def test_visits_to_a_page_are_processes(tmp_path):
    sides = []
    for name, levels in (("old", (400_000, 401_000, 402_000)), ("new", (440_000, 441_000, 442_000))):
        done = CliRunner().invoke(main, ["import", *_visits(tmp_path, levels), "-o", str(tmp_path / f"{name}.json")])
        assert done.exit_code == 0, done.output
        sides.append(read_results(tmp_path / f"{name}.json"))
    assert [result.process for result in sides[0].results] == [0, 1, 2]
    assert sides[0].levels[0].processes == 3
    (row,) = compare(*sides).rows
    assert row.verdict.kind.value == "slower"


def test_only_visits_to_one_page_on_one_device_go_together(tmp_path):
    (one,) = _visits(tmp_path, [400_000])
    native = tmp_path / "native.json"
    write_json(native, document([measurement()]))
    for other, why in (
        (_visits(tmp_path, [400_000], name="Another")[0], "adapter is Invented 9000 and Another"),
        (_visits(tmp_path, [400_000], bundle_sha256="d" * 64)[0], "page is bbb.* and ddd"),
        (str(native), "native.json is of gridwise bench, which measures in several processes itself"),
        (one, "two are the same run"),
    ):
        done = CliRunner().invoke(main, ["import", one, other, "-o", str(tmp_path / "out.json")])
        assert done.exit_code == 2
        assert re.search(why, done.output), done.output
    assert not (tmp_path / "out.json").exists()


# ---- strangers' files


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(browser_file, "_MOST_STAMPS", 300)
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


def test_any_size_of_any_primitive_is_data():
    blocks = [raw_block(1000, [400_000])]
    cases = [(name, n) for name in WORKLOADS for n in (0, 1, 1 << 40)]
    results = [raw_result(blocks, primitive=name, n=n, position=i) for i, (name, n) in enumerate(cases)]
    assert len(_read(page_file(results)).results) == len(cases)


BROKEN = [
    (lambda d: d.update(schema_version=2), r"\$\.schema_version: 2 is newer than 1"),
    (lambda d: d.update(schema_version=True), r"\$\.schema_version: True is not a version"),
    (lambda d: d["protocol"].update(canary_passes=0), r"\$\.protocol: canary_passes is 0"),
    (lambda d: d["protocol"].update(canary_passes=[]), r"\$\.protocol: canary_passes is \[\]"),
    (lambda d: d.update(tick_base="-1"), r"\$\.tick_base"),
    (lambda d: d.update(tick_base="99999999999999999999"), r"\$\.tick_base: .* 64 bits"),
    (lambda d: d["results"][0].update(plan="x"), r"\$\.results\[0\]\.plan: there is no plan 'x'"),
    (lambda d: d["results"][0].pop("trial_ns"), r"\$\.results\[0\]: it has samples, but no trial_ns"),
    (lambda d: d["results"][0].pop("canary_trials"), r"\$\.results\[0\]: .* no canary_trials"),
    (lambda d: d["results"][0].update(mode="cold"), r"\$\.results\[0\]\.mode"),
    (lambda d: d["results"][0]["blocks"][0]["walls"].pop(), r"blocks\[0\]: it has 20 submissions"),
    (lambda d: d["results"][0]["blocks"][0]["ticks"].pop(), r"20 samples of 1 kernels have 19 pairs"),
    (lambda d: d["calibration"]["tick_checks"][0].update(wall=0), r"tick_checks"),
    (lambda d: d["context"].update(user_agent="x" * 1001), r"\$\.context\.user_agent"),
    (lambda d: d.update(name="x" * 121), r"\$\.name"),
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


@pytest.mark.needs("module:altair", "module:vl_convert")
def test_hostile_names_are_text_in_a_report(tmp_path):
    texts = [text.encode("utf-8", "replace").decode()[:100] for text in HOSTILE[:5]]
    data = page_file([raw_result(two_blocks(i), primitive=text, axes={"datatype": text, "op": text}, position=i,
                                 checks=[{"output": "output", "wrong": text}] * 2) for i, text in enumerate(texts[:2])]
                     + [raw_result([], error=text, position=99) for text in texts], name=texts[0])  # fmt: skip
    data["device"] |= {"webgl_renderer": texts[1], "info": {"vendor": texts[2], "backend": texts[3]}}
    data["context"] |= {
        "user_agent": texts[4],
        "brands": [{"brand": texts[2][:90], "version": "1"}],
        "platform": texts[2],
    }
    data["plans"]["3"]["kernels"][0]["label"] = texts[0]
    content = json.dumps(data).encode()
    native = document_of(document([measurement("copy", op=None, labels=("copy",))], device=dict(DEVICE)), "native")
    sources = [Source("page", "page.json", content, parse(content, "page.json")), Source("a", "a.json", b"{}", native)]
    page = report_html(sources, raw_limit_mib=0)
    assert "GB/s by device" in page
    for text in ("<script>window.pwned", "<img src=x", "<svg onload"):
        assert text not in page


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_timestamps_are_judged(data):
    block = raw_block(1000, [400_000] * 4)
    stamp = st.one_of(st.none(), st.integers(-(1 << 52), 1 << 52))
    block["ticks"] = [[data.draw(stamp), data.draw(stamp)] for _ in range(4)]
    block["before"] = [[data.draw(stamp), data.draw(stamp)] for _ in range(9)]
    found = _one([block])
    assert len(found.gpu_span.samples_ns) + sum(found.gpu_span.invalid.values()) == 4


def test_whatever_a_page_file_holds_it_is_read_or_refused():
    rng = random.Random(0)
    right = page_file([raw_result(two_blocks(count=4)), raw_result([], error="x", checks=[], position=1)])
    taken = sum(try_document(json.dumps(mutate(right, rng, rng.choice([1, 1, 2, 4]))).encode()) for _ in range(30))
    assert 2 < taken < 28
    content = json.dumps(right).encode()
    for _ in range(5):
        assert not try_document(content[: rng.randrange(len(content))])


def test_a_report_of_several_devices_has_a_table_of_them():
    files = {"native": document([measurement("copy", op=None, labels=("copy",))], device=dict(DEVICE))}
    for name, wrong in (("one", None), ("two", "item 3 is 4")):
        checks = [{"output": "output", "wrong": wrong}] * 2
        files[name] = page_file([raw_result(two_blocks(), checks=checks)], name=f"GPU {name}")
    documents = [document_of(data, name) for name, data in files.items()]
    found = devices_table(documents, list(files), [])
    assert [column["title"] for column in found["columns"]] == ["GPU", "by", "file", "copy 2^20", "scan 2^20"]
    texts = [[cell["text"] for cell in row] for row in found["rows"]]
    assert [row[0] for row in texts] == ["invented", "GPU one", "GPU two"]
    assert texts[1][1] == "WebGPU in Google Chrome 156 on vulkan"
    assert [row[3] for row in texts[1:]] == ["–", "–"]
    assert texts[2][4] == "WRONG"
    assert found["rows"][1][4]["sort"] == documents[1].results[0].rates.gbytes_per_s
    assert devices_table(documents[:1], ["native"], []) is None


def test_a_page_file_among_others_is_read_by_every_command(tmp_path):
    path = tmp_path / "page.json"
    write_json(path, page_file([raw_result(two_blocks())]))
    for words in (["compare", path, path], ["roofline", path]):
        done = CliRunner().invoke(main, list(map(str, words)))
        assert done.exit_code == 0, done.output
