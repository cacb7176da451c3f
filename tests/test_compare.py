"""`gridwise compare`: joining, gating, refusing, ranking, its four formats, and files that are no results."""

import copy
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic import times

from gridwise_py import ArgumentError
from gridwise_py.bench import compare_render, documents
from gridwise_py.bench.canary import CanaryTime, settled
from gridwise_py.bench.compare import compare
from gridwise_py.bench.results import SCHEMA, SCHEMA_VERSION, read_results
from gridwise_py.bench.statistics import summarize
from gridwise_py.bench.verdict import VerdictKind
from gridwise_py.cli import main

BENCH_1 = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "h200" / "bench.json"

H200 = {
    "adapter": "NVIDIA H200",
    "adapter_type": "DiscreteGPU",
    "backend": "Vulkan",
    "vendor": "NVIDIA",
    "driver": "580.159.04",
    "tick_period_ns": 1.0,
    "tick_step_ns": 32.0,
}
LAVAPIPE = {
    **H200,
    "adapter": "llvmpipe (LLVM 15.0.7, 256 bits)",
    "adapter_type": "CPU",
    "vendor": "Mesa",
    "driver": "llvmpipe",
    "tick_step_ns": 1.0,
}


def _series(samples):
    return {"samples_ns": list(samples), "summary": vars(summarize(samples)), "invalid": {}}


def _entry(rng, primitive="scan", n=1 << 20, kernels=("upsweep", "downsweep"), mode="hot", scale=1.0, **more):
    parts = [times("independent", 60, rng, level_ns=scale * 1e5 * (i + 1), sd=0.004) for i in range(len(kernels))]
    span = np.sum(parts, axis=0) + 6400
    wall = span + 91_000
    entry = {
        "primitive": primitive,
        "n": n,
        "mode": mode,
        "datatype": "u32",
        "op": "add",
        "case": {"datatype": "u32", "op": "add"},
        "position": 0,
        "correct": True,
        "mismatch": None,
        "error": None,
        "trials": 1,
        "kernels": [
            {"label": label, "gpu_ns": float(np.median(x)), **_series(x.tolist())}
            for label, x in zip(kernels, parts, strict=True)
        ],
        "whole": {
            "gpu_span_ns": float(np.median(span)),
            "cpu_wall_ns": float(np.median(wall)),
            "series": {"gpu_span": _series(span.tolist()), "cpu_wall": _series(wall.tolist())},
        },
        "cold_start_ns": 1e7,
        "work": {"items": n, "read_bytes": 4 * n, "write_bytes": 4 * n, "flops": n},
        "rates": {"gbytes_per_s": 8 * n / float(np.median(span)), "gitems_per_s": n / float(np.median(span))},
        "parameters": {},
        "protocol": {},
        "shaders_sha256": [],
        "stop_reason": "interval",
        "clock_moved": False,
        "canary_ns": [],
        "warnings": [],
        "observations": {},
        "tick_period_ns": 1.0,
        "ticks": None,
        "samples": [],
    }
    return entry | more


def _document(seed=1, device=H200, entries=None, **more):
    rng = np.random.default_rng(seed)
    if entries is None:
        entries = [
            _entry(rng, "copy", kernels=("copy",)),
            _entry(rng),
            _entry(rng, n=1 << 24, scale=16),
            _entry(rng, "reduce", mode="latency"),
        ]
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "context": {
            "time": "2026-01-01T00:00:00+00:00",
            "versions": {"gridwise_py": "0", "wgpu": "0", "numpy": "0", "python": "3"},
            "host": {"system": "Linux", "release": "6", "machine": "x86_64", "cpu_count": 2},
            "git": None,
            "seed": 0,
            "command": None,
        },
        "device": {
            "features": [], "limits": {}, "subgroup_size": 32, "tick_period_source": None, "wait_method": "device_poll",
            "floors": None, "calibration": None, **device,
        },
        "protocol": {},
        "complete": True,
        "ticks_file": None,
        "results": entries,
    } | more  # fmt: skip


def _scaled(document, index, kernel, factor):
    """The same file with one kernel slower."""
    document = copy.deepcopy(document)
    found = document["results"][index]["kernels"][kernel]
    found["samples_ns"] = [factor * t for t in found["samples_ns"]]
    found["gpu_ns"] *= factor
    return document


@pytest.fixture
def run(tmp_path):
    """Write two documents (or texts), run the command on them, and return its result."""

    def run(old, new, *options):
        paths = []
        for name, content in (("old.json", old), ("new.json", new)):
            path = tmp_path / name
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return CliRunner().invoke(main, ["compare", *paths, *options])

    return run


# ---- exit codes


def test_a_file_against_itself(run):
    a = _document()
    found = run(a, a)
    assert found.exit_code == 0, found.output
    assert "12 rows: 12 same" in found.output
    assert "NVIDIA H200" in found.output


def test_two_runs_of_the_same_thing(run):
    found = run(_document(1), _document(2))
    assert found.exit_code == 0, found.output
    assert "slower" not in found.output.splitlines()[-1].split("slower by")[0]


@pytest.mark.parametrize("kernel", [0, 1])
@pytest.mark.parametrize("case", [1, 2, 3])
def test_one_kernel_slower(run, case, kernel):
    a = _document()
    found = run(a, _scaled(a, case, kernel, 1.2))
    assert found.exit_code == 1, found.output
    assert found.output.count("slower, past the gate") == 1


def test_one_kernel_faster_is_no_regression(run):
    a = _document()
    found = run(a, _scaled(a, 1, 0, 0.8))
    assert found.exit_code == 0
    assert "1 faster" in found.output


def test_the_gate(run):
    a = _document()
    b = _scaled(a, 1, 0, 1.1)
    assert run(a, b).exit_code == 1
    assert run(a, b, "--gate", "15%").exit_code == 0
    assert run(a, b, "--gate", "0.15", "--threshold", "1 %").exit_code == 0
    assert "1 slower" in run(a, b, "--gate", "15%").output


def test_a_cpu_against_a_gpu_is_never_compared(run):
    for options in ((), ("--force",)):
        found = run(_document(device=LAVAPIPE), _document(), *options)
        assert found.exit_code == 3
        assert "--across" in found.output


@pytest.mark.parametrize("name", ["adapter", "driver", "backend"])
def test_another_device_is_compared_by_force_only(run, name):
    a, b = _document(), _document(device={**H200, name: "another"})
    found = run(a, b)
    assert found.exit_code == 3
    assert f"{name}: OLD has {H200[name]}, NEW has another" in found.output
    assert "verdict" not in found.output
    forced = run(a, b, "--force")
    assert forced.exit_code == 0
    assert "by force" in forced.output


def test_other_modes_are_compared_by_force_only(run):
    rng = np.random.default_rng(1)
    a, b = _document(entries=[_entry(rng)]), _document(entries=[_entry(rng), _entry(rng, mode="cold")])
    found = run(a, b)
    assert found.exit_code == 3
    assert "OLD has hot, NEW has cold, hot" in found.output
    assert run(a, b, "--force").exit_code == 0


def test_nothing_in_common(run):
    rng = np.random.default_rng(1)
    found = run(_document(entries=[_entry(rng)]), _document(entries=[_entry(rng, n=7)]), "--force")
    assert found.exit_code == 3
    assert "no case in common" in found.output


@pytest.mark.parametrize("side", [0, 1])
def test_a_wrong_result_inside(run, side):
    files = [_document(), _document()]
    files[side]["results"][1] |= {"correct": False, "mismatch": "item 7 is 3, expected 4"}
    found = run(*files)
    assert found.exit_code == 4
    assert ("OLD", "NEW")[side] + ": scan" in found.output
    assert "item 7 is 3, expected 4" in found.output.replace("\n", " ")
    assert run(*files, "--across").exit_code == 4


def test_a_case_that_no_longer_runs(run):
    a, b = _document(), _document()
    b["results"][1] |= {"correct": False, "error": "DeviceError: lost", "kernels": []}
    found = run(a, b)
    assert found.exit_code == 1
    assert "no longer runs" in found.output
    assert run(b, a).exit_code == 0
    assert run(b, b).exit_code == 0


# ---- bad input


def _nan(text):
    document = json.loads(text)
    document["results"][1]["kernels"][0]["samples_ns"][7] = math.nan
    return json.dumps(document)


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda text: text[: len(text) // 2], "line 1, column"),
        (lambda text: text.rstrip("}")[:-9], "cut off"),
        (lambda text: "", "old.json"),
        (lambda text: "hello", "line 1, column 1"),
        (lambda text: '{"benchmarks": [], "context": {}}', "schema"),
        (lambda text: "[1, 2]", "gridwise bench"),
        (lambda text: text.replace('"schema_version": ', '"schema_version": 9'), "newer"),
        (lambda text: text.replace('"schema_version": ', '"schema_version": -'), "schema_version"),
        (_nan, "NaN|nan"),
        (lambda text: text.replace('"position": 0', '"position": 1e999', 1), "inf|1e999"),
        (lambda text: text.replace('"results": [', '"results": [3, '), r"results\[0\]"),
        (lambda text: text.replace('"kernels"', '"cores"'), "kernels"),
        (lambda text: text.replace('"samples_ns": [', '"samples_ns": ["x", '), r"results\[\d+\]"),
        (lambda text: "[" * 100_000, "old.json"),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_files_that_are_no_results(run, spoil, place, side):
    import re

    texts = [json.dumps(_document())] * 2
    texts[side] = spoil(texts[side])
    found = run(*texts)
    assert found.exit_code == 2, found.output
    assert ("old.json", "new.json")[side] in found.output
    assert re.search(place.replace("old.json", ("old.json", "new.json")[side]), found.output), found.output
    assert "Traceback" not in found.output


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(_document()), encoding="utf-8")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    for other in ("none.json", "b.json", "."):
        found = CliRunner().invoke(main, ["compare", str(tmp_path / "a.json"), str(tmp_path / other)])
        assert found.exit_code == 2
        assert "Traceback" not in found.output


@pytest.mark.parametrize("option", ["--threshold", "--gate"])
@pytest.mark.parametrize("value", ["5", "x%", "-1%", "nan", "100%"])
def test_bad_shares(run, option, value):
    assert run(_document(), _document(), option, value).exit_code == 2


def test_the_output_is_whole_and_no_input(run, tmp_path):
    a = _document()
    out = tmp_path / "out.md"
    assert run(a, a, "-o", str(out), "--format", "markdown").exit_code == 0
    assert out.read_text(encoding="utf-8").startswith("### NVIDIA H200")
    assert run(a, _scaled(a, 1, 0, 1.5), "-o", str(out), "--format", "json").exit_code == 1
    assert json.loads(out.read_text(encoding="utf-8"))["regressed"] is True
    assert run(a, a, "-o", str(tmp_path / "new.json")).exit_code == 2
    assert json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))["schema"] == SCHEMA
    assert run(a, a, "-o", str(tmp_path / "no" / "out")).exit_code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"old.json", "new.json", "out.md"}


# ---- rows


def test_every_whole_and_every_kernel_has_a_row():
    a = _document()
    found = compare(a, a)
    assert [(row.case.split()[0], row.part, row.name) for row in found.rows[:5]] == [
        ("copy", "whole", "gpu_span"),
        ("copy", "kernel", "copy"),
        ("scan", "whole", "gpu_span"),
        ("scan", "kernel", "upsweep"),
        ("scan", "kernel", "downsweep"),
    ]
    assert [row.name for row in found.rows[-4:]] == ["gpu_span", "cpu_wall", "upsweep", "downsweep"]
    assert found.counts()["same"] == len(found.rows) == 12


def test_the_order_in_a_file_does_not_matter():
    a = _document()
    b = {**a, "results": a["results"][::-1]}
    assert compare(a, b).counts() == compare(a, a).counts()


def test_axes_are_part_of_the_case():
    rng = np.random.default_rng(1)
    entries = [_entry(rng, case={"block": 1}), _entry(rng, case={"block": 2}, scale=2)]
    a = _document(entries=entries)
    found = compare(a, a)
    assert len({row.case for row in found.rows}) == 2
    assert found.counts()["same"] == 6


def test_kernels_of_one_label_are_kept_apart():
    rng = np.random.default_rng(1)
    a = _document(entries=[_entry(rng, kernels=("pass", "pass"))])
    found = compare(a, _scaled(a, 0, 1, 1.3))
    assert [(row.name, row.past_gate) for row in found.rows[1:]] == [("pass", False), ("pass #2", True)]


def test_kernels_and_cases_of_one_side_are_named():
    rng = np.random.default_rng(1)
    a = _document(entries=[_entry(rng), _entry(rng, n=5)])
    b = _document(entries=[_entry(rng, kernels=("upsweep", "lookback")), _entry(rng, n=6)])
    found = compare(a, b)
    assert [row.name for row in found.rows] == ["gpu_span", "upsweep"]
    assert sum("only in" in note for note in found.notes) == 4


def test_rounds_of_a_case_are_blocks():
    rng = np.random.default_rng(1)
    levels = (1, 1.06, 0.95, 1.02)
    a = _document(entries=[_entry(rng, scale=s) for s in levels])
    b = _document(entries=[_entry(rng, scale=1.03 * s) for s in levels[::-1]])
    found = compare(a, b)
    assert len(found.rows) == 3
    assert {row.verdict.kind for row in found.rows} == {VerdictKind.AMBIGUOUS}
    assert "rounds" in found.rows[0].verdict.settle


def test_without_timestamps_the_wall_is_judged():
    a = _document()
    for entry in a["results"]:
        entry["whole"]["gpu_span_ns"] = None
        del entry["whole"]["series"]["gpu_span"]
        entry["kernels"] = []
    found = compare(a, a)
    assert {row.name for row in found.rows} == {"cpu_wall"}
    assert found.counts()["same"] == 4


def test_no_samples_is_no_verdict(run):
    a = _document()
    a["results"][1]["kernels"][0] |= {"samples_ns": [], "summary": None, "gpu_ns": None}
    found = compare(a, a)
    assert [row.note for row in found.rows if row.verdict is None] == ["no valid samples on a side; measure it again"]
    assert run(a, a).exit_code == 0


def test_clock_and_canary_reach_the_verdict():
    a, b = _document(), _scaled(_document(), 1, 0, 1.2)
    b["results"][1]["clock_moved"] = True
    assert not compare(a, b).regressions
    b["results"][1]["clock_moved"] = False
    assert compare(a, b).regressions
    a["results"][1]["canary_ns"], b["results"][1]["canary_ns"] = [100.0, 101.0], [120.0, 122.0]
    assert not compare(a, b).regressions


def test_canaries_of_blocks_that_were_left_out_tell_nothing():
    """They are at another clock than the samples."""
    a, b = _document(), _scaled(_document(), 1, 0, 1.2)
    a["results"][1]["canary_ns"] = [300.0, 200.0, 250.0, 170.0, 400.0, 150.0, 100.0, 101.0, 100.0, 100.5]
    b["results"][1]["canary_ns"] = [100.0, 100.5, 101.0, 100.0]
    assert compare(a, b).regressions
    b["results"][1]["canary_ns"] = [120.0, 120.5, 121.0, 120.0, 100.0, 200.0]
    assert not compare(a, b).regressions


RUNS = [BENCH_1.parent / "instrument" / f"run{number}.json" for number in (1, 2)]


@pytest.mark.skipif(not all(path.exists() for path in RUNS), reason="needs the repository")
def test_two_runs_of_an_h200():
    """The same thing twice. In the first files blocks at another clock are still among the samples."""
    documents_read = []
    for path in RUNS:
        document = read_results(path)
        for entry in document["results"]:
            if "left_out_blocks" in entry["protocol"]:
                continue
            times = entry["canary_ns"]
            pairs = zip(times[::2], times[1::2], strict=True)
            found = settled([(CanaryTime(before), CanaryTime(after)) for before, after in pairs])
            kept = np.repeat(found.kept, entry["protocol"]["block_trials"])
            for series in (*entry["kernels"], *entry["whole"]["series"].values()):
                if len(series["samples_ns"]) == kept.size:
                    series["samples_ns"] = np.array(series["samples_ns"])[kept].tolist()
            entry["clock_moved"] = found.moved
        documents_read.append(document)
    counts = compare(*documents_read).counts()
    assert counts["faster"] == counts["slower"] == 0
    # Two cases ran at another clock in one of the runs from begin to end, and the times of one wander.
    assert counts["ambiguous"] <= 6 < 0.2 * sum(counts.values()), counts


def test_the_step_is_shared_by_the_trials_of_a_batch():
    a = _document()
    assert documents.tick_step_ns(a, {**a["results"][0], "mode": "batch", "trials": 10}) == 3.2
    assert documents.tick_step_ns(a, {**a["results"][0], "trials": 10}) == 32


def test_a_file_of_the_first_version_is_compared_with_one_of_today(run):
    first = json.loads(BENCH_1.read_text(encoding="utf-8"))
    today = {key: value for key, value in read_results(BENCH_1).items() if key != "upgraded_from"}
    found = run(first, today)
    assert found.exit_code == 0, found.output
    assert "OLD is a file of version 1, without a canary" in " ".join(found.output.split())
    assert "NEW is a file" not in found.output
    # What became slower is found across the versions, too.
    slower = copy.deepcopy(today)
    for entry in slower["results"]:
        for series in (*entry["kernels"], *entry["whole"]["series"].values()):
            series["samples_ns"] = [1.5 * value for value in series["samples_ns"]]
    again = run(first, slower)
    assert again.exit_code == 1, again.output
    forwards, backwards = compare(read_results(BENCH_1), slower), compare(slower, read_results(BENCH_1))
    assert forwards.counts()["slower"] == backwards.counts()["faster"] > 0


def test_bad_gate():
    with pytest.raises(ArgumentError, match="gate"):
        compare(_document(), _document(), gate=-1)


# ---- across


POWER = {"blocks": [{"before": {"power_w": 90.0}, "after": {"power_w": power}} for power in (400.0, 600.0)]}


def test_across_ranks(run):
    rng = np.random.default_rng(1)
    slow = [_entry(rng, "copy", kernels=("copy",), scale=2), _entry(rng, scale=3)]
    fast = [_entry(rng, "copy", kernels=("copy",)), _entry(rng, observations=POWER)]
    old, new = _document(device=LAVAPIPE, entries=slow), _document(entries=fast)
    found = compare(old, new, across=True)
    assert [(r.case.split()[0], r.rank, r.adapter.split()[0]) for r in found.ranks] == [
        ("copy", 1, "NVIDIA"),
        ("copy", 2, "llvmpipe"),
        ("scan", 1, "NVIDIA"),
        ("scan", 2, "llvmpipe"),
    ]
    first = found.ranks[2]
    assert found.ranks[0].copy_share == 1
    assert first.copy_share == pytest.approx(first.gbytes_per_s / found.ranks[0].gbytes_per_s)
    assert first.gbytes_per_j == pytest.approx(first.gbytes_per_s / 500)
    assert found.ranks[3].gbytes_per_j is None
    shown = run(old, new, "--across")
    assert shown.exit_code == 0
    assert "software on the CPU" in shown.output
    for form in ("markdown", "json", "junit"):
        assert run(old, new, "--across", "--format", form).exit_code == 0


# ---- formats

NASTY = "a<b>&\"'|[bold]x[/bold]`*\x1b[31m\x00"


@pytest.fixture
def nasty():
    a = _document()
    for entry in a["results"]:
        entry["kernels"][0]["label"] = NASTY
    return a


def test_table_shows_labels_as_they_are(nasty):
    text = compare_render.render(compare(nasty, nasty), "table")
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text


def test_markdown_is_a_table(nasty):
    text = compare_render.render(compare(nasty, _scaled(nasty, 1, 0, 1.2)), "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 14
    assert {len([c for c in row.replace("\\|", "").split("|")]) for row in rows} == {9}
    assert "\x1b" not in text
    assert "slower, past the gate" in text


def test_json_has_everything(nasty):
    data = json.loads(compare_render.render(compare(nasty, _scaled(nasty, 1, 0, 1.2)), "json"))
    assert data["schema"] == "gridwise.compare"
    assert data["regressed"] is True
    (row,) = [row for row in data["rows"] if row["past_gate"]]
    assert row["verdict"]["kind"] == "slower"
    assert row["verdict"]["ratio"] == pytest.approx(1.2)


def test_junit_is_xml(nasty):
    text = compare_render.render(compare(nasty, _scaled(nasty, 1, 0, 1.2)), "junit")
    suite = ElementTree.fromstring(text)
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(len(cases)), "1", "0")
    (failed,) = [case for case in cases if case.find("failure") is not None]
    assert failed.get("name").startswith("a<b>&\"'|[bold]")
    broken = _document()
    broken["results"][0] |= {"correct": False, "mismatch": "item 0"}
    assert ElementTree.fromstring(compare_render.render(compare(broken, broken), "junit")).get("errors") == "2"
    refused = compare_render.render(compare(_document(device=LAVAPIPE), _document()), "junit")
    assert int(ElementTree.fromstring(refused).get("errors")) >= 1


@pytest.mark.parametrize("form", sorted(compare_render.FORMATS))
def test_every_format_says_why_not(form):
    text = compare_render.render(compare(_document(device=LAVAPIPE), _document()), form)
    assert "--across" in text.replace("\\", "")
