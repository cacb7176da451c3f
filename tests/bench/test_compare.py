"""`gridwise compare`: joining, gating, refusing, ranking, its four formats, and files that are no results."""

import copy
import dataclasses
import io
import json
import lzma
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from gridwise_py import ArgumentError
from gridwise_py.bench.analysis.compare import compare as compare_results
from gridwise_py.bench.calibrate.canary import CanaryTime, settled
from gridwise_py.bench.cases.mode import Mode
from gridwise_py.bench.report import comparison as compare_render
from gridwise_py.bench.report.console import make_console
from gridwise_py.bench.results.model import SCHEMA
from gridwise_py.bench.results.rounds import pooled
from gridwise_py.bench.stats.verdict import Cause, VerdictKind
from gridwise_py.cli import main
from helpers.comparisons import CODE, H200, LAVAPIPE, coded, document, entry, scaled, series
from helpers.paths import RESULTS
from helpers.results import loaded

BENCH = RESULTS / "h200" / "bench.json"


def compare(old, new, **options):
    """Compare two documents that are JSON data."""
    return compare_results(loaded(coded(old)), loaded(coded(new)), **options)


@pytest.fixture
def run(tmp_path):
    """Write two documents (or texts), run the command on them, and return its result."""

    def run(old, new, *options):
        paths = []
        for name, content in (("old.json", old), ("new.json", new)):
            path = tmp_path / name
            text = content if isinstance(content, str) else json.dumps(coded(content))
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return CliRunner().invoke(main, ["compare", *paths, *options])

    return run


# ---- exit codes


def test_a_file_against_itself(run):
    a = document()
    found = run(a, a)
    assert found.exit_code == 0, found.output
    assert "12 rows: 12 same" in found.output
    assert "NVIDIA H200" in found.output
    assert found.output.count("OLD and NEW are the same measurement: all of their times are equal") == 1
    again = run(a, {**document(2), "results": document(2)["results"][::-1]})
    assert (again.exit_code, "1 slower" in again.output) == (0, False), "two runs of the same thing, in another order"


def test_what_only_one_file_had_is_marked(run):
    """A held clock, and environment variables that change times."""

    def notes(old, new, **options):
        a, b = (document(entries=[_single(np.random.default_rng(seed))]) for seed in (1, 2))
        for side, more in ((a, old), (b, new)):
            side["context"] = {**side["context"], **more}
        return a, b, compare(a, b, **options).notes

    for old, new, said in (
        ("held", "not held", "OLD held the GPU's clock, and NEW did not hold it"),
        ("not held", "held", "NEW held the GPU's clock, and OLD did not hold it"),
        ("held", None, "OLD held the GPU's clock, and NEW may not have held it"),
        ("held", "held", None),
        (None, "not held", None),
    ):
        a, b, found = notes(*({} if clock is None else {"clock": clock} for clock in (old, new)))
        assert [note.startswith(said) for note in found] == ([] if said is None else [True])
        assert said is None or new is None or said in " ".join(run(a, b).output.split())
    for across, old, new, said in (
        (True, False, True, "{1} was measured with GRIDWISE_LAUNCH_BLOCKING=1, and {0} was measured without it"),
        (False, True, None, "{0} was measured with GRIDWISE_LAUNCH_BLOCKING=1, and {1} does not say"),
        (False, True, True, None),
        (False, False, None, None),
        (False, None, None, None),
    ):
        states = ({} if state is None else {"settings": {"launch_blocking": state}} for state in (old, new))
        _, _, found = notes(*states, across=across)
        sides = ("A", "B") if across else ("OLD", "NEW")
        wanted = [] if said is None else [said.format(*sides)]
        assert [note[: len(text)] for note, text in zip(found, wanted, strict=True)] == wanted


def test_times_with_other_run_time_checks_are_not_judged(run):
    def files(primitive, old, new, **context):
        made = [document(entries=[entry(np.random.default_rng(seed), primitive)]) for seed in (1, 2)]
        made[0]["context"] |= context
        for file, level in zip(made, (old, new), strict=True):
            for kernel in file["results"][0]["kernels"] if level else ():
                kernel["shader_checks"] = level
        return made

    mine = "my.fma"  # of a file that does not say: all checks
    for primitive, old, new, context, told in (
        (mine, None, "all", {}, None),
        (mine, None, "bounds", {}, "OLD all, NEW bounds"),
        (mine, None, "none", {}, "OLD all, NEW none"),
        (mine, "bounds", "none", {}, "OLD bounds, NEW none"),
        (mine, "none", None, {}, "OLD none, NEW all"),
        (mine, "bounds", "bounds", {}, None),
        ("scan", None, "none", {}, None),
        ("scan", None, "all", {}, "OLD none, NEW all"),
        ("scan", None, "all", {"settings": {"shader_checks": True}}, None),
        ("scan", None, "all", {"versions": {**document()["context"]["versions"], "dawn": "1"}}, None),
        (mine, None, "none", {"settings": {"dawn.disable_robustness": True}}, None),
    ):
        a, b = files(primitive, old, new, **context)
        c = compare(a, b)
        judged = [row.verdict is not None for row in c.rows]
        assert judged == [told is None] * len(judged), (primitive, old, new)
        notes = [note for note in c.notes if "run-time checks" in note]
        assert len(notes) == (told is not None)
        assert told is None or f"({told}: {primitive}" in notes[0]
        assert told is None or (c.undecided_share and {row.note for row in c.rows} == {"the run-time checks differ"})
        ranked = compare(a, b, across=True).notes
        assert any("run-time checks" in note for note in ranked) == (told is not None)


def test_settings_that_change_a_time_are_marked():
    """With 200 trials in a pass its overhead is hardly there; with one it is part of the time."""
    a, b = document(), document(seed=2)
    for side, trials in ((a, 1), (b, 200)):
        side["protocol"] = {**side["protocol"], "batch_trials": trials, "flush_bytes": 1 << 20, "warmup_s": trials}
    assert compare(a, b).notes == (), "there is no row of mode batch"
    for side in (a, b):
        for result in side["results"]:
            result["mode"] = "batch"
    (note,) = compare(a, b).notes
    assert note.startswith("OLD has batch_trials = 1, NEW 200, so rows of mode batch may differ")
    assert compare(a, a).notes == ()


def test_walls_without_timestamps_count_for_the_gate():
    a, b = document(), document(seed=2)
    for result in (*a["results"], *b["results"]):
        result["whole"]["series"] = {"cpu_wall": result["whole"]["series"]["gpu_span"]}
        result |= {"kernels": []}
        result["whole"] |= {"gpu_span_ns": None, "cpu_wall_ns": result["whole"]["series"]["cpu_wall"]["samples_ns"][0]}
    assert {(row.name, row.gated) for row in compare(a, b).rows} == {("cpu_wall", True)}


def test_another_number_of_cpus_is_another_machine(run):
    a, b = document(), document(seed=2)
    b["context"] = {**b["context"], "host": {**b["context"]["host"], "cpu_count": 99}}
    done = run(a, b)
    assert (done.exit_code, "CPUs: OLD has " in done.output) == (3, True)
    assert run(a, b, "--force").exit_code == 0
    assert run(a, b, "--across").exit_code == 0


def _in_processes(seed, factor):
    """Return results of a case in five processes, beside other work."""
    rng = np.random.default_rng(seed)
    return [{**_single(rng, scale=factor), "process": process, "other_load": 0.5} for process in range(5)]


def test_a_machine_that_is_always_busy(monkeypatch):
    """Rows are judged by their intervals where that is asked for, and say so."""
    files = [document(device=LAVAPIPE, entries=_in_processes(*one)) for one in ((1, 1.0), (2, 2.0))]
    (row,) = compare(*files).rows
    assert (row.verdict.cause, "GRIDWISE_JUDGE_BUSY=1" in row.verdict.settle) == (Cause.MACHINE, True)
    monkeypatch.setenv("GRIDWISE_JUDGE_BUSY", "1")
    (row,) = compare(*files).rows
    assert (row.verdict.kind, row.past_gate) == (VerdictKind.SLOWER, True)
    assert row.verdict.reason.endswith("; beside other work (GRIDWISE_JUDGE_BUSY)")


def test_a_file_that_lacks_results_is_marked(run):
    a, b = document(), document(seed=2)
    b |= {"complete": False, "planned": 40}
    (note,) = compare(a, b).notes
    assert note.startswith(f"NEW is not complete: it has {len(b['results'])} of 40 results")
    assert "NEW is not complete" in run(a, b).output


def test_a_row_that_is_open_says_by_how_much():
    a, b = document(), document(seed=2)
    rng = np.random.default_rng(3)
    for side in (a, b):
        side["results"][0]["whole"]["series"]["gpu_span"] = series(
            (1e5 * np.exp(0.3 * rng.standard_normal(60))).tolist()
        )
    found = compare(a, b)
    row = next(row for row in found.rows if row.verdict.cause is not None)

    def line_of(**evidence):
        made = dataclasses.replace(
            row,
            verdict=dataclasses.replace(
                row.verdict, cause=Cause.SPREAD, unit="process", old_units=5, new_units=4, threshold=0.02, **evidence
            ),
        )
        header, line, *_ = compare_render.comparison_remarks(dataclasses.replace(found, rows=(made,)))
        assert header.startswith("1 row ambiguous: the samples of a round differ")
        return line.removeprefix(f"{row.case}: ")

    # Beyond the threshold, the interval of 95 % matters.
    beyond = {"ratio": 1.05, "low": 1.01, "high": 1.09, "same_low": 0.5, "same_high": 2.0}
    line = line_of(**beyond, needed=12)
    reach, enough = 1.05 / 1.01 - 1, 1.05 / 1.02 - 1
    assert line == (
        f"its 95 % interval is ±{100 * reach:.1f} %; ±{100 * enough:.1f} % would settle it: about 12 processes of "
        "each, now 5 and 4"
    )
    # Within it, that of 90 %, which `same` needs.
    within = {"ratio": 0.99, "low": 0.1, "high": 9.0, "same_low": 0.96, "same_high": 1.02}
    reach, enough = 0.99 / 0.96 - 1, 0.99 * 1.02 - 1
    settled = f"its 90 % interval is ±{100 * reach:.1f} %; ±{100 * enough:.1f} % would settle it"
    assert line_of(**within, needed=None) == settled
    assert line_of(**{**within, "same_high": 9.9}, needed=None).startswith("its 90 % interval is × or ÷ 10.0;")
    assert line_of(**{**within, "same_high": 1e5}, needed=None).startswith("its 90 % interval is over × or ÷ 100;")


def test_one_measurement_is_the_same_however_noisy_it_is(run):
    """Two files with equal times are not two runs: no interval says anything of them."""
    a = document()
    rng = np.random.default_rng(5)
    noisy = (1e5 * np.exp(np.cumsum(rng.standard_normal(130)))).tolist()
    for result in a["results"]:
        result["whole"]["series"]["gpu_span"] = series(noisy)
    b = {**a, "context": {**a["context"], "command": ["bench"]}}
    found = run(a, b)
    assert "12 rows: 12 same" in found.output
    assert "the same measurement" in found.output
    other = copy.deepcopy(a)
    other["results"][0]["whole"]["series"]["gpu_span"] = series(noisy[::-1])
    again = compare(a, other)
    assert "the same measurement" not in run(a, other).output
    assert again.rows[0].verdict.high > 1e6
    assert compare_render.row_cells(again.rows[0])[5] == "too noisy: over × 100"


def test_one_kernel_slower_or_faster(run):
    a = document()
    found = run(a, scaled(a, 1, 0, 1.2))
    assert found.exit_code == 1, found.output
    assert found.output.count("slower, past the gate") == 1
    for case, kernel in ((1, 1), (2, 0), (2, 1)):
        assert len(compare(a, scaled(a, case, kernel, 1.2)).regressions) == 1
    found = run(a, scaled(a, 1, 0, 0.8))
    assert (found.exit_code, "1 faster" in found.output) == (0, True), "that is no regression"


def test_two_single_processes_tell_nothing_in_mode_latency(run):
    a = document()
    found = run(a, scaled(a, 3, 1, 1.2))
    assert found.exit_code == 0, found.output
    assert found.output.count("ambiguous: measured in one process") == 1
    assert "8 same code, 4 ambiguous" in found.output


def test_the_gate(run):
    a = document()
    b = scaled(a, 1, 0, 1.1)
    assert run(a, b).exit_code == 1
    assert run(a, b, "--gate", "15%").exit_code == 0
    assert run(a, b, "--gate", "0.15", "--threshold", "1 %").exit_code == 0
    assert "1 slower" in run(a, b, "--gate", "15%").output


def test_ambiguous_rows_fail_where_that_is_asked_for(run):
    """Single rounds of a CPU adapter: whatever they are, they are neither faster nor slower."""
    a, b = document(device=LAVAPIPE), scaled(document(device=LAVAPIPE), 1, 0, 1.1)
    assert run(a, b).exit_code == 0
    assert run(a, b, "--fail-ambiguous").exit_code == 7
    assert run(a, a, "--fail-ambiguous").exit_code == 0
    assert run(document(), scaled(document(), 1, 0, 1.1), "--fail-ambiguous").exit_code == 1, "a regression comes first"


def test_a_cpu_against_a_gpu_is_never_compared(run):
    for options in ((), ("--force",)):
        found = run(document(device=LAVAPIPE), document(), *options)
        assert found.exit_code == 3
        assert "--across" in found.output


def test_another_device_is_compared_by_force_only(run):
    a = document()
    for name in ("adapter", "driver", "backend"):
        other = document(device={**H200, name: "another"})
        found = compare(a, other)
        assert f"{name}: OLD has {H200[name]}, NEW has another" in found.obstacles
        assert not found.rows
        assert compare(a, other, force=True).rows
    found = run(a, other)
    assert found.exit_code == 3
    assert "verdict" not in found.output
    assert "or compare them with --force" in found.output
    forced = run(a, other, "--force")
    assert forced.exit_code == 0
    assert f"compared although they differ (--force): {name}: OLD has" in forced.output.replace("\n  ", " ")


def test_other_modes_are_compared_by_force_only(run):
    rng = np.random.default_rng(1)
    a, b = document(entries=[entry(rng)]), document(entries=[entry(rng), entry(rng, mode="cold")])
    found = run(a, b)
    assert found.exit_code == 3
    assert "OLD has hot, NEW has cold, hot" in found.output
    assert run(a, b, "--force").exit_code == 0


def test_nothing_in_common(run):
    rng = np.random.default_rng(1)
    found = run(document(entries=[entry(rng)]), document(entries=[entry(rng, n=7)]), "--force")
    assert found.exit_code == 3
    said = " ".join(found.output.split())
    assert "no case in common: OLD has scan add u32 hot n=2^20; NEW has scan add u32 hot n=7" in said


def test_a_wrong_result_inside(run):
    for side in (0, 1):
        files = [document(), document()]
        files[side]["results"][1] |= {"correct": False, "mismatch": "item 7 is 3, expected 4"}
        found = run(*files)
        assert found.exit_code == 4
        assert ("OLD", "NEW")[side] + ": scan" in found.output
        assert "item 7 is 3, expected 4" in found.output.replace("\n", " ")
    assert run(*files, "--across").exit_code == 4


def test_a_case_that_no_longer_runs(run):
    a, b = document(), document()
    b["results"][1] |= {"correct": False, "error": "DeviceError: lost", "kernels": []}
    found = run(a, b)
    assert found.exit_code == 1
    assert "no longer runs" in found.output
    assert run(b, a).exit_code == 0
    assert run(b, b).exit_code == 0


# ---- bad input


def test_files_that_are_no_results(run):
    """As tests of results files have it in whole; on either side, in one line."""
    good = json.dumps(document())
    for spoil, place in (
        (lambda text: text.rstrip("}")[:-9], "cut off"),
        (lambda text: "", "empty"),
        (lambda text: '{"benchmarks": [], "context": {}}', "schema"),
        (lambda text: text.replace('"results": [', '"results": [3, '), r"results\[0\]"),
        (lambda text: text.replace('"kernels"', '"cores"'), "kernels"),
        (lambda text: text.replace('"samples_ns": [', '"samples_ns": ["x", '), r"results\[\d+\]"),
    ):
        for texts, name in (((spoil(good), good), "old.json"), ((good, spoil(good)), "new.json")):
            found = run(*texts)
            assert found.exit_code == 2, found.output
            assert re.search(f"{name}.*{place}", " ".join(found.output.split())), found.output
            assert "Traceback" not in found.output


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(document()), encoding="utf-8")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    for other in ("none.json", "b.json", "."):
        found = CliRunner().invoke(main, ["compare", str(tmp_path / "a.json"), str(tmp_path / other)])
        assert found.exit_code == 2
        assert "Traceback" not in found.output


def test_bad_shares(run):
    a = document()
    for option, value in (("--threshold", "5"), ("--gate", "x%"), ("--gate", "-1%"), ("--threshold", "nan"),
                          ("--gate", "100%")):  # fmt: skip
        assert run(a, a, option, value).exit_code == 2
    with pytest.raises(ArgumentError, match="gate"):
        compare(a, a, gate=-1)


def test_the_output_is_whole_and_no_input(run, tmp_path):
    a = document()
    out = tmp_path / "out.md"
    assert run(a, a, "-o", str(out), "--format", "markdown").exit_code == 0
    assert out.read_text(encoding="utf-8").startswith("### NVIDIA H200")
    assert run(a, scaled(a, 1, 0, 1.5), "-o", str(out), "--format", "json").exit_code == 1
    assert json.loads(out.read_text(encoding="utf-8"))["regressed"] is True
    assert run(a, a, "-o", str(tmp_path / "new.json")).exit_code == 2
    assert json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))["schema"] == SCHEMA
    assert run(a, a, "-o", str(tmp_path / "no" / "out")).exit_code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"old.json", "new.json", "out.md"}


# ---- rows


def test_every_whole_and_every_kernel_has_a_row():
    a = document()
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


def test_axes_are_part_of_the_case():
    rng = np.random.default_rng(1)
    entries = [entry(rng, case={"block": 1}), entry(rng, case={"block": 2}, scale=2)]
    a = document(entries=entries)
    found = compare(a, a)
    assert len({row.case for row in found.rows}) == 2
    assert found.counts()["same"] == 6


def test_kernels_of_one_label_are_kept_apart():
    rng = np.random.default_rng(1)
    a = document(entries=[entry(rng, kernels=("pass", "pass"))])
    found = compare(a, scaled(a, 0, 1, 1.3))
    assert [(row.name, row.past_gate) for row in found.rows[1:]] == [("pass", False), ("pass #2", True)]


def test_many_kernels_of_one_label_are_judged_as_one():
    rng = np.random.default_rng(1)
    a = document(entries=[entry(rng, kernels=("step",) * 78)])
    assert [row.name for row in compare(a, a).rows] == ["gpu_span", "step × 78"]
    slower = copy.deepcopy(a)
    for k in range(78):
        slower = scaled(slower, 0, k, 1.3)
    (_, row) = compare(a, slower).rows
    assert row.past_gate
    assert row.verdict.ratio == pytest.approx(1.3)
    other = document(entries=[entry(rng, kernels=("step",) * 77)])
    assert [row.name for row in compare(a, other).rows] == ["gpu_span"]


def test_kernels_and_cases_of_one_side_are_named():
    rng = np.random.default_rng(1)
    a = document(entries=[entry(rng), entry(rng, n=5)])
    b = document(entries=[entry(rng, kernels=("upsweep", "lookback")), entry(rng, n=6)])
    found = compare(a, b)
    assert [row.name for row in found.rows] == ["gpu_span", "upsweep"]
    assert sum("only in" in note for note in found.notes) == 4


def test_rounds_of_a_case_are_blocks():
    rng = np.random.default_rng(1)
    levels = (1, 1.06, 0.95, 1.02)
    a = document(entries=[entry(rng, scale=s) for s in levels])
    b = document(entries=[entry(rng, scale=1.03 * s) for s in levels[::-1]])
    found = compare(a, b)
    assert len(found.rows) == 3
    assert {row.verdict.kind for row in found.rows} == {VerdictKind.AMBIGUOUS}
    assert "rounds" in found.rows[0].verdict.settle


def test_without_timestamps_the_wall_is_judged():
    a = document()
    for result in a["results"]:
        result["whole"]["gpu_span_ns"] = None
        del result["whole"]["series"]["gpu_span"]
        result["kernels"] = []
    found = compare(a, a)
    assert {row.name for row in found.rows} == {"cpu_wall"}
    assert found.counts()["same"] == 4


def test_no_samples_is_no_verdict(run):
    a = document()
    a["results"][1]["kernels"][0] |= {"samples_ns": [], "summary": None, "gpu_ns": None}
    found = compare(a, a)
    assert [row.note for row in found.rows if row.verdict is None] == ["no valid samples on a side; measure it again"]
    assert run(a, a).exit_code == 0


def test_clock_and_canary_reach_the_verdict():
    a, b = document(), scaled(document(), 1, 0, 1.2)
    b["results"][1]["clock_moved"] = True
    assert not compare(a, b).regressions
    b["results"][1]["clock_moved"] = False
    assert compare(a, b).regressions
    a["results"][1]["canary_ns"], b["results"][1]["canary_ns"] = [100.0, 101.0], [120.0, 122.0]
    assert not compare(a, b).regressions


def test_canaries_of_blocks_that_were_left_out_tell_nothing():
    """They are at another clock than the samples."""
    a, b = document(), scaled(document(), 1, 0, 1.2)
    a["results"][1]["canary_ns"] = [300.0, 200.0, 250.0, 170.0, 400.0, 150.0, 100.0, 101.0, 100.0, 100.5]
    b["results"][1]["canary_ns"] = [100.0, 100.5, 101.0, 100.0]
    assert compare(a, b).regressions
    b["results"][1]["canary_ns"] = [120.0, 120.5, 121.0, 120.0, 100.0, 200.0]
    assert not compare(a, b).regressions


RUNS = [BENCH.parent / "instrument" / f"run{number}.json.xz" for number in (1, 2)]


@pytest.mark.needs("the repository")
def test_two_runs_of_an_h200():
    """The same thing twice. In the first files blocks at another clock are still among the samples."""
    read = []
    for path in RUNS:
        data = json.loads(lzma.decompress(path.read_bytes()))
        for result in data["results"]:
            if "left_out_blocks" in result["protocol"]:
                continue
            times = result["canary_ns"]
            pairs = zip(times[::2], times[1::2], strict=True)
            found = settled([(CanaryTime(before), CanaryTime(after)) for before, after in pairs])
            kept = np.repeat(found.kept, result["protocol"]["block_trials"])
            for found_series in (*result["kernels"], *result["whole"]["series"].values()):
                if len(found_series["samples_ns"]) == kept.size:
                    found_series["samples_ns"] = np.array(found_series["samples_ns"])[kept].tolist()
            result["clock_moved"] = found.moved
        read.append(data)
    counts = compare(*read).counts()
    assert counts["faster"] == counts["slower"] == 0
    # Two cases ran at another clock in one of the runs from begin to end, and the times of one wander.
    assert counts["ambiguous"] <= 3 < 0.2 * sum(counts.values()), counts


def test_the_step_is_shared_by_the_trials_of_a_batch():
    a = loaded(document())
    (first, *_) = a.results
    assert a.tick_step_ns(dataclasses.replace(first, mode=Mode.BATCH, trials=10)) == 3.2
    assert a.tick_step_ns(dataclasses.replace(first, trials=10)) == 32


def test_cases_come_in_the_order_asked_for():
    """That of the positions; in a file that is not complete the results are in the order of measuring."""
    rng = np.random.default_rng(1)
    sizes = [1 << 12, 1 << 16, 1 << 20]
    entries = [entry(rng, n=n, position=i) for i, n in enumerate(sizes)]
    a = document(entries=[entries[2], entries[0], entries[1]])
    b = document(entries=[entries[1], entries[2], entries[0]])
    assert list(dict.fromkeys(row.case for row in compare(a, b).rows)) == [
        "scan add u32 hot n=2^12", "scan add u32 hot n=2^16", "scan add u32 hot n=2^20",
    ]  # fmt: skip
    assert [rank.case for rank in compare(a, b, across=True).ranks[::2]] == [
        f"scan add u32 hot n=2^{k}" for k in (12, 16, 20)
    ]


def _single(rng, scale=1.0, **more):
    """A result of one kernel, whose times are those of the whole."""
    made = entry(rng, "copy", kernels=("copy",), scale=scale, **more)
    made["whole"]["series"]["gpu_span"] = {k: v for k, v in made["kernels"][0].items() if k not in ("label", "gpu_ns")}
    return made


def test_a_single_kernel_has_no_row_beside_the_whole():
    a = document(entries=[_single(np.random.default_rng(1))])
    b = document(entries=[_single(np.random.default_rng(2), scale=1.2)])
    (row,) = compare(a, b).rows
    assert (row.name, row.past_gate) == ("gpu_span", True)
    # Where its times are others than those of the whole, they are judged.
    c = document(entries=[entry(np.random.default_rng(2), "copy", kernels=("copy",))])
    assert [row.name for row in compare(a, c).rows] == ["gpu_span", "copy"]


def test_a_time_has_three_digits_and_the_uncertainty_of_its_own_run():
    """The same as `gridwise bench` prints, whatever it is compared with."""
    a = document(entries=[_single(np.random.default_rng(1))])
    summary = a["results"][0]["whole"]["series"]["gpu_span"]["summary"]
    median = summary["median_ns"]
    unsure = max(median - summary["ci_low_ns"], summary["ci_high_ns"] - median, 16) / median
    expected = f"{median / 1000:.0f} µs ±{100 * unsure:.1f} %"
    wild = document(entries=[_single(np.random.default_rng(2))])
    wild["results"][0]["whole"]["series"]["gpu_span"] = series([5e4, 5e5] * 30)
    for other in (document(entries=[_single(np.random.default_rng(2))]), wild):
        (row,) = [row for row in compare(a, other).rows if row.part == "whole"]
        assert row.texts()[0] == expected
        assert compare_render.row_cells(row)[2] == expected


def test_rounds_have_the_uncertainty_of_their_medians():
    rng = np.random.default_rng(1)
    a = document(entries=[_single(rng, scale=scale, round=i) for i, scale in enumerate((1, 1.06, 0.95))])
    (row,) = compare(a, document(entries=[_single(rng)])).rows
    summary = pooled(loaded(a)).results[0].gpu_span.summary
    median, low, high = summary.median_ns, summary.ci_low_ns, summary.ci_high_ns
    assert row.old_uncertainty == pytest.approx(max(median - low, high - median) / median)
    assert row.old_uncertainty > 0.03 > row.new_uncertainty


def test_two_modes_are_marked_since_the_ratio_is_not_that_of_the_medians():
    rng = np.random.default_rng(4)
    sides = [_single(rng), _single(rng)]
    for side in sides:
        side["whole"]["series"]["gpu_span"] = series(np.where(rng.random(400) < 0.5, 1e5, 1.1e5).tolist())
        side["kernels"][0] |= side["whole"]["series"]["gpu_span"]
    found = compare(*(document(entries=[side]) for side in sides))
    (row,) = found.rows
    assert row.verdict.statistic == "interquartile mean"
    assert compare_render.row_cells(row)[4] == f"{row.verdict.ratio:.3f} *"
    assert any("interquartile means are judged (*)" in text for text in compare_render.comparison_remarks(found))


def test_a_single_round_on_a_cpu_is_neither_slower_nor_faster(run):
    rng = np.random.default_rng(3)
    for scales in ((1, 1.85), (1.85, 1)):
        sides = [document(device=LAVAPIPE, entries=[_single(rng, scale=scale)]) for scale in scales]
        found = run(*sides)
        assert found.exit_code == 0
        assert "1 row: 1 ambiguous" in found.output
        assert "--rounds 5" in found.output
    levels = (1, 1.004, 0.996)
    rounds = [
        document(device=LAVAPIPE, entries=[_single(rng, scale=scale * k, round=i) for i, k in enumerate(levels)])
        for scale in (1, 1.85)
    ]
    assert run(*rounds).exit_code == 1


def test_what_is_not_comparable_is_said_once(run):
    a, b = document(), document(device={**H200, "driver": "another", "backend": "D3D12"})
    for form in ("table", "markdown", "junit", "json"):
        found = run(a, b, "--format", form)
        assert found.exit_code == 3
        assert found.output.count("another") == 1, found.output
        # JUnit has an error of its own for each obstacle.
        assert found.output.count("--force") == (2 if form == "junit" else 1), found.output
    assert "another" not in run(a, b).stdout
    cpu = run(document(device=LAVAPIPE), a, "--force")
    assert cpu.exit_code == 3
    assert "--force" not in cpu.output, "it was given"
    forced = run(a, b, "--force").output
    assert "measure both" not in forced
    assert forced.count("(--force)") == 2


def test_equal_causes_are_one_remark_with_all_their_cases():
    rng = np.random.default_rng(3)
    sides = [[_single(rng, n=1 << k, position=k, clock_moved=True) for k in range(10, 18)] for _ in range(2)]
    found = compare(*(document(entries=side) for side in sides))
    (text,) = [text for text in compare_render.comparison_remarks(found) if "ambiguous" in text]
    assert text.startswith("8 rows ambiguous: the GPU's clock moved during a run, or was another one in NEW")
    assert all(f"copy add u32 hot n=2^{k}" in text for k in range(10, 18))


# ---- any width


def _wide_documents():
    """Two files with all kinds of rows, and long names."""
    rng = np.random.default_rng(7)
    label = "sort_scatter_onesweep"

    def side(scale, device=H200):
        entries = [
            entry(rng, "sort_pairs", n=268_435_457, kernels=(label, "sort_histograms"), position=0,
                  case={"distribution": "few_distinct", "block": 1024}),
            _single(rng, scale=scale, n=1 << 24, position=1),
            entry(rng, n=1 << 26, scale=scale, position=2, mode="latency"),
            _single(rng, scale=1, n=1000, position=3, clock_moved=True),
            _single(rng, scale=1.03 * scale, n=1 << 28, position=4),
        ]  # fmt: skip
        entries[0]["kernels"][1] |= {"samples_ns": [], "summary": None, "gpu_ns": None}
        entries[4]["whole"]["series"]["gpu_span"] = series((1e5 * np.exp(rng.standard_normal(30))).tolist())
        return document(device=device, entries=entries)

    return side(1.0), side(1.3)


def _wide_comparison(name):
    old, new = _wide_documents()
    if name == "across":
        return compare({**old, "device": {**old["device"], **LAVAPIPE}}, new, across=True)
    if name == "not comparable":
        return compare({**old, "device": {**old["device"], "driver": "535.104.05", "backend": "D3D12"}}, new)
    if name == "plain":
        keep = [1, 2]
        return compare(*({**d, "results": [d["results"][i] for i in keep]} for d in (old, new)))
    return compare(old, new)


def _shown(comparison, width):
    console = make_console(width=width, file=io.StringIO(), force_jupyter=False)
    compare_render.render_rich(comparison, console)
    return console.file.getvalue()


@pytest.mark.thin(1)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", ["plain", "all kinds", "across", "not comparable"])
def test_no_width_shortens_anything(name, width):
    found = _wide_comparison(name)
    text = _shown(found, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    # No word is cut: all are words of the widest form, or of the line that names columns left out.
    words = set(_shown(found, 1000).split()) | set(
        f"Left out, as {width} columns are too few: slower!: slower! past the gate.".split()
    )
    words |= {f"{word}{mark}" for heading in compare_render.HEADINGS + compare_render.RANK_HEADINGS
              for word in heading.split() for mark in (",", ".", ":", "")}  # fmt: skip
    shown = {word for word in text.split() if word.strip("─")}
    assert shown <= words, shown - words
    for row in found.rows:
        assert any(row.case in line for line in lines) or width < len(row.case), row.case
        assert row.name in text
        if row.verdict is not None:
            old, new, ratio, _, verdict = compare_render.row_cells(row)[2:]
            assert all(cell.split(" ±")[0] in text for cell in (old, new, ratio))
            assert re.split(r"\W", verdict)[0] in text
    for cells in compare_render.rank_cells(found):
        assert any(cells[0] in line for line in lines) or width < len(cells[0]), cells[0]
        assert all(cell in text for cell in cells[1:4])
    for obstacle in found.obstacles:
        assert obstacle in re.sub(r"\s+", " ", text)
    if found.rows or found.ranks:
        assert re.sub(r"\s+", " ", text).rstrip().endswith(compare_render.comparison_conclusion(found))


def test_a_pipe_is_as_wide_as_columns_says(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = run(*_wide_documents())
    assert max(map(len, found.stdout.splitlines())) <= 80
    text = " ".join(found.stdout.split())
    assert text.count("sort_pairs add u32 few_distinct block=1024 hot n=268,435,457") >= 2, "in the table and below"


# ---- across


POWER = {"blocks": [{"before": {"power_w": 90.0}, "after": {"power_w": power}} for power in (400.0, 600.0)]}


def test_across_ranks(run):
    rng = np.random.default_rng(1)
    slow = [entry(rng, "copy", kernels=("copy",), scale=2), entry(rng, scale=3)]
    fast = [entry(rng, "copy", kernels=("copy",)), entry(rng, observations=POWER)]
    old, new = document(device=LAVAPIPE, entries=slow), document(entries=fast)
    found = compare(old, new, across=True)
    assert [(r.case.split()[0], r.rank, r.adapter.split()[0]) for r in found.ranks] == [
        ("copy", 1, "NVIDIA"),
        ("copy", 2, "llvmpipe"),
        ("scan", 1, "NVIDIA"),
        ("scan", 2, "llvmpipe"),
    ]
    first = found.ranks[2]
    assert found.ranks[0].quantities["copy_share"] == 1
    rates = [rank.quantities["gbytes_per_s"] for rank in (first, found.ranks[0])]
    assert first.quantities["copy_share"] == pytest.approx(rates[0] / rates[1])
    assert [note for note in found.notes if "software" in note] == [
        "One of the adapters is software on the CPU: such times are the CPU's."
    ]
    assert "Both adapters are software on the CPU: such times are the CPU's." in compare(old, old, across=True).notes
    assert first.quantities["gbytes_per_j"] == pytest.approx(rates[0] / 500)
    assert found.ranks[3].quantities["gbytes_per_j"] is None
    assert [r.file for r in found.ranks] == ["B", "A"] * 2
    medians = [e["whole"]["gpu_span_ns"] for e in (slow[1], fast[1])]
    assert [r.speedup for r in found.ranks[2:]] == [pytest.approx(medians[0] / medians[1]), 1]
    shown = run(old, new, "--across")
    assert shown.exit_code == 0
    assert "software on the CPU" in shown.output
    assert shown.output.count("NVIDIA H200") == 2, "in the title and in the conclusion, not in each row"
    speedups = sorted(r.speedup for r in found.ranks if r.rank == 1)
    sentence = f"B, NVIDIA H200, is {speedups[0]:.2f} to {speedups[1]:.2f} times as fast in 2 of 2 cases."
    assert sentence in shown.output
    assert "e+" not in shown.output
    for form in ("markdown", "json", "junit"):
        done = run(old, new, "--across", "--format", form)
        assert done.exit_code == 0
        assert not re.search(r"\b(OLD|NEW)\b", done.output), "neither GPU is an older version"
    assert not re.search(r"\b(OLD|NEW)\b", shown.output)


def test_across_takes_the_processes_of_a_case_together():
    """The fastest of them would have its own interval, and that is no measure of how much processes differ."""
    rng = np.random.default_rng(1)
    old = document(entries=[entry(rng, scale=scale, process=i) for i, scale in enumerate((1.0, 1.2, 1.5))])
    new = document(entries=[entry(rng, scale=1.25)])
    first, second = compare(old, new, across=True).ranks
    table = pooled(loaded(old)).results[0]
    slower = next(rank for rank in (first, second) if rank.file == "A")
    assert slower.time_ns == table.time_ns
    assert slower.uncertainty == pytest.approx(table.timed.uncertainty(), rel=1e-3)
    assert slower.uncertainty > 0.4
    assert compare_render.comparison_conclusion(compare(old, new, across=True)).startswith("no difference beyond the ±")


def test_across_calls_nothing_faster_within_its_uncertainty():
    """Medians of two runs always differ by something."""
    for uncertainty, sentence in [
        (0.01, "B is 1.10 to 3.00 times as fast in 2 of 2 cases."),
        (0.08, "B is 3.00 times as fast in 1 of 2 cases; no difference beyond the ± in 1 of 2 cases."),
        (1.2, "no difference beyond the ± in 2 of 2 cases."),
        (None, "too few samples to tell in 2 of 2 cases."),
    ]:
        rng = np.random.default_rng(1)
        old, new = (
            document(entries=[entry(rng, "copy"), entry(rng)]),
            document(entries=[entry(rng, "copy"), entry(rng)]),
        )
        found = compare(old, new, across=True)
        ranks = []
        for case, factor in zip(dict.fromkeys(rank.case for rank in found.ranks), (3.0, 1.1), strict=True):
            one = next(rank for rank in found.ranks if rank.case == case)
            for place, file in ((1, "B"), (2, "A")):
                speedup = factor if place == 1 else 1.0
                time_ns = 1e6 / speedup
                made = dict(file=file, rank=place, speedup=speedup, time_ns=time_ns, uncertainty=uncertainty)
                ranks.append(dataclasses.replace(one, **made))
        assert compare_render.comparison_conclusion(dataclasses.replace(found, ranks=ranks)) == sentence


# ---- formats

NASTY = "a<b>&\"'|[bold]x[/bold]`*\x1b[31m\x00"


@pytest.fixture(scope="module")
def nasty():
    """A file with a nasty label, and the comparison of it with one in which a kernel is slower."""
    a = document()
    for result in a["results"]:
        result["kernels"][0]["label"] = NASTY
    return compare(a, scaled(a, 1, 0, 1.2))


def test_table_shows_labels_as_they_are(nasty):
    text = compare_render.render(nasty, "table")
    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text


def test_markdown_is_a_table(nasty):
    text = compare_render.render(nasty, "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 14
    assert {len([c for c in row.replace("\\|", "").split("|")]) for row in rows} == {9}
    assert "\x1b" not in text
    assert "slower, past the gate" in text


def test_json_has_everything(nasty):
    data = json.loads(compare_render.render(nasty, "json"))
    assert (data["schema"], data["schema_version"]) == ("gridwise.compare", 3)
    assert data["regressed"] is True
    (row,) = [row for row in data["rows"] if row["past_gate"]]
    assert (row["verdict"]["kind"], row["verdict"]["unit"]) == ("slower", "sample")
    assert {"old_units", "new_units", "between_sd", "within_sd", "cause", "statement"} <= row["verdict"].keys()
    assert "process_std" not in row["verdict"], "which version 2 had"
    assert row["verdict"]["ratio"] == pytest.approx(1.2)


def test_junit_is_xml(nasty):
    text = compare_render.render(nasty, "junit")
    suite = ElementTree.fromstring(text)
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(len(cases)), "1", "0")
    (failed,) = [case for case in cases if case.find("failure") is not None]
    assert failed.get("name").startswith("a<b>&\"'|[bold]")
    broken = document()
    broken["results"][0] |= {"correct": False, "mismatch": "item 0"}
    assert ElementTree.fromstring(compare_render.render(compare(broken, broken), "junit")).get("errors") == "2"
    refused = compare_render.render(compare(document(device=LAVAPIPE), document()), "junit")
    assert int(ElementTree.fromstring(refused).get("errors")) >= 1


def test_every_format_says_why_not():
    refused = compare(document(device=LAVAPIPE), document())
    for form in compare_render.FORMATS:
        assert "--across" in compare_render.render(refused, form).replace("\\", "")


def _coded(seed, scale=1.0, one="a" * 64, **more):
    digests = dict.fromkeys(CODE, one)
    rng = np.random.default_rng(seed)
    return entry(rng, scale=scale, **{"code": digests, **more}), entry(rng, mode="latency", code=digests)


def test_a_slower_machine_is_no_regression_of_the_same_code():
    a, b = (document(entries=[*_coded(seed, scale)]) for seed, scale in ((1, 1.0), (2, 1.2)))
    found = compare(a, b)
    kinds = {(row.case.split()[3], row.name): row.verdict.kind for row in found.rows if row.part == "whole"}
    assert kinds["hot", "gpu_span"] is kinds["latency", "gpu_span"] is VerdictKind.SAME_CODE
    assert kinds["latency", "cpu_wall"] is not VerdictKind.SAME_CODE, "host code may differ"
    assert not found.regressed
    assert any(note.endswith("gpu_span: the machine differs: 20 %") for note in found.notes)
    assert any(note.startswith("both ask the same of the GPU") for note in found.notes)
    assert found.undecided_share <= 0.5


@pytest.mark.parametrize(
    "other",
    [
        {"one": "b" * 64}, {"trials": 2}, {"protocol": {"flush_bytes": 1}}, {"code": None},
        {"code": dict.fromkeys(("kernels", "launches", "uniforms"), "a" * 64)},
        {"code": {**dict.fromkeys(("kernels", "launches", "uniforms"), "a" * 64), "inputs": "b" * 64}},
        {"code": {**dict.fromkeys(("kernels", "launches", "inputs"), "a" * 64), "uniforms": "b" * 64}},
    ],
)  # fmt: skip
def test_what_is_not_known_to_be_the_same_code_is_judged_by_time(other):
    a, b = document(entries=[_coded(1)[0]]), document(entries=[_coded(2, 1.2, **other)[0]])
    found = compare(a, b)
    assert found.regressed
    said = [note for note in found.notes if note.startswith("judged by time alone")]
    assert bool(said) == (
        "code" in other and (other["code"] or {}).keys() < {"kernels", "launches", "uniforms", "inputs"}
    )


@pytest.mark.parametrize("where", ["engine", "driver", "settings"])
def test_another_engine_or_driver_is_not_the_same(where):
    a, b = (document(entries=[_coded(seed, scale)[0]]) for seed, scale in ((1, 1.0), (2, 1.2)))
    if where == "engine":
        b["context"] = {**b["context"], "versions": {**b["context"]["versions"], "wgpu": "0.99"}}
    elif where == "driver":
        b["device"] = {**b["device"], "driver": "1.2.3"}
    else:
        b["context"] = {**b["context"], "settings": {"shader_checks.all": True}}
    assert compare(a, b, force=True).regressed
